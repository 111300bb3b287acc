"""The answer of `planner size`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.document.blocks import (
    Block,
    Document,
    Facts,
    Folded,
    Section,
    Table,
    listed,
    section,
)
from planner.report.screen.sentences import (
    layout_sentences,
    memory_words,
    proof_words,
    run_sentence,
    time_words,
)
from planner.report.sections.run import short
from planner.specs.answer.result import Result
from planner.specs.answer.size import SizeAnswer, Trained

COLUMNS = ("parameters", "tokens", "loss", "train FLOP", "serve FLOP", "days")
"""Titles of the figures of a size."""
ENDING = "-v shows the models that were planned on the way, and the whole plan."
"""Last line of the screen. [text]"""
DAY = 86400.0
"""[s/d]"""


def size_document(answer: SizeAnswer, result: Result, command: str = "") -> Document:
    """A size, the work that it takes, and the plan of the nearest model.

    Args:
        answer: The size. [-]
        result: Plans of the nearest model. [-]
        command: Command that does the next step. [text]
    """
    rounds = Table(ROUNDS, [*_rounds(answer)])
    return Document(
        title="planner size",
        eyebrow="",
        answer=_sentence(answer),
        lead="",
        sections=[
            Section("size", "Size", [Facts(_facts(answer))]),
            *section("serving", "Serving", _serving(answer)),
            Section("nearest", "The nearest model", [Facts(_plan(answer, result))]),
            *section("warnings", "Warnings", listed("", answer.warnings)),
            Section("rounds", "Search", [Folded("Planned on the way", [rounds])]),
        ],
        command=command,
    )


def _serving(answer: SizeAnswer) -> list[Block]:
    rows = [] if answer.alone is None else [*_choices(answer)]
    return [Table(("", *COLUMNS), rows)] if rows else []


def with_plan(size: Document, plan: Document) -> Document:
    """A size with the whole plan of the nearest model below it."""
    return replace(
        size,
        eyebrow=plan.eyebrow,
        lead=plan.lead,
        tiles=plan.tiles,
        sections=[*size.sections, *plan.sections],
    )


def _plan(answer: SizeAnswer, result: Result) -> list[tuple[str, str]]:
    """The plan of the nearest model in words, what was assumed, and the run."""
    plan, estimate = answer.nearest.plan, answer.nearest.plan.estimate
    layout, *_ = layout_sentences(plan, result.explanation)
    return [
        ("Layout", layout),
        ("Memory", memory_words(estimate.memory)),
        ("Time", time_words(estimate)),
        ("Proof", proof_words(result)),
        ("Assumed", "; ".join(answer.assumed)),
        ("Run", run_sentence(answer.nearest.run)),
    ]


def _sentence(answer: SizeAnswer) -> str:
    """The size in a sentence."""
    cost = "" if answer.cost_usd is None else f" for {_figure(answer.cost_usd)} USD"
    return (
        f"{answer.gpus:,} x {answer.gpu} train {_figure(answer.parameters)} parameters "
        f"best, on {_figure(answer.tokens)} tokens: {answer.days:,.1f} days{cost}"
    )


def _figure(value: float) -> str:
    """A number in three digits and a power of 1000."""
    return short(float(f"{value:.3g}"))


def _facts(answer: SizeAnswer) -> list[tuple[str, str]]:
    """Size, work, law and the nearest model in words."""
    return [
        ("Size", _size(answer)),
        ("Work", _work(answer)),
        ("Limit", _limit(answer)),
        ("Law", f"{answer.law.name}: {answer.law.source}"),
        ("Nearest", _nearest(answer)),
    ]


def _size(answer: SizeAnswer) -> str:
    low, high = answer.low, answer.high
    each = f"{_figure(answer.tokens_per_parameter)} tokens for each parameter"
    return (
        f"{_figure(answer.parameters)} parameters ({_figure(low.parameters)} to "
        f"{_figure(high.parameters)} over the step's interval), "
        f"{_figure(answer.tokens)} tokens ({_figure(low.tokens)} to "
        f"{_figure(high.tokens)}), {each}; loss {answer.loss:.3f}"
    )


def _work(answer: SizeAnswer) -> str:
    flops = answer.flops
    served = f"; serving {flops.serving:.3g}" if flops.serving else ""
    return (
        f"forward {flops.forward:.3g} + backward {flops.backward:.3g} = "
        f"{flops.training:.3g} FLOP{served}; {answer.flops_per_s / 1e15:,.3g} PFLOP/s "
        "of wall time"
    )


def _limit(answer: SizeAnswer) -> str:
    told = []
    if answer.given_days is not None:
        told.append(f"{answer.given_days:,g} days")
    if answer.given_budget_usd is not None:
        told.append(f"{short(answer.given_budget_usd)} USD")
    cost = answer.nearest.run.cost_usd
    price = "" if cost is None else f"; {cost.price.partition(':')[0]}"
    which = f", {answer.limit} first" if len(told) > 1 else ""
    return f"{' and '.join(told)}{which}{price}"


def _nearest(answer: SizeAnswer) -> str:
    near = answer.nearest
    forward = near.forward_flops_per_token.causal_attention
    backward = near.backward_flops_per_token.causal_attention
    return (
        f"{near.name}, {_figure(near.trained.parameters)} parameters, on "
        f"{_figure(near.trained.tokens)} tokens: loss {near.trained.loss:.3f}; forward "
        f"{forward:.3g}, backward {backward:.3g} FLOP a token, causal attention counted"
    )


def _choices(answer: SizeAnswer) -> Iterator[tuple[str, ...]]:
    """The size beside that without serving, and the cheapest as good as that."""
    named = {
        "best to serve, within the limit": answer,
        "least loss, serving aside": answer.alone,
        "that loss at least work in all": answer.as_good,
    }
    for name, size in named.items():
        if size is not None:
            yield name, *_cells(size)


def _cells(size: Trained) -> Sequence[str]:
    return (
        _figure(size.parameters),
        _figure(size.tokens),
        f"{size.loss:.3f}",
        f"{size.flops.training:.3g}",
        f"{size.flops.serving:.3g}",
        f"{size.days:,.1f}",
    )


def _rounds(answer: SizeAnswer) -> Iterator[tuple[str, ...]]:
    """Models that were planned on the way."""
    for one in answer.rounds:
        if one.mfu is None or one.parameters is None:
            yield one.model, "does not fit", ""
        else:
            yield one.model, f"{one.mfu:.1%}", _figure(one.parameters)


ROUNDS = ("planned", "MFU", "best size at that rate")
"""Titles of the models that were planned on the way."""
