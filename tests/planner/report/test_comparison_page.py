"""The page of a comparison: candidates side by side, the front, the next dollar."""

from html.parser import HTMLParser
from typing import Any

import pytest
from plotly.graph_objects import Figure

from planner.planning.comparison.answer import (
    CandidateAnswer,
    Comparison,
    Effort,
    Extra,
    PhasePlan,
    Point,
    Question,
)
from planner.planning.comparison.choice.front import front, marked
from planner.planning.comparison.choice.quotes import over_the_quotes, quotes_behind
from planner.planning.comparison.flow import borrowed_rates
from planner.planning.comparison.read import Sweep
from planner.planning.comparison.vocabulary import between
from planner.report.charts.purchases import side_by_side, time_cost
from planner.report.comparison import comparison_document
from planner.report.pages import page_html
from planner.specs.answer.estimate import Interval
from planner.specs.answer.result import RankedPlan
from planner.specs.answer.run import Run, RunCheckpoint, RunCost, RunNodes

DAY = 86400.0


def about(value: float) -> Interval:
    return Interval(value=value, low=0.8 * value, high=1.3 * value)


def run_of(days: float, cost: float) -> Run:
    return Run(
        tokens=1e12,
        tokens_rule="given",
        time_to_train_s=about(days * DAY),
        effective_share=Interval(value=0.9, low=0.85, high=0.95),
        interruptions=about(12.0),
        gpu_hours=about(1e5),
        cost_usd=RunCost(total=about(cost), price="2 USD/GPU-h"),
        energy_mwh=about(1000.0),
        carbon_t=about(300.0),
        checkpoint=RunCheckpoint(
            total_gib=10.0,
            write_s=5.0,
            stall_s=1.0,
            interval_s=600.0,
            asynchronous=True,
        ),
        nodes=RunNodes(training=2, idle=0, spare=0, paid=2),
        stretches=(),
        assumptions=("broken nodes are replaced",),
    )


def candidate(name: str, plan: RankedPlan, days: float, cost: float) -> CandidateAnswer:
    points = tuple(
        Point(
            nodes=nodes,
            gpus=8 * nodes,
            status="optimal",
            time_s=2 * days * DAY / nodes,
            cost_usd=cost * (1 + 0.1 * (nodes - 2)),
        )
        for nodes in (1, 2, 4)
    )
    return CandidateAnswer(
        name=name,
        status="optimal",
        gpu="h100-sxm5-80gb",
        price="2 USD/GPU-h: a quote",
        chosen="the most that it buys",
        plan=plan,
        plans=(PhasePlan(name="", plan=plan),),
        gap=0.02,
        nodes=2,
        gpus=16,
        time_to_train_s=days * DAY,
        cost_usd=cost,
        energy_mwh=1000.0,
        tokens_per_usd=1e12 / cost,
        run=run_of(days, cost),
        points=points,
    )


@pytest.fixture
def answer(one_plan: RankedPlan) -> Comparison:
    none = CandidateAnswer(
        name="<none>",
        status="infeasible",
        gpu="l4",
        price="1 USD/GPU-h",
        why="nothing fits <it>",
    )
    found = [
        candidate("fast", one_plan, 10.0, 2e6),
        candidate("cheap", one_plan, 20.0, 1e6),
        candidate("neither", one_plan, 30.0, 3e6),
        none,
    ]
    candidates = tuple(marked(found))
    return Comparison(
        title="a job",
        question=Question(tokens=1e12, budget_usd=5e6),
        effort=Effort(time_limit_s=20.0, tolerance=0.05),
        candidates=candidates,
        best="fast",
        why_best="the fastest that 5 MUSD pays for",
        front=front(candidates),
        extras=(
            Extra(change="NICs of twice the rate", time_s=9 * DAY, saved_s=DAY),
            Extra(
                change="more GPUs",
                time_s=8 * DAY,
                saved_s=2 * DAY,
                cost_usd=2.5e6,
                extra_usd=5e5,
            ),
        ),
        warnings=("a warning",),
        assumptions=("an assumption",),
    )


class Words(HTMLParser):
    """Text outside scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.inside = "", ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        del attrs
        self.inside = tag

    def handle_data(self, data: str) -> None:
        if self.inside not in {"script", "style"}:
            self.text += data


def test_the_page_says_what_was_found(answer: Comparison) -> None:
    words = Words()
    words.feed(page_html(comparison_document(answer)))
    for part in (
        "fast on 16 GPUs: 10.0 d for 2.00 MUSD",
        "The fastest that 5 MUSD pays for.",
        "nothing fits <it>",
        "2 USD/GPU-h: a quote",
        "8.00 to 13.0 d",
        "1.60 to 2.60 MUSD",
        "NICs of twice the rate",
        "fast: 2 nodes, the most that it buys.",
        "a warning",
        "an assumption",
        "broken nodes are replaced",
    ):
        assert part in words.text


@pytest.mark.parametrize(
    ("days", "cost", "titles"),
    [
        (20.0, 2e6, {"time to train [d]", "cost [MUSD]"}),
        (0.2, 2e3, {"time to train [h]", "cost [kUSD]"}),
        (0.2, 20.0, {"time to train [h]", "cost [USD]"}),
    ],
)
def test_bars_and_points_are_in_units_of_their_size(
    one_plan: RankedPlan, days: float, cost: float, titles: set[str]
) -> None:
    """No bar of 0.0017 MUSD: the largest end of an interval has the unit."""
    one = candidate("a", one_plan, days, cost)
    charts: list[Any] = [side_by_side([one], each) for each in ("time", "cost")]
    assert {chart["layout"]["xaxis"]["title"]["text"] for chart in charts} == titles
    assert all(float(chart["data"][0]["x"][0]) >= 1 for chart in charts)
    points: Any = time_cost([one], front([one]))
    axes = points["layout"]["xaxis"], points["layout"]["yaxis"]
    assert {axis["title"]["text"] for axis in axes} == titles


def test_bounds_name_a_unit_once() -> None:
    assert between("1.20 kUSD", "2.40 kUSD") == "1.20 to 2.40 kUSD"
    assert between("960 USD", "3.84 kUSD") == "960 USD to 3.84 kUSD"


def plain(part: Any) -> Any:
    """A figure with a colour in the place of every name of the palette."""
    if isinstance(part, str):
        return "#123456" if part.startswith("@") else part
    if isinstance(part, list | tuple):
        return [plain(item) for item in part]
    if isinstance(part, dict):
        return {key: plain(value) for key, value in part.items()}
    return part


def test_plotly_knows_every_property(answer: Comparison) -> None:
    charts = comparison_document(answer).charts()
    assert len(charts) == 6
    for chart in charts:
        Figure(**plain(chart.figure)).to_dict()


def test_every_planned_count_is_a_point_and_the_front_a_line(
    answer: Comparison,
) -> None:
    """The line has no point that another beats in both; the chosen ones are large."""
    joined, *clouds = time_cost(answer.candidates, answer.front)["data"]  # type: ignore[misc]
    assert [len(cloud["x"]) for cloud in clouds] == [3, 3, 3]
    assert all(cloud["marker"]["size"].count(15) == 1 for cloud in clouds)
    pairs = list(zip(joined["x"], joined["y"], strict=True))
    assert pairs == sorted(pairs)
    assert [cost for _, cost in pairs] == sorted([c for _, c in pairs], reverse=True)
    points = [p for cloud in clouds for p in zip(cloud["x"], cloud["y"], strict=True)]
    for time, cost in pairs:
        assert not any(a < time and b < cost for a, b in points)


@pytest.mark.parametrize(
    ("measure", "order"),
    [
        ("time", ["fast", "cheap", "neither"]),
        ("cost", ["cheap", "fast", "neither"]),
        ("tokens per dollar", ["cheap", "fast", "neither"]),
    ],
)
def test_bars_stand_best_first_with_their_intervals(
    answer: Comparison, measure: str, order: list[str]
) -> None:
    (trace,) = side_by_side(answer.candidates, measure)["data"]  # type: ignore[misc]
    assert trace["y"] == order
    assert all(low > 0 for low in trace["error_x"]["arrayminus"])
    assert all(high > 0 for high in trace["error_x"]["array"])


def test_a_verdict_names_the_rates_that_other_chips_lend(one_plan: RankedPlan) -> None:
    known = candidate("known", one_plan, 10.0, 2e6)
    lent = known.model_copy(update={"name": "new", "unmeasured": ("attention", "gemm")})
    planless = lent.model_copy(update={"name": "none", "plan": None})
    assert borrowed_rates([known]) == "every rate behind it was measured on its chip"
    assert borrowed_rates([known, lent, planless]) == (
        "borrowed from other chips behind it: attention, gemm of new"
    )


def quoted(
    name: str, plan: RankedPlan, quotes: int, costs: tuple[float, float, float]
) -> CandidateAnswer:
    """A candidate whose run costs so much at the least, the median, the greatest."""
    low, usual, high = costs
    return candidate(name, plan, 10.0, usual).model_copy(
        update={"quotes": quotes, "cost_range_usd": (low, high)}
    )


def test_a_verdict_names_the_prices_of_fewer_than_three_quotes(
    one_plan: RankedPlan,
) -> None:
    many, pair, lone = (
        quoted(f"of {n}", one_plan, n, (1e6, 2e6, 3e6)) for n in (3, 2, 1)
    )
    unpriced = candidate("unpriced", one_plan, 10.0, 1e6)
    assert quotes_behind([many, unpriced]) == (
        "every price is the median of 3 quotes or more"
    )
    assert quotes_behind([many, pair, lone]) == (
        "prices rest on fewer than 3 quotes: two of of 2, one of of 1"
    )
    assert quotes_behind([unpriced]) == ""


@pytest.mark.parametrize(
    ("best", "rival", "words"),
    [
        (
            (1e6, 2e6, 3e6),
            (4e6, 5e6, 6e6),
            "at the least of all and at the greatest of all A wins too, and no quotes",
        ),
        (
            (1e6, 2e6, 9e6),
            (2e6, 3e6, 4e6),
            "at the least of all A wins, at the greatest B; at its greatest it loses",
        ),
        (
            (1e6, 2e6, 3e6),
            (2e6, 3e6, 4e6),
            "A wins too; at its greatest it loses to B at its least",
        ),
    ],
)
def test_the_winner_over_the_spread_of_the_quotes(
    one_plan: RankedPlan,
    best: tuple[float, float, float],
    rival: tuple[float, float, float],
    words: str,
) -> None:
    a, b = quoted("A", one_plan, 3, best), quoted("B", one_plan, 3, rival)
    question = Question(tokens=1e12, deadline_s=30 * DAY)
    sweep = Sweep((), question, Effort(tolerance=0.05), "")
    assert words in over_the_quotes(sweep, [a, b], a)


def test_under_a_budget_the_greatest_quote_may_break_it(one_plan: RankedPlan) -> None:
    a = quoted("A", one_plan, 3, (1e6, 2e6, 6e6))
    sweep = Sweep((), Question(tokens=1e12, budget_usd=5e6), Effort(tolerance=0.05), "")
    assert over_the_quotes(sweep, [a], a) == (
        "over the quotes A costs 1.00 MUSD to 6.00 MUSD, at the greatest over the "
        "budget of 5.00 MUSD"
    )
    fixed = quoted("A", one_plan, 1, (2e6, 2e6, 2e6))
    assert over_the_quotes(sweep, [fixed], fixed) == ""
