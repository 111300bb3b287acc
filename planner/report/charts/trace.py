"""One step as a Chrome trace, which Perfetto and chrome://tracing open."""

import json
from collections import defaultdict
from collections.abc import Iterator

from planner.report.charts.timeline import Span, Timeline

Event = dict[str, object]
Lanes = dict[int, tuple[int, str, int]]
"""Identity of a span to its rank, and the name and number of its thread."""
COMPUTE = 1
"""Thread of a rank's kernels. [1]"""
FIRST_EXCHANGE = 2
"""Thread of the first kind of exchange; the others follow. [1]"""
_EXCHANGES = (
    "gather parameters",
    "reduce gradients",
    "send forward",
    "send backward",
)


def trace_json(step: Timeline, job: str) -> str:
    """A step as trace events: a process for every pipeline rank.

    References:
        "Trace Event Format", Google, docs.google.com document
        1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU; Perfetto reads it, too.
    """
    lanes = _lanes(step)
    events = [*_names(step, lanes), *_complete(step, lanes)]
    other = {
        "job": job,
        "simulated_step_s": step.makespan / 1e9,
        "step_time_s": step.step_s,
        "operations": len(step.operations),
        "note": "stragglers lengthen the simulated step by step_time_s / "
        "simulated_step_s; exchanges of the tensor, context and expert axes are part "
        "of the operations",
    }
    whole = {"displayTimeUnit": "ms", "otherData": other, "traceEvents": events}
    return json.dumps(whole, separators=(",", ":"))


def _names(step: Timeline, lanes: Lanes) -> Iterator[Event]:
    """Metadata: names of processes and threads, and the order of processes."""
    for rank in range(step.ranks):
        yield _meta("process_name", rank, 0, name=f"pipeline rank {rank}")
        yield _meta("process_sort_index", rank, 0, sort_index=rank)
        yield _meta("thread_name", rank, COMPUTE, name="compute")
        mine = sorted({(tid, name) for (r, name, tid) in lanes.values() if r == rank})
        for tid, name in mine:
            yield _meta("thread_name", rank, tid, name=name)


def _meta(kind: str, pid: int, tid: int, **args: object) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args}


def _complete(step: Timeline, lanes: Lanes) -> Iterator[Event]:
    """One complete event for each operation and each exchange."""
    for span in step.spans:
        tid = COMPUTE if span.computes else lanes[id(span)][2]
        args = {
            name: value
            for name in ("micro", "chunk", "stage")
            if (value := getattr(span, name)) is not None
        }
        if "micro" in args:
            args = {"micro_batch": args.pop("micro"), **args}
        yield {
            "ph": "X",
            "name": _label(span),
            "cat": "compute" if span.computes else "communication",
            "pid": span.rank,
            "tid": tid,
            "ts": span.start / 1e3,
            "dur": (span.end - span.start) / 1e3,
            "args": args,
        }


def _label(span: Span) -> str:
    return span.activity if span.micro is None else f"{span.activity} {span.micro}"


def _lanes(step: Timeline) -> Lanes:
    """A thread for every exchange: one a kind, more where exchanges overlap."""
    busy: dict[tuple[int, str], list[int]] = defaultdict(list)
    placed: Lanes = {}
    exchanges = [span for span in step.spans if not span.computes]
    for span in sorted(exchanges, key=lambda s: (s.start, s.end)):
        ends = busy[span.rank, span.activity]
        free = [lane for lane, end in enumerate(ends) if end <= span.start]
        lane = free[0] if free else len(ends)
        ends[lane : lane + 1] = [span.end]
        name = span.activity + (f" {lane + 1}" if lane else "")
        tid = FIRST_EXCHANGE + _EXCHANGES.index(span.activity) + lane * len(_EXCHANGES)
        placed[id(span)] = (span.rank, name, tid)
    return placed
