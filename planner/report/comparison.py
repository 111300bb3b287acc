"""The report of `planner compare`: candidates side by side, and what to sign for."""

from collections.abc import Callable, Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner import __version__
from planner.comparison.answer import CandidateAnswer, Comparison, Extra
from planner.comparison.vocabulary import between, days, energy_words, money, saved_for
from planner.planning.reasons import gpus_words
from planner.report.tables import section, sentences
from planner.specs.answer.estimate import Interval
from planner.specs.layouts.layout_text import short_layout

_NONE = "-"
_OPEN = "not settled"
_GIVEN_UP = {"over-budget": "over budget", "too-late": "too late"}


def comparison_report(answer: Comparison) -> RenderableType:
    """Everything that a comparison found."""
    return Group(
        Text(answer.title, style="bold"),
        Text(_asked(answer), style="dim"),
        section("Candidates", candidates_table(answer.candidates)),
        section("Best", sentences([*_best(answer)])),
        *_budget(answer),
        section("Plans", plans_table(answer.candidates)),
        *_front(answer),
        *_extras(answer),
        *_small_print(answer),
    )


def _asked(answer: Comparison) -> str:
    question = answer.question
    parts = []
    if question.deadline_s is not None:
        parts.append(f"in no more than {days(question.deadline_s)}")
    if question.budget_usd is not None:
        parts.append(f"under a budget of {money(question.budget_usd)}")
    asked = " and ".join(parts) or "on the nodes that were given"
    return f"{len(answer.candidates)} candidates, {asked}; planner {__version__}"


def candidates_table(candidates: Sequence[CandidateAnswer]) -> Table:
    """Nodes, time, cost and energy of each candidate."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("candidate")
    for title in ("GPUs", "time to train", "cost", "energy", "tokens/USD", "MFU"):
        table.add_column(title, justify="right")
    table.add_column("")
    for one in candidates:
        table.add_row(*_row(one))
    return table


def _row(one: CandidateAnswer) -> tuple[str | Text, ...]:
    if one.plan is None or one.run is None:
        known = _GIVEN_UP.get(one.status, one.status) if one.settled else _OPEN
        verdict = Text(known, style="red")
        return one.name, "", verdict, "", "", "", "", ""
    cost = one.run.cost_usd
    return (
        one.name,
        f"{one.gpus:,}",
        _between(one.run.time_to_train_s, days),
        _NONE if cost is None else _between(cost.total, money),
        energy_words(one.run.energy_mwh.value),
        _NONE if one.tokens_per_usd is None else f"{one.tokens_per_usd:,.0f}",
        f"{one.plan.estimate.mfu.full_attention:.1%}",
        _mark(one),
    )


def _between(interval: Interval, words: Callable[[float], str]) -> str:
    """A value, and below it the bounds."""
    low, high = words(interval.low), words(interval.high)
    return f"{words(interval.value)}\n{between(low, high)}"


def _mark(one: CandidateAnswer) -> Text:
    if not one.settled:
        return Text(_OPEN, style="yellow")
    if one.status in _GIVEN_UP:
        return Text(_GIVEN_UP[one.status], style="red")
    if one.meets_deadline is False:
        return Text("too late", style="red")
    if one.within_budget is False:
        return Text("over budget", style="red")
    return Text("*", style="bold green") if one.pareto else Text("")


def _best(answer: Comparison) -> Iterator[str]:
    """The candidate to sign for, and reasons for each candidate's node count."""
    if answer.best:
        one = next(c for c in answer.candidates if c.name == answer.best)
        took, gpus = days(one.time_to_train_s or 0.0), one.gpus or 0
        spent = "" if one.cost_usd is None else f" for {money(one.cost_usd)}"
        yield f"{one.name} on {gpus_words(gpus)}: {took}{spent}, {answer.why_best}."
    else:
        yield f"{answer.why_best}."
    if answer.over_quotes:
        yield f"{answer.over_quotes[:1].upper()}{answer.over_quotes[1:]}."
    if any(one.pareto for one in answer.candidates):
        yield "*: no other candidate is both faster and cheaper."
    for one in answer.candidates:
        if one.chosen and one.chosen != "the number that was given":
            yield f"{one.name}: {one.nodes:,} nodes, {one.chosen}."
        if one.why:
            yield f"{one.name}: {one.why}."
        if one.unsettled and one.unsettled != one.why:
            yield f"{one.name} is not settled: {one.unsettled}."


def _budget(answer: Comparison) -> Iterator[RenderableType]:
    """The most training that the budget buys, within the deadline if there is one."""
    budget = answer.question.budget_usd
    if budget is None:
        return
    lines = [
        f"{one.name} on {gpus_words(one.gpus or 0)}: "
        f"{one.budget_tokens / 1e12:,.3g} T tokens "
        f"in {days(one.run.time_to_train_s.value * one.budget_tokens / one.run.tokens)}"
        for one in answer.candidates
        if one.budget_tokens and one.run is not None
    ]
    if lines:
        yield section(f"What {money(budget)} trains", sentences(lines))


def plans_table(candidates: Sequence[CandidateAnswer]) -> Table:
    """The best plan on each candidate, with its gap."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("candidate")
    table.add_column("step", justify="right")
    table.add_column("gap", justify="right")
    table.add_column("memory", justify="right")
    table.add_column("layout")
    for one in candidates:
        if one.plan is None:
            continue
        estimate = one.plan.estimate
        table.add_row(
            one.name,
            f"{estimate.step_time_s.value:.3f} s",
            f"{one.gap or 0.0:.1%}",
            f"{estimate.memory.peak_device_gib.value:.0f} of "
            f"{estimate.memory.capacity_gib:.0f} GiB",
            short_layout(one.plan.layout),
        )
    return table


def _front(answer: Comparison) -> Iterator[RenderableType]:
    if len(answer.front) < 2:
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("candidate")
    for title in ("nodes", "GPUs", "time to train", "cost"):
        table.add_column(title, justify="right")
    for point in answer.front:
        table.add_row(
            point.name,
            f"{point.nodes:,}",
            f"{point.gpus:,}",
            days(point.time_s),
            money(point.cost_usd),
        )
    yield section("Front of time against cost, of all counts planned", table)


def _extras(answer: Comparison) -> Iterator[RenderableType]:
    if not answer.extras:
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("one step of")
    for title in ("saves", "adds to the bill", "for each", "worth up to"):
        table.add_column(title, justify="right")
    for extra in answer.extras:
        table.add_row(*_extra(extra))
    yield section(f"What the next dollar buys, at {answer.best}", table)


def _extra(extra: Extra) -> tuple[str, ...]:
    faster = extra.saved_s > SAME_S
    saves = days(extra.saved_s) if faster else "no time"
    bill = "price unknown" if extra.extra_usd is None else money(extra.extra_usd)
    rate = extra.saved_s_per_usd
    each = ""
    if rate is not None and extra.extra_usd is not None and faster:
        each = saved_for(rate, extra.extra_usd)
    if extra.extra_usd is not None and extra.extra_usd <= 0 and faster:
        each = "pays for itself"
    return extra.change, saves, bill, each, extra.worth or _NONE


SAME_S = 60.0
"""Difference of run times up to which no time is saved. [s]"""


def _small_print(answer: Comparison) -> Iterator[RenderableType]:
    if answer.warnings:
        yield section("Warnings", sentences(answer.warnings))
    prices = [f"{one.name}: {one.price}" for one in answer.candidates]
    yield section("Prices", sentences(prices))
    yield section("Assumptions", sentences(answer.assumptions))
