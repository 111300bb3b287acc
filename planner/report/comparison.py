"""The answer of `planner compare`: candidates side by side, and what to sign for."""

from collections.abc import Callable, Iterator, Sequence

from planner.document.blocks import (
    Block,
    Chart,
    Document,
    Facts,
    Folded,
    Notes,
    Section,
    Table,
    Tile,
    listed,
    section,
)
from planner.planning.comparison.answer import CandidateAnswer, Comparison, Extra
from planner.planning.comparison.vocabulary import (
    between,
    days,
    energy_words,
    money,
    saved_for,
)
from planner.planning.reasons import gpus_words
from planner.report.charts.purchases import (
    NEXT_LEGEND,
    candidate_legend,
    next_dollar,
    side_by_side,
    time_cost,
)
from planner.report.sections.run import run_rows
from planner.specs.answer.estimate import Interval
from planner.specs.counted import counted
from planner.specs.layouts.layout_text import short_layout

_NONE = "-"
_MEASURES = {
    "time": "Time to train",
    "cost": "Cost of the run",
    "tokens per dollar": "Tokens per dollar",
    "energy": "Energy",
}
SAME_S = 60.0
"""Difference of run times up to which no time is saved. [s]"""


def comparison_document(answer: Comparison) -> Document:
    """Everything that a comparison found."""
    best = next((c for c in answer.candidates if c.name == answer.best), None)
    return Document(
        title="planner compare",
        eyebrow=f"{answer.title}; {_asked(answer)}",
        answer=_answer(best) if best else "No candidate to sign for",
        lead=_lead(answer),
        tiles=list(_tiles(best)) if best else [],
        sections=[
            _candidates(answer),
            *_budget(answer),
            *_front(answer),
            *_next(answer),
            *_plans(answer.candidates),
            *_runs(answer.candidates),
            *_small_print(answer),
        ],
    )


def _lead(answer: Comparison) -> str:
    reasons = filter(None, (answer.why_best, answer.over_quotes))
    return " ".join(f"{words[:1].upper()}{words[1:]}." for words in reasons)


def _asked(answer: Comparison) -> str:
    question = answer.question
    parts = [counted(len(answer.candidates), "candidate")]
    if question.deadline_s is not None:
        parts.append(f"in no more than {days(question.deadline_s)}")
    if question.budget_usd is not None:
        parts.append(f"for no more than {money(question.budget_usd)}")
    return ", ".join(parts)


def _answer(best: CandidateAnswer) -> str:
    gpus, time = best.gpus or 0, days(best.time_to_train_s or 0.0)
    cost = "" if best.cost_usd is None else f" for {money(best.cost_usd)}"
    return f"{best.name} on {gpus_words(gpus)}: {time}{cost}"


def _tiles(best: CandidateAnswer) -> Iterator[Tile]:
    run, plan = best.run, best.plan
    if run is None or plan is None:
        return
    yield Tile("Time to train", *_with_bounds(run.time_to_train_s, days))
    if run.cost_usd is not None:
        yield Tile("Cost", *_with_bounds(run.cost_usd.total, money))
    yield Tile("Energy", energy_words(run.energy_mwh.value))
    mfu, step = plan.estimate.mfu.full_attention, plan.estimate.step_time_s.value
    yield Tile("Share of peak (MFU)", f"{mfu:.1%}", f"{step:.3f} s a step")
    if best.tokens_per_usd is not None:
        price = (best.price or "").partition(",")[0]
        yield Tile("Tokens per dollar", f"{best.tokens_per_usd:,.0f}", price)


def _with_bounds(interval: Interval, words: Callable[[float], str]) -> tuple[str, str]:
    """A value in words, and its bounds."""
    return words(interval.value), between(words(interval.low), words(interval.high))


def _candidates(answer: Comparison) -> Section:
    columns = ("candidate", "verdict", "GPUs", "time to train", "cost", "energy")
    table = Table(
        (*columns, "tokens/USD", "MFU"), [*map(_row, answer.candidates)], words=2
    )
    reasons = [*_reasons(answer.candidates)]
    note = "Whiskers are the interval of the step time, carried through."
    figures = {
        title: figure
        for measure, title in _MEASURES.items()
        if (figure := side_by_side(answer.candidates, measure))["data"][0]["x"]  # type: ignore[index]
    }
    charts = [
        Chart(figure, title, note="" if place else note)
        for place, (title, figure) in enumerate(figures.items())
    ]
    lead = (
        "*: no other candidate is both faster and cheaper. Bounds hold 90% of what is "
        "measured."
    )
    parts = [table, *listed("Why", reasons), *charts]
    has_plan = any(one.plan for one in answer.candidates)
    return Section("candidates", "Candidates", parts, lead if has_plan else "")


def _row(one: CandidateAnswer) -> tuple[str, ...]:
    if one.plan is None or one.run is None:
        return (one.name, _verdict(one), *[""] * 6)
    cost, rate = one.run.cost_usd, one.tokens_per_usd
    return (
        one.name,
        _verdict(one),
        f"{one.gpus or 0:,}",
        "\n".join(_with_bounds(one.run.time_to_train_s, days)),
        _NONE if cost is None else "\n".join(_with_bounds(cost.total, money)),
        energy_words(one.run.energy_mwh.value),
        _NONE if rate is None else f"{rate:,.0f}",
        f"{one.plan.estimate.mfu.full_attention:.1%}",
    )


def _verdict(one: CandidateAnswer) -> str:
    if not one.settled:
        return "not settled"
    if one.plan is None or one.status in {"over-budget", "too-late"}:
        return one.status.replace("-", " ")
    if one.meets_deadline is False:
        return "too late"
    if one.within_budget is False:
        return "over budget"
    return "*" if one.pareto else ""


def _reasons(candidates: Sequence[CandidateAnswer]) -> Iterator[str]:
    """Reasons for each node count, and against candidates."""
    for one in candidates:
        if one.chosen and one.nodes is not None:
            yield f"{one.name}: {counted(one.nodes, 'node')}, {one.chosen}."
        if one.why:
            yield f"{one.name}: {one.why}."
        if one.unsettled and one.unsettled != one.why:
            yield f"{one.name} is not settled: {one.unsettled}."


def _budget(answer: Comparison) -> list[Section]:
    """The most training that the budget buys, within the deadline if there is one."""
    budget = answer.question.budget_usd
    lines = [
        f"{one.name} on {gpus_words(one.gpus or 0)}: "
        f"{one.budget_tokens / 1e12:,.3g} T tokens "
        f"in {days(one.run.time_to_train_s.value * one.budget_tokens / one.run.tokens)}"
        for one in answer.candidates
        if one.budget_tokens and one.run is not None
    ]
    title = f"What {money(budget or 0.0)} trains"
    return section("budget", title, listed("", lines)) if budget else []


def _front(answer: Comparison) -> list[Section]:
    points = answer.front
    rows = [
        (p.name, f"{p.nodes:,}", f"{p.gpus:,}", days(p.time_s), money(p.cost_usd))
        for p in points
    ]
    columns = ("candidate", "nodes", "GPUs", "time to train", "cost")
    chart = Chart(
        time_cost(answer.candidates, points),
        "Every node count that was planned",
        candidate_legend(answer.candidates),
        "Large: the count chosen of each candidate. The dotted stair is the "
        "front: nothing planned is both faster and cheaper.",
    )
    front = Folded("The front", [Table(columns, rows)])
    return section("front", "Time against cost", [chart, front]) if points else []


def _next(answer: Comparison) -> list[Section]:
    extras = answer.extras
    columns = ("one step of", "worth up to", "saves", "adds to the bill", "for each")
    parts: list[Block] = [
        Chart(next_dollar(extras), "Time saved by one step", NEXT_LEGEND),
        Table(columns, [*map(_extra, extras)], words=2),
    ]
    title = "What the next dollar buys"
    lead = f"One step of more or better hardware for {answer.best}."
    return section("next", title, parts, lead) if extras else []


def _extra(extra: Extra) -> tuple[str, ...]:
    is_faster = extra.saved_s > SAME_S
    saves = days(extra.saved_s) if is_faster else "no time"
    bill = "price unknown" if extra.extra_usd is None else money(extra.extra_usd)
    rate, each = extra.saved_s_per_usd, ""
    if is_faster and extra.extra_usd is not None:
        if extra.extra_usd <= 0:
            each = "pays for itself"
        elif rate is not None:
            each = saved_for(rate, extra.extra_usd)
    worth = ", ".join(filter(None, [extra.worth, extra.note]))
    return extra.change, worth or _NONE, saves, bill, each


def _plans(candidates: Sequence[CandidateAnswer]) -> list[Section]:
    rows = [
        (
            one.name,
            f"{part.name} {short_layout(part.plan.layout)}".strip().replace(",", ", "),
            one.status,
            f"{part.plan.estimate.step_time_s.value:.3f}",
            _NONE if one.gap is None else f"{one.gap:.2%}",
            f"{part.plan.estimate.memory.peak_device_gib.value:.1f}",
        )
        for one in candidates
        for part in one.plans
    ]
    table = Table(("candidate", "plan", "proof", "step s", "gap", "GiB"), rows, words=3)
    lead = "The gap is how much faster another plan may be, at most."
    return section("plans", "Plans", [table] if rows else [], lead)


def _runs(candidates: Sequence[CandidateAnswer]) -> list[Section]:
    parts = [
        Folded(one.name, [Facts(run_rows(one.run))], is_appendix=True)
        for one in candidates
        if one.run is not None
    ]
    return section("runs", "The run on each", parts)


def _small_print(answer: Comparison) -> list[Section]:
    candidates = answer.candidates
    runs = [line for one in candidates if one.run for line in one.run.assumptions]
    lists = {
        "Warnings": answer.warnings,
        "Prices": [f"{c.name}: {c.price}" for c in candidates if c.price],
        "Behind the intervals": [
            f"{c.name}: {c.interval_from}" for c in candidates if c.interval_from
        ],
        "Assumed": list(dict.fromkeys([*answer.assumptions, *runs])),
    }
    parts = [Notes(lines, title) for title, lines in lists.items() if lines]
    return section("assumptions", "Assumptions and sources", parts)
