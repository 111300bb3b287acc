"""Candidates of a comparison: time against cost, side by side, the next dollar."""

from collections.abc import Iterator, Sequence

from planner.document.blocks import Figure, Legend
from planner.planning.comparison.answer import CandidateAnswer, Extra, FrontPoint
from planner.planning.comparison.vocabulary import (
    days,
    days_unit,
    energy_unit,
    money,
    money_unit,
)
from planner.report.charts.look import (
    ROW,
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
SPAN = 3.0
"""Longest time over the shortest, up to which an axis of time is linear. [1]"""


def candidate_legend(candidates: Sequence[CandidateAnswer]) -> Legend:
    """The colour of every candidate that has a plan."""
    return tuple(
        (one.name, PALETTE[place % len(PALETTE)])
        for place, one in enumerate(candidates)
        if one.time_to_train_s is not None
    )


def time_cost(
    candidates: Sequence[CandidateAnswer], front: Sequence[FrontPoint]
) -> Figure:
    """Every planned node count of every candidate, and the front of all.

    Returns:
        Points; chosen counts are large, a line joins the front.
    """
    (day, day_name), (dollar, dollar_name) = _units(candidates)
    joined = {
        "type": "scatter",
        "mode": "lines",
        "x": rounded([point.time_s / day for point in front], 3),
        "y": rounded([point.cost_usd / dollar for point in front], 4),
        "line": {"color": "@dim", "width": 1, "dash": "dot", "shape": "hv"},
        "hoverinfo": "skip",
    }
    clouds = (_cloud(one, n, day, dollar) for n, one in enumerate(candidates))
    points = [trace for trace in clouds if trace["x"]]
    return {
        "data": [joined, *points],
        "layout": layout(
            420,
            xaxis=axis(f"time to train [{day_name}]", **_scale(points)),
            yaxis=axis(f"cost [{dollar_name}]", rangemode="normal"),
        ),
    }


Units = tuple[tuple[float, str], tuple[float, str]]


def _units(candidates: Sequence[CandidateAnswer]) -> Units:
    """Units of time and of money for every planned node count."""
    points = [point for one in candidates for point in one.points]
    longest = max((point.time_s or 0.0 for point in points), default=0.0)
    most = max((point.cost_usd or 0.0 for point in points), default=0.0)
    return days_unit(longest), money_unit(most)


def _scale(points: Sequence[Trace]) -> dict[str, object]:
    """A linear axis of times that are alike, else a logarithmic one, round ticks."""
    times = [time for trace in points for time in trace["x"]]  # type: ignore[attr-defined]
    if not times or max(times) < SPAN * min(times):
        return {"nticks": 6}
    low, high = min(times) / 1.2, max(times) * 1.2
    rounds = (step * 10.0**power for power in range(-3, 7) for step in (1, 2, 3, 5, 7))
    ticks = [tick for tick in rounds if low <= tick <= high]
    named = [f"{tick:g}" for tick in ticks]
    return {"type": "log", "tickvals": ticks, "ticktext": named}


def _cloud(one: CandidateAnswer, place: int, day: float, dollar: float) -> Trace:
    """Node counts of one candidate; the chosen count is larger."""
    known = [(p, *_pair(p.time_s, p.cost_usd)) for p in one.points]
    shown = [(p, time, cost) for p, time, cost in known if time and cost]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": rounded([time / day for _, time, _ in shown], 3),
        "y": rounded([cost / dollar for _, _, cost in shown], 4),
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
    """One measure of every candidate with an interval, best first."""
    found = list(_measured(candidates, measure))
    down = measure == "tokens per dollar"
    found.sort(key=lambda row: -row[1].value if down else row[1].value)
    scale, title = _drawn_in(measure, [interval.high for _, interval, _ in found])
    values = [interval.value / scale for _, interval, _ in found]
    above = [(i.high - i.value) / scale for _, i, _ in found]
    below = [(i.value - i.low) / scale for _, i, _ in found]
    trace = bars(
        [wrapped(name, 26) for name, _, _ in found],
        rounded(values, 4),
        marker={"color": [f"@{colour}" for *_, colour in found]},
        text=[_said(value) for value in values],
        textposition="inside",
        insidetextanchor="start",
        textfont={"color": "@page"},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": rounded(above, 4),
            "arrayminus": rounded(below, 4),
            "color": "@ink",
            "thickness": 1.2,
            "width": 4,
        },
        hovertemplate="%{y}: %{x:,.4~g}<extra></extra>",
    )
    return {
        "data": [trace],
        "layout": layout(
            80 + (ROW + 8) * max(len(found), 2),
            xaxis=axis(title, rangemode="tozero", nticks=6),
            yaxis=downwards(),
        ),
    }


def _drawn_in(measure: str, values: Sequence[float]) -> tuple[float, str]:
    """Scale and title of the axis of a measure."""
    most = max(values, default=0.0)
    if measure == "tokens per dollar":
        return 1.0, measure
    title, unit = {
        "time": ("time to train", days_unit),
        "cost": ("cost", money_unit),
        "energy": ("energy", energy_unit),
    }[measure]
    scale, name = unit(most)
    return scale, f"{title} [{name}]"


def _said(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"


def _measured(
    candidates: Sequence[CandidateAnswer], measure: str
) -> Iterator[tuple[str, Interval, str]]:
    """Name, interval and colour of each candidate that has the measure."""
    for place, one in enumerate(candidates):
        found = _interval(one, measure)
        if found is not None:
            yield one.name, found, PALETTE[place % len(PALETTE)]


def _interval(one: CandidateAnswer, measure: str) -> Interval | None:
    """A measure of a candidate. [s, USD, MWh or token/USD]."""
    run = one.run
    if run is None:
        return None
    cost = None if run.cost_usd is None else run.cost_usd.total
    if measure != "tokens per dollar":
        known = {"time": run.time_to_train_s, "cost": cost, "energy": run.energy_mwh}
        return known[measure]
    if cost is None or not cost.low:
        return None
    tokens = run.tokens
    low, high = tokens / cost.high, tokens / cost.low
    return Interval(value=tokens / cost.value, low=low, high=high)


def next_dollar(extras: Sequence[Extra]) -> Figure:
    """Time that each step of more or better hardware saves."""
    unit, name = days_unit(max((one.saved_s for one in extras), default=0.0))
    trace = bars(
        [wrapped(one.change, 24) for one in extras],
        rounded([one.saved_s / unit for one in extras], 4),
        marker={"color": [_color(one) for one in extras]},
        hovertext=[_worth(one) for one in extras],
        hovertemplate=f"%{{y}}: %{{x:.2f}} {name}<br>%{{hovertext}}<extra></extra>",
    )
    return {
        "data": [trace],
        "layout": layout(
            80 + (ROW + 12) * max(len(extras), 2),
            xaxis=axis(f"time saved [{name}]", zeroline=True, nticks=6),
            yaxis=downwards(),
        ),
    }


NEXT_LEGEND: Legend = (("its price is known", "compute"), ("no price", "recompute"))


def _color(one: Extra) -> str:
    return "@recompute" if one.extra_usd is None else "@compute"


def _worth(one: Extra) -> str:
    added = "no price" if one.extra_usd is None else f"adds {money(one.extra_usd)}"
    return ", ".join(filter(None, [added, one.worth]))
