"""Course of a search: bound and incumbent over time, and candidates removed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.document.blocks import Figure, Legend
from planner.report.charts.look import (
    ROW,
    axis,
    bars,
    downwards,
    layout,
    rounded,
    wrapped,
)
from planner.specs.answer.result import Result

TRAIL_LEGEND: Legend = (
    ("best step found", "compute"),
    ("bound: no plan is faster", "comm"),
)
_SHOWN = 12


@dataclass(frozen=True)
class SearchState:
    """State of a search at one time.

    Attributes:
        seconds: Time since the search began. [s]
        incumbent_s: Best step found; none before the first plan. [s]
        bound_s: Lower bound on the step; none while a part of the space is searched.
            [s]
    """

    seconds: float
    incumbent_s: float | None
    bound_s: float | None


def trail_chart(trail: Sequence[SearchState], result: Result) -> Figure:
    """Best step and lower bound of a search over time.

    Returns:
        Two stairs. [s]
    """
    end = max(result.search.seconds, trail[-1].seconds)
    best = min(plan.estimate.step_time_s.value for plan in result.plans)
    found = [(p.seconds, p.incumbent_s) for p in trail if p.incumbent_s is not None]
    bound = [(p.seconds, p.bound_s) for p in trail if p.bound_s]
    last = best * (1 - result.objective.gap)
    lines = (("compute", [*found, (end, best)]), ("comm", [*bound, (end, last)]))
    low, high = bound[0][1] if bound else last, max(v for _, v in lines[0][1])
    room = (high - low) * 0.06 or high * 0.01
    start = trail[0].seconds
    return {
        "data": [_stairs(points, colour) for colour, points in lines],
        "layout": layout(
            320,
            xaxis=axis("time of the search [s]", range=[0, end * 1.01], zeroline=False),
            yaxis=axis("step [s]", range=[low - room, high + room]),
            shapes=[_band(start)],
            annotations=[_word("pricing every candidate", start / 2)],
        ),
    }


def _stairs(
    points: Sequence[tuple[float, float | None]], colour: str
) -> dict[str, object]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": rounded([time for time, _ in points], 3),
        "y": rounded([value or 0.0 for _, value in points], 5),
        "line": {"shape": "hv", "color": f"@{colour}", "width": 2},
        "hovertemplate": "%{x:.1f} s: %{y:.4f} s a step<extra></extra>",
    }


def _band(end: float) -> dict[str, object]:
    place = {"x0": 0, "x1": end, "y0": 0, "y1": 1, "yref": "paper"}
    look = {"fillcolor": "@soft", "line": {"width": 0}, "layer": "below"}
    return {"type": "rect", **place, **look}


def _word(text: str, x: float) -> dict[str, object]:
    place = {"x": x, "y": 0.5, "yref": "paper", "showarrow": False, "textangle": -90}
    return {"text": text, **place, "font": {"color": "@dim", "size": 12}}


def removed_chart(pruned: Mapping[str, int]) -> Figure:
    """Number of candidates that each rule removed, on a logarithmic axis.

    Returns:
        Bars, most first; rules beyond the twelfth are in the table alone.
    """
    rules = sorted(pruned.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN]
    counts = [count for _, count in rules]
    trace = bars(
        [wrapped(rule) for rule, _ in rules],
        counts,
        text=[f"{count:,}" for count in counts],
        textposition="outside",
        cliponaxis=False,
        marker={"color": "@compute"},
        hovertemplate="%{y}: %{x:,}<extra></extra>",
    )
    return {
        "data": [trace],
        "layout": layout(
            80 + (ROW + 6) * len(rules),
            xaxis=axis("candidates removed", type="log", dtick=1, rangemode="tozero"),
            yaxis=downwards(),
            margin={"t": 12, "r": 56, "b": 44, "l": 12},
        ),
    }
