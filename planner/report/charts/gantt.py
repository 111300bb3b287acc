"""The pipeline of one step as a Gantt chart."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.document.blocks import Figure, Legend
from planner.report.charts.look import Trace, axis, layout, rounded
from planner.report.charts.timeline import Span, Timeline, Wait

MOST_DRAWN = 2_400
"""Operations of a step that is drawn whole. [1]"""
EDGE = 900
"""Operations drawn at the start, and at the end, of a longer step. [1]"""
COLOURS = {
    "forward": "forward",
    "backward": "backward",
    "weight gradient": "weight",
    "optimizer": "end",
    "exposed communication": "comm",
    "bubble": "idle",
}
_NAMES = {"optimizer": "end of step"}
_LANES = {"gather parameters": 0.40, "reduce gradients": 0.40}
_HIGH, _THIN = 0.7, 0.1


@dataclass(frozen=True)
class Window:
    """A part of the step that is drawn. [ns]."""

    title: str
    start: int
    end: int


def windows(step: Timeline) -> tuple[Window, ...]:
    """The parts of a step that are drawn: all of it, or its start and its end."""
    if len(step.operations) <= MOST_DRAWN:
        return (Window("The whole step", 0, step.makespan),)
    starts = sorted(span.start for span in step.operations)
    ends = sorted((span.end for span in step.operations), reverse=True)
    return (
        Window("How the step begins", 0, starts[EDGE]),
        Window("How the step ends", ends[EDGE], step.makespan),
    )


def left_out(step: Timeline) -> str:
    """Note on operations that the Gantt chart leaves out; empty where it draws all."""
    parts = windows(step)
    if len(parts) == 1:
        return ""
    first, last = parts
    hidden = sum(
        span.start >= first.end and span.end <= last.start for span in step.operations
    )
    return (
        f"The step has {len(step.operations):,} operations. Drawn are its first "
        f"{first.end / 1e9:.3f} s and its last {(last.end - last.start) / 1e9:.3f} s; "
        f"the {hidden:,} operations between repeat the same pattern and are left out "
        "here, but counted in the chart of ranks above and written by --trace."
    )


def legend(step: Timeline) -> Legend:
    """Names of the colours that the step uses."""
    shown: set[str] = {"bubble", *(span.activity for span in step.spans)}
    if any(not span.computes for span in step.spans):
        shown.add("exposed communication")
    return tuple(
        (_NAMES.get(name, name), colour)
        for name, colour in COLOURS.items()
        if name in shown
    )


def gantt(step: Timeline, window: Window) -> Figure:
    """Operations, exposed exchanges and bubbles of every pipeline rank.

    Returns:
        One row a rank; gathers and reductions beside kernels are a thin line below.
    """
    computed = [span for span in step.spans if span.computes and _seen(span, window)]
    beside = [s for s in step.spans if s.activity in _LANES and _seen(s, window)]
    idle = [wait for wait in step.waits if _seen(wait, window)]
    traces = [_waiting(idle, window)]
    for name, colour in list(COLOURS.items())[:4]:
        mine = [span for span in computed if span.activity == name]
        if mine:
            traces.append(_running(mine, window, colour))
    if beside:
        traces.append(_beside(beside, window))
    times = (window.start / 1e9, window.end / 1e9)
    ranks = list(range(step.ranks))
    return {
        "data": traces,
        "layout": layout(
            90 + max(20, min(34, 560 // step.ranks)) * max(step.ranks, 2),
            xaxis=axis("time in the step [s]", range=list(times), showgrid=False),
            yaxis=axis(
                "pipeline rank",
                range=[step.ranks - 0.4, -0.6],
                tickvals=ranks[:: 1 + step.ranks // 33],
                showgrid=False,
                zeroline=False,
            ),
            barmode="overlay",
            bargap=0,
        ),
    }


def _seen(part: Span | Wait, window: Window) -> bool:
    return part.start < window.end and part.end > window.start


def _bars(parts: Sequence[Span | Wait], window: Window, **more: object) -> Trace:
    """Bars from start to end, cut at the window."""
    starts = [max(part.start, window.start) for part in parts]
    ends = [min(part.end, window.end) for part in parts]
    pairs = zip(starts, ends, strict=True)
    return {
        "type": "bar",
        "orientation": "h",
        "y": [part.rank for part in parts],
        "base": rounded([start / 1e9 for start in starts]),
        "x": rounded([(end - start) / 1e9 for start, end in pairs]),
        "width": _HIGH,
        "hovertemplate": "%{text}<extra></extra>",
        **more,
    }


def _running(spans: Sequence[Span], window: Window, colour: str) -> Trace:
    edge = {"color": "@page", "width": 0.6}
    return _bars(
        spans,
        window,
        text=[_span_text(span) for span in spans],
        textposition="none",
        marker={"color": f"@{colour}", "line": edge},
    )


def _waiting(idle: Sequence[Wait], window: Window) -> Trace:
    colours = ["@idle" if wait.why == "bubble" else "@comm" for wait in idle]
    said = [f"{wait.why}, {(wait.end - wait.start) / 1e6:.2f} ms" for wait in idle]
    return _bars(
        idle,
        window,
        text=said,
        textposition="none",
        marker={"color": colours, "line": {"width": 0}},
    )


def _beside(spans: Sequence[Span], window: Window) -> Trace:
    return _bars(
        spans,
        window,
        text=[_span_text(span) for span in spans],
        textposition="none",
        width=_THIN,
        offset=0.38,
        marker={"color": "@comm", "line": {"width": 0}},
    )


def _span_text(span: Span) -> str:
    """Name, micro-batch, stage and time of an operation, for the pointer."""
    name = _NAMES.get(span.activity, span.activity)
    of = [] if span.micro is None else [f"micro-batch {span.micro}"]
    of += [] if span.stage is None else [f"stage {span.stage}"]
    took = f"{(span.end - span.start) / 1e6:.2f} ms"
    return f"<b>{name}</b><br>{', '.join([*of, took])}"
