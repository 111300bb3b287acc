"""What is drawn of a step is what the simulator priced, and adds up to it."""

from itertools import pairwise

import pytest

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.report.charts.gantt import MOST_DRAWN, gantt, left_out, windows
from planner.report.charts.timeline import (
    Span,
    Timeline,
    time_by_rank,
    timeline,
    too_long,
)
from planner.schedules import operations
from planner.specs.answer.result import RankedPlan


def test_a_timeline_has_the_operations_of_its_schedule(
    plan: tuple[Workload, RankedPlan],
) -> None:
    """Each once, on its rank, in order."""
    workload, priced = plan
    layout = priced.layout
    step = timeline(workload, layout)
    shape = layout.schedule, layout.pp, layout.vpp, layout.grad_accum
    for rank, order in enumerate(operations(*shape)):
        mine = [span for span in step.operations if span.rank == rank]
        assert [(s.micro, s.chunk) for s in mine] == [(o.micro, o.chunk) for o in order]
        assert [s.activity[0] for s in mine] == [
            {"P": "f", "H": "b"}.get(o.kind, o.kind.lower()) for o in order
        ]
    assert step.step_s == pytest.approx(priced.estimate.step_time_s.value, rel=1e-9)


def test_a_rank_does_one_thing_at_a_time(step: Timeline) -> None:
    for rank in range(step.ranks):
        computed = [s for s in step.spans if s.rank == rank and s.computes]
        waited = [w for w in step.waits if w.rank == rank]
        parts = sorted((p.start, p.end) for p in [*computed, *waited])
        assert parts[0][0] == 0
        assert parts[-1][1] == step.makespan
        assert all(end == start for (_, end), (start, _) in pairwise(parts))


def test_the_causes_of_every_rank_add_up_to_the_step(step: Timeline) -> None:
    """Up to what rounding an operation to whole nanoseconds leaves."""
    causes = time_by_rank(step)
    for rank in range(step.ranks):
        total = sum(times[rank] for times in causes.values())
        assert total == pytest.approx(step.makespan / 1e9, rel=1e-5)


def test_inputs_are_there_before_operations_start(step: Timeline) -> None:
    """A transfer leaves when its sender is done, and arrives before it is needed."""
    runs = {(span.activity, span.stage, span.micro): span for span in step.operations}
    sends = [s for s in step.spans if s.activity.startswith("send ")]
    assert bool(sends) == (step.ranks > 1)
    for send in sends:
        name = send.activity.removeprefix("send ")
        there = runs[name, send.stage, send.micro]  # type: ignore[index]
        assert there.rank == send.rank
        assert send.end <= there.start
        nearer = -1 if name == "forward" else 1
        source = runs[name, send.stage + nearer, send.micro]  # type: ignore[operator,index]
        assert source.end <= send.start


def test_waits_say_why() -> None:
    """Before its input is sent a rank is idle; then it waits for the wire."""
    spans = (
        Span(0, "forward", 0, 10, 0, 0, 0),
        Span(1, "forward", 15, 20, 1, 0, 0),
        Span(1, "send forward", 10, 15, 1, 0, 0),
        Span(1, "reduce gradients", 20, 32, 1, 0),
        Span(0, "optimizer", 35, 40),
        Span(1, "optimizer", 35, 40),
    )
    step = Timeline(2, spans, 40, 1.0, ({}, {}))
    told = [(w.rank, w.why, w.start, w.end) for w in step.waits]
    assert told == [
        (0, "bubble", 10, 35),
        (1, "bubble", 0, 10),
        (1, "pipeline send", 10, 15),
        (1, "reduce gradients", 20, 32),
        (1, "bubble", 32, 35),
    ]


def long_step(micros: int) -> Timeline:
    spans = tuple(
        Span(0, "forward", 10 * i, 10 * i + 10, 0, 0, i) for i in range(micros)
    )
    return Timeline(1, spans, 10 * micros, 1.0, ({},))


def test_a_short_step_is_drawn_whole() -> None:
    step = long_step(MOST_DRAWN)
    assert left_out(step) == ""
    (whole,) = windows(step)
    (_, bars) = gantt(step, whole)["data"]  # type: ignore[misc]
    assert len(bars["x"]) == MOST_DRAWN


def test_a_long_step_is_cut_and_says_so() -> None:
    """What is drawn and what is said to be left out are all of it."""
    step = long_step(MOST_DRAWN + 1)
    first, last = windows(step)
    drawn = 0
    for window in (first, last):
        (_, bars) = gantt(step, window)["data"]  # type: ignore[misc]
        drawn += len(bars["x"])
    hidden = MOST_DRAWN + 1 - drawn
    assert hidden > 0
    assert f"the {hidden:,} operations between" in left_out(step)
    assert (first.start, last.end) == (0, step.makespan)


def test_a_step_of_too_many_operations_is_not_drawn(
    plan: tuple[Workload, RankedPlan],
) -> None:
    """It is priced by the block that repeats, and refused here by name."""
    many = {"pp": 8, "vpp": 1, "grad_accum": 2**17}
    layout = plan[1].layout.model_copy(update=many)
    assert "2,097,152 forwards and backwards" in too_long(layout)
    assert too_long(layout.model_copy(update={"grad_accum": 2**16})) == ""
    with pytest.raises(BadInputError, match="not drawn"):
        timeline(plan[0], layout)
