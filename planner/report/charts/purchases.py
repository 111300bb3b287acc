"""Candidates of a comparison: time against cost, side by side, the next dollar."""

from collections.abc import Iterator, Sequence

from planner.comparison.answer import CandidateAnswer, Extra, FrontPoint
from planner.comparison.vocabulary import days, money
from planner.report.charts.look import (
    ROW,
    Figure,
    Legend,
    Trace,
    axis,
    bars,
    downwards,
    layout,
    rounded,
    wrapped,
)
from planner.specs.answer.estimate import Interval

PALETTE = (
    "compute",
    "tensor",
    "pipeline",
    "data",
    "expert",
    "recompute",
    "end",
    "straggler",
)
"""Colour of each candidate, in the order given. [text]"""
SYMBOLS = ("circle", "square", "diamond", "triangle-up")
"""Symbols; every eight candidates share one. [text]"""
_DAY, _MILLION = 86400.0, 1e6


def candidate_legend(candidates: Sequence[CandidateAnswer]) -> Legend:
    """The colour of every candidate that has a plan.

    Args:
        candidates: Candidates in the order given. [-]

    Returns:
        Name and colour. [text]
    """
    return tuple(
        (one.name, PALETTE[place % len(PALETTE)])
        for place, one in enumerate(candidates)
        if one.time_to_train_s is not None
    )


def time_cost(
    candidates: Sequence[CandidateAnswer], front: Sequence[FrontPoint]
) -> Figure:
    """Every planned node count of every candidate, and the front of all.

    Args:
        candidates: Candidates in the order given. [-]
        front: Points that no node count beats in both time and cost. [-]

    Returns:
        Points; chosen counts are large, a line joins the front. [d, MUSD]
    """
    joined = {
        "type": "scatter",
        "mode": "lines",
        "x": rounded([point.time_s / _DAY for point in front], 3),
        "y": rounded([point.cost_usd / _MILLION for point in front], 4),
        "line": {"color": "@dim", "width": 1, "dash": "dot", "shape": "hv"},
        "hoverinfo": "skip",
    }
    clouds = (_cloud(one, place) for place, one in enumerate(candidates))
    points = [trace for trace in clouds if trace["x"]]
    return {
        "data": [joined, *points],
        "layout": layout(
            420,
            xaxis=axis("time to train [d]", type="log", **_ticks(points)),
            yaxis=axis("cost [MUSD]", rangemode="normal"),
        ),
    }


def _ticks(points: Sequence[Trace]) -> dict[str, object]:
    """Round numbers of days near those that are shown."""
    times = [time for trace in points for time in trace["x"]]  # type: ignore[attr-defined]
    if not times:
        return {}
    low, high = min(times) / 1.2, max(times) * 1.2
    rounds = (step * 10.0**power for power in range(-3, 7) for step in (1, 2, 3, 5, 7))
    ticks = [tick for tick in rounds if low <= tick <= high]
    return {"tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def _cloud(one: CandidateAnswer, place: int) -> Trace:
    """Node counts of one candidate; the chosen count is larger."""
    known = [(p, *_pair(p.time_s, p.cost_usd)) for p in one.points]
    shown = [(p, time, cost) for p, time, cost in known if time and cost]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": rounded([time / _DAY for _, time, _ in shown], 3),
        "y": rounded([cost / _MILLION for _, _, cost in shown], 4),
        "text": [
            f"<b>{one.name}</b><br>{p.nodes:,} nodes, {p.gpus:,} GPUs<br>"
            f"{days(time)}, {money(cost)}"
            for p, time, cost in shown
        ],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "color": f"@{PALETTE[place % len(PALETTE)]}",
            "symbol": SYMBOLS[place // len(PALETTE) % len(SYMBOLS)],
            "size": [15 if p.nodes == one.nodes else 7 for p, _, _ in shown],
            "line": {"color": "@page", "width": 1},
        },
    }


def _pair(time: float | None, cost: float | None) -> tuple[float, float]:
    return (time or 0.0, cost or 0.0)


def side_by_side(candidates: Sequence[CandidateAnswer], measure: str) -> Figure:
    """One measure of every candidate with an interval, best first.

    Args:
        candidates: Candidates in the order given. [-]
        measure: `time`, `cost`, `energy` or `tokens per dollar`. [text]

    Returns:
        Bars in the colour of the candidate.
    """
    found = list(_measured(candidates, measure))
    down = measure == "tokens per dollar"
    found.sort(key=lambda row: -row[1] if down else row[1])
    values = [value for _, value, _, _, _ in found]
    trace = bars(
        [wrapped(name, 26) for name, _, _, _, _ in found],
        rounded(values, 4),
        marker={"color": [f"@{colour}" for *_, colour in found]},
        text=[_said(value) for value in values],
        textposition="inside",
        insidetextanchor="start",
        textfont={"color": "@page"},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": rounded([high - value for _, value, _, high, _ in found], 4),
            "arrayminus": rounded([value - low for _, value, low, _, _ in found], 4),
            "color": "@dim",
            "thickness": 1.2,
            "width": 4,
        },
        hovertemplate="%{y}: %{x:,.4~g}<extra></extra>",
    )
    return {
        "data": [trace],
        "layout": layout(
            80 + (ROW + 8) * max(len(found), 2),
            xaxis=axis(TITLES[measure], rangemode="tozero", nticks=6),
            yaxis=downwards(),
        ),
    }


TITLES = {
    "time": "time to train [d]",
    "cost": "cost [MUSD]",
    "energy": "energy [GWh]",
    "tokens per dollar": "tokens per dollar",
}
"""Measure to the title of the axis."""


def _said(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"


def _measured(
    candidates: Sequence[CandidateAnswer], measure: str
) -> Iterator[tuple[str, float, float, float, str]]:
    """Name, value, low, high and colour of each candidate that has the measure."""
    for place, one in enumerate(candidates):
        bounds = _bounds(one, measure)
        if bounds is not None:
            yield (one.name, *bounds, PALETTE[place % len(PALETTE)])


def _bounds(one: CandidateAnswer, measure: str) -> tuple[float, float, float] | None:
    run = one.run
    if run is None:
        return None
    cost = None if run.cost_usd is None else run.cost_usd.total
    if measure == "tokens per dollar":
        if cost is None or not cost.low:
            return None
        tokens = run.tokens
        return tokens / cost.value, tokens / cost.high, tokens / cost.low
    scales: dict[str, tuple[Interval | None, float]] = {
        "time": (run.time_to_train_s, _DAY),
        "cost": (cost, _MILLION),
        "energy": (run.energy_mwh, 1e3),
    }
    interval, scale = scales[measure]
    if interval is None:
        return None
    return interval.value / scale, interval.low / scale, interval.high / scale


def next_dollar(extras: Sequence[Extra]) -> Figure:
    """Days that each step of more or better hardware saves.

    Args:
        extras: Steps, the best first. [-]

    Returns:
        Bars; steps without a price are pale. [d]
    """
    trace = bars(
        [wrapped(one.change, 24) for one in extras],
        rounded([one.saved_s / _DAY for one in extras], 4),
        marker={"color": [_color(one) for one in extras]},
        hovertext=[_worth(one) for one in extras],
        hovertemplate="%{y}: %{x:.2f} d<br>%{hovertext}<extra></extra>",
    )
    return {
        "data": [trace],
        "layout": layout(
            80 + (ROW + 12) * max(len(extras), 2),
            xaxis=axis("days saved", zeroline=True, nticks=6),
            yaxis=downwards(),
        ),
    }


NEXT_LEGEND: Legend = (("its price is known", "compute"), ("no price", "recompute"))


def _color(one: Extra) -> str:
    return "@recompute" if one.extra_usd is None else "@compute"


def _worth(one: Extra) -> str:
    added = "no price" if one.extra_usd is None else f"adds {money(one.extra_usd)}"
    return ", ".join(filter(None, [added, one.worth]))
