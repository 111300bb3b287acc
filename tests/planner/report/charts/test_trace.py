"""A trace is what Perfetto reads, with every operation of the schedule in it."""

import json
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import pytest

from planner.cost.workload import Workload
from planner.report.charts.timeline import Timeline, timeline
from planner.report.charts.trace import COMPUTE, trace_json
from planner.schedules import operations
from planner.specs.answer.result import RankedPlan

METADATA = {"process_name": "name", "process_sort_index": "sort_index"}
METADATA["thread_name"] = "name"


def events(step: Timeline) -> list[dict[str, Any]]:
    return json.loads(trace_json(step, "a job"))["traceEvents"]


def test_every_event_has_the_fields_of_its_kind(step: Timeline) -> None:
    """Trace Event Format: metadata with what it names, complete events with times."""
    for event in events(step):
        assert set(event) >= {"ph", "name", "pid", "tid"}
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        if event["ph"] == "M":
            assert set(event["args"]) == {METADATA[event["name"]]}
            continue
        assert event["ph"] == "X"
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        assert event["ts"] + event["dur"] <= step.makespan / 1e3 + 1e-6
        assert event["cat"] in {"compute", "communication"}
        assert all(isinstance(value, int) for value in event["args"].values())


def test_events_are_the_operations_of_the_schedule(
    plan: tuple[Workload, RankedPlan],
) -> None:
    workload, priced = plan
    layout = priced.layout
    shape = layout.schedule, layout.pp, layout.vpp, layout.grad_accum
    counted = Counter(
        (event["pid"], event["name"].rsplit(" ", 1)[0])
        for event in events(timeline(workload, priced.layout))
        if event["ph"] == "X" and event["tid"] == COMPUTE
    )
    wanted: Counter[tuple[int, str]] = Counter()
    names = {"F": "forward", "P": "forward", "B": "backward", "H": "backward"}
    for rank, order in enumerate(operations(*shape)):
        wanted.update((rank, names.get(op.kind, "weight gradient")) for op in order)
        wanted[rank, "optimizer"] += 1
    assert counted == wanted


def test_events_of_a_thread_do_not_overlap_and_threads_are_named(
    step: Timeline,
) -> None:
    """Perfetto nests complete events of one thread; overlaps would be lost."""
    threads: defaultdict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    named = set()
    for event in events(step):
        place = event["pid"], event["tid"]
        if event["name"] == "thread_name":
            named.add(place)
        if event["ph"] == "X":
            threads[place].append((event["ts"], event["ts"] + event["dur"]))
    assert set(threads) == named
    for times in threads.values():
        times.sort()
        late = [b for a, b in pairwise(times) if b[0] < a[1] - 1e-6]
        assert late == []


@pytest.mark.parametrize("field", ["simulated_step_s", "step_time_s", "operations"])
def test_a_trace_says_what_it_adds_up_to(step: Timeline, field: str) -> None:
    other = json.loads(trace_json(step, "a job"))["otherData"]
    wanted = {
        "simulated_step_s": step.makespan / 1e9,
        "step_time_s": step.step_s,
        "operations": len(step.operations),
    }
    assert other[field] == wanted[field]
