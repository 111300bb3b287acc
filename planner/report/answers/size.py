"""The screen and the page of `planner size`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.document.blocks import Document, Facts, Section, Table
from planner.report.run import short
from planner.report.screen.fitting import Part, Screen
from planner.report.screen.sentences import (
    dashed,
    layout_sentences,
    memory_words,
    proof_words,
    run_sentence,
    time_words,
)
from planner.specs.answer.result import Result
from planner.specs.answer.size import SizeAnswer, Trained

COLUMNS = ("parameters", "tokens", "loss", "train FLOP", "serve FLOP", "days")
"""Titles of the figures of a size."""
DAY = 86400.0
"""[s/d]"""


def size_screen(answer: SizeAnswer, result: Result, command: str = "") -> Screen:
    """A size on one screen, the sentence that answers first."""
    tail = [Part("Assumed", (("; ".join(answer.assumed),),))]
    tail += [Part("Run", ((run_sentence(answer.nearest.run),),))]
    tail += [Part("Next", ((command,),))] if command else []
    ending = "-v shows the models that were planned on the way."
    return Screen(f"{sentence(answer)}.", list(_parts(answer, result)), tail, ending)


def sentence(answer: SizeAnswer) -> str:
    """The size in a sentence."""
    cost = "" if answer.cost_usd is None else f" for {_figure(answer.cost_usd)} USD"
    return (
        f"{answer.gpus:,} x {answer.gpu} train {_figure(answer.parameters)} parameters "
        f"best, on {_figure(answer.tokens)} tokens: {answer.days:,.1f} days{cost}"
    )


def _figure(value: float) -> str:
    """A number in three digits and a power of 1000."""
    return short(float(f"{value:.3g}"))


def _parts(answer: SizeAnswer, result: Result) -> Iterator[Part]:
    rows = tuple((name, value) for name, value in facts(answer))
    for name, value in rows:
        yield Part(name, ((value,),))
    if answer.alone is not None:
        yield Part("Serving", tuple(choices(answer)), ("", *COLUMNS))
    plan = answer.nearest.plan
    layout, *_ = layout_sentences(plan, result.explanation)
    yield Part("Layout", ((layout,),))
    yield Part("Memory", ((memory_words(plan.estimate.memory),),))
    yield Part("Time", ((time_words(plan.estimate),),))
    yield Part("Proof", ((proof_words(result),),))
    if answer.warnings:
        yield Part("Warnings", dashed(answer.warnings))


def facts(answer: SizeAnswer) -> list[tuple[str, str]]:
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


def choices(answer: SizeAnswer) -> Iterator[tuple[str, ...]]:
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


def rounds(answer: SizeAnswer) -> Iterator[tuple[str, ...]]:
    """Models that were planned on the way."""
    for one in answer.rounds:
        if one.mfu is None or one.parameters is None:
            yield one.model, "does not fit", ""
        else:
            yield one.model, f"{one.mfu:.1%}", _figure(one.parameters)


ROUNDS = ("planned", "MFU", "best size at that rate")
"""Titles of the models that were planned on the way."""


def size_page(answer: SizeAnswer, plan: Document) -> Document:
    """The page of a size: its figures, then the nearest model's plan."""
    parts: list[Facts | Table] = [Facts(facts(answer))]
    if answer.alone is not None:
        sheet = Table(("", *COLUMNS), tuple(choices(answer)))
        parts.append(sheet)
    parts.append(Table(ROUNDS, tuple(rounds(answer))))
    return replace(
        plan,
        title="planner size",
        answer=sentence(answer),
        sections=[Section("size", "Size", parts), *plan.sections],
    )
