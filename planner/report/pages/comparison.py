"""The page of `planner compare`: candidates side by side, and what to sign for."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from planner.comparison.answer import CandidateAnswer, Comparison
from planner.comparison.vocabulary import (
    between,
    days,
    energy_words,
    money,
    tokens_words,
)
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
)
from planner.planning.reasons import gpus_words
from planner.report.charts.purchases import (
    NEXT_LEGEND,
    candidate_legend,
    next_dollar,
    side_by_side,
    time_cost,
)
from planner.report.run import run_rows
from planner.specs.answer.estimate import Interval
from planner.specs.layouts.layout_text import short_layout

_MEASURES = {
    "time": "Time to train",
    "cost": "Cost of the run",
    "tokens per dollar": "Tokens per dollar",
    "energy": "Energy",
}


def comparison_page(answer: Comparison) -> Document:
    """Everything that a comparison found."""
    best = next((c for c in answer.candidates if c.name == answer.best), None)
    return Document(
        title="planner compare",
        eyebrow=f"{answer.title}; {_asked(answer)}",
        answer=_answer(best) if best else "No candidate to sign for",
        lead=_lead(answer),
        tiles=list(_tiles(best)) if best else [],
        sections=[
            *_candidates(answer),
            *_front(answer),
            *_next(answer),
            _plans(answer.candidates),
            *_runs(answer.candidates),
            _small_print(answer),
        ],
    )


def _lead(answer: Comparison) -> str:
    said = filter(None, (answer.why_best, answer.over_quotes))
    return " ".join(f"{words[:1].upper()}{words[1:]}." for words in said)


def _asked(answer: Comparison) -> str:
    question = answer.question
    parts = [tokens_words(question.tokens)]
    if question.deadline_s is not None:
        parts.append(f"in no more than {days(question.deadline_s)}")
    if question.budget_usd is not None:
        parts.append(f"for no more than {money(question.budget_usd)}")
    return f"{len(answer.candidates)} candidates, {', '.join(parts)}"


def _answer(best: CandidateAnswer) -> str:
    gpus, took = best.gpus or 0, days(best.time_to_train_s or 0.0)
    spent = "" if best.cost_usd is None else f" for {money(best.cost_usd)}"
    return f"{best.name} on {gpus_words(gpus)}: {took}{spent}"


def _tiles(best: CandidateAnswer) -> Iterator[Tile]:
    run, plan = best.run, best.plan
    if run is None or plan is None:
        return
    time, cost = run.time_to_train_s, run.cost_usd
    yield Tile(
        "Time to train", days(time.value), between(days(time.low), days(time.high))
    )
    if cost is not None:
        low, high = money(cost.total.low), money(cost.total.high)
        yield Tile("Cost", money(cost.total.value), between(low, high))
    amount, unit = energy_words(run.energy_mwh.value).split()
    yield Tile("Energy", amount, unit)
    mfu, step = plan.estimate.mfu.full_attention, plan.estimate.step_time_s.value
    yield Tile("Share of peak (MFU)", f"{mfu:.1%}", f"{step:.3f} s a step")
    if best.tokens_per_usd is not None:
        priced = (best.price or "").partition(",")[0]
        yield Tile("Tokens per dollar", f"{best.tokens_per_usd:,.0f}", priced)


def _candidates(answer: Comparison) -> Iterator[Section]:
    legend = candidate_legend(answer.candidates)
    parts: list[Block] = []
    for measure, title in _MEASURES.items():
        figure = side_by_side(answer.candidates, measure)
        if _has_bars(figure):
            note = "Whiskers are the interval of the step time, carried through."
            parts.append(Chart(figure, title, note="" if parts else note))
    rows = tuple(_row(one) for one in answer.candidates)
    columns = (
        "candidate",
        "verdict",
        "nodes",
        "GPUs",
        "time",
        "time, 90%",
        "cost",
        "cost, 90%",
        "energy",
        "tokens per dollar",
        "MFU",
    )
    table = Table(columns, rows, words=2)
    lead = (
        "A star: no other candidate is both faster and cheaper. Bounds hold 90% of "
        "what is measured."
    )
    yield Section("candidates", "Side by side", [table, *parts], lead if legend else "")


def _has_bars(figure: dict[str, Any]) -> bool:
    (bars,) = figure["data"]
    return bool(bars["x"])


def _row(one: CandidateAnswer) -> tuple[str, ...]:
    if one.plan is None or one.run is None:
        said = one.why or one.status
        known = said if one.settled else f"not settled: {one.unsettled or said}"
        return (one.name, known, *[""] * 9)
    cost = one.run.cost_usd
    return (
        one.name,
        _verdict(one),
        f"{one.nodes or 0:,}",
        f"{one.gpus or 0:,}",
        *_with_bounds(one.run.time_to_train_s, days),
        *_with_bounds(None if cost is None else cost.total, money),
        energy_words(one.run.energy_mwh.value),
        "-" if one.tokens_per_usd is None else f"{one.tokens_per_usd:,.0f}",
        f"{one.plan.estimate.mfu.full_attention:.1%}",
    )


def _with_bounds(
    interval: Interval | None, said: Callable[[float], str]
) -> tuple[str, str]:
    """A value in words, and its bounds."""
    if interval is None:
        return "-", "-"
    return said(interval.value), between(said(interval.low), said(interval.high))


def _verdict(one: CandidateAnswer) -> str:
    if not one.settled:
        return f"not settled: {one.unsettled}"
    if one.status in {"over-budget", "too-late"}:
        return one.status.replace("-", " ")
    if one.meets_deadline is False:
        return "too late"
    if one.within_budget is False:
        return "over budget"
    return "*" if one.pareto else ""


def _front(answer: Comparison) -> Iterator[Section]:
    if not answer.front:
        return
    rows = tuple(
        (p.name, f"{p.nodes:,}", f"{p.gpus:,}", days(p.time_s), money(p.cost_usd))
        for p in answer.front
    )
    columns = ("candidate", "nodes", "GPUs", "time", "cost")
    yield Section(
        "front",
        "Time against cost",
        [
            Chart(
                time_cost(answer.candidates, answer.front),
                "Every node count that was planned",
                candidate_legend(answer.candidates),
                "Large: the count chosen of each candidate. The dotted stair is the "
                "front: nothing planned is both faster and cheaper.",
            ),
            Folded("The front", [Table(columns, rows)]),
        ],
    )


def _next(answer: Comparison) -> Iterator[Section]:
    if not answer.extras:
        return
    rows = tuple(
        (
            one.change,
            ", ".join(filter(None, [one.worth, one.note])),
            days(one.saved_s) if one.saved_s > 0 else "-",
            "-" if one.extra_usd is None else money(one.extra_usd),
        )
        for one in answer.extras
    )
    columns = ("change", "worth it", "saves", "adds")
    yield Section(
        "next",
        "What the next dollar buys",
        [
            Chart(next_dollar(answer.extras), "Time saved by one step", NEXT_LEGEND),
            Table(columns, rows, words=2),
        ],
        f"One step of more or better hardware for {answer.best}.",
    )


def _plans(candidates: Sequence[CandidateAnswer]) -> Section:
    rows = tuple(
        (
            one.name,
            " ".join([part.name, short_layout(part.plan.layout)]).replace(",", ", "),
            one.status,
            f"{part.plan.estimate.step_time_s.value:.3f}",
            "-" if one.gap is None else f"{one.gap:.2%}",
            f"{part.plan.estimate.memory.peak_device_gib.value:.1f}",
        )
        for one in candidates
        for part in one.plans
    )
    columns = ("candidate", "plan", "proof", "step s", "gap", "GiB")
    notes = [
        f"{one.name}: {one.nodes:,} nodes, {one.chosen}."
        for one in candidates
        if one.chosen and one.nodes is not None
    ]
    parts: list[Block] = [Table(columns, rows, words=3)]
    parts += [Notes(notes, "Why so many nodes")] if notes else []
    lead = "The gap is how much faster another plan may be, at most."
    return Section("plans", "The plan on each", parts, lead)


def _runs(candidates: Sequence[CandidateAnswer]) -> Iterator[Section]:
    parts = [
        Folded(one.name, [Facts(run_rows(one.run))])
        for one in candidates
        if one.run is not None
    ]
    if parts:
        yield Section("runs", "The run on each", parts)


def _small_print(answer: Comparison) -> Section:
    prices = [f"{one.name}: {one.price}" for one in answer.candidates if one.price]
    behind = [
        f"{c.name}: {c.interval_from}" for c in answer.candidates if c.interval_from
    ]
    runs = [a for one in answer.candidates if one.run for a in one.run.assumptions]
    lists = {
        "Warnings": answer.warnings,
        "Prices": prices,
        "Behind the intervals": behind,
        "Assumed": list(dict.fromkeys([*answer.assumptions, *runs])),
    }
    parts = [Notes(lines, title) for title, lines in lists.items() if lines]
    return Section("assumptions", "Assumptions and sources", parts)
