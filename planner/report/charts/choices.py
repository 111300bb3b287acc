"""Charts of alternatives to a plan: fronts, neighbours, better machines."""

from collections.abc import Sequence

from planner.document.blocks import Figure
from planner.report.charts.look import (
    ROW,
    axis,
    bars,
    downwards,
    layout,
    rounded,
    wrapped,
)
from planner.specs.answer.explanation import FrontPoint, Neighbour, Sensitivity
from planner.specs.layouts.layout_text import short_layout

_TALLER = 8


def front_chart(points: Sequence[FrontPoint], measure: str) -> Figure:
    """Plans of a Pareto front: step time against free memory, or against GPUs.

    Returns:
        Points joined by a line. [s]
    """
    ordered = sorted(points, key=lambda point: float(getattr(point, measure)))
    of_gpus = measure == "gpus"
    title = "GPUs" if of_gpus else "free memory of the fullest GPU [GiB]"
    trace = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": rounded([getattr(point, measure) for point in ordered], 3),
        "y": rounded([point.step_time_s for point in ordered], 4),
        "text": [_point_text(point) for point in ordered],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"color": "@compute", "width": 1.5, "dash": "dot"},
        "marker": {"size": 10, "color": "@compute"},
    }
    return {
        "data": [trace],
        "layout": layout(
            320,
            xaxis=axis(title, **(_sizes(ordered) if of_gpus else {})),
            yaxis=axis("step [s]", rangemode="normal"),
        ),
    }


def _sizes(points: Sequence[FrontPoint]) -> dict[str, object]:
    """A logarithmic axis that names the sizes of the points."""
    sizes = sorted({point.gpus for point in points})
    texts = [f"{size:,}" for size in sizes]
    return {"type": "log", "tickvals": sizes, "ticktext": texts}


def _point_text(point: FrontPoint) -> str:
    free = f"{point.headroom_gib:.1f} GiB free"
    layout_text = short_layout(point.layout).replace(",", ", ")
    halves = layout_text[: len(layout_text) // 2].rfind(", ")
    wrapped = layout_text[:halves] + "<br>" + layout_text[halves + 2 :]
    return (
        f"<b>{point.step_time_s:.3f} s on {point.gpus:,} GPUs, {free}</b><br>{wrapped}"
    )


def neighbour_chart(neighbours: Sequence[Neighbour]) -> Figure:
    """Slowdown of the best plan with one degree changed.

    Returns:
        Bars; plans that do not fit and tied plans have other colours. [1]
    """
    known = [n for n in neighbours if n.slower is not None]
    known.sort(key=lambda n: n.slower or 0.0)
    colours = [_mood(n) for n in known]
    trace = bars(
        [wrapped(n.change) for n in known],
        rounded([n.slower or 0.0 for n in known], 4),
        text=[f"{n.slower or 0.0:+.1%}" for n in known],
        textposition="outside",
        cliponaxis=False,
        marker={"color": colours},
        hovertext=[n.effect for n in known],
        hovertemplate="%{y}: %{hovertext}<extra></extra>",
    )
    return _sideways([trace], len(known), "slower than the best plan")


def _mood(neighbour: Neighbour) -> str:
    if not neighbour.fits:
        return "@idle"
    return "@recompute" if neighbour.tied else "@compute"


NEIGHBOUR_LEGEND = (
    ("slower", "compute"),
    ("a tie: within the model's error", "recompute"),
    ("does not fit the memory", "idle"),
)


def tornado(found: Sequence[Sensitivity]) -> Figure:
    """Share of the step that one better number of the machine saves, the most first."""
    ordered = sorted(found, key=lambda s: -max(s.gain, s.best_gain))
    names = [wrapped(s.change) for s in ordered]
    pairs = (("gain", "recompute"), ("best_gain", "compute"))
    traces = [
        bars(
            names,
            rounded([getattr(s, field) for s in ordered], 5),
            marker={"color": f"@{colour}"},
            hovertext=[s.effect for s in ordered],
            hovertemplate="%{y}: %{x:.1%}<br>%{hovertext}<extra></extra>",
        )
        for field, colour in pairs
    ]
    return _sideways(traces, len(names), "share of the step saved")


TORNADO_LEGEND = (
    ("the same plan there", "recompute"),
    ("the best plan there", "compute"),
)


def _sideways(traces: Sequence[dict[str, object]], count: int, title: str) -> Figure:
    drawn = layout(
        90 + (ROW + _TALLER) * max(count, 2),
        xaxis=axis(title, tickformat=".2~%", zeroline=True, nticks=6),
        yaxis=downwards(),
        barmode="group",
        margin={"t": 12, "r": 48, "b": 44, "l": 12},
    )
    return {"data": list(traces), "layout": drawn}
