"""Plans beside the first in words: ties, what more risk would buy, the spec's own."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from planner.document.blocks import Block, Chart, Folded, Notes, Table
from planner.report.charts.choices import front_chart
from planner.report.vocabulary import layout_line, likely_words
from planner.specs.answer.explanation import FrontPoint
from planner.specs.answer.result import (
    Fastest,
    GivenBack,
    RankedPlan,
    Result,
    Tie,
    TiedPlan,
)
from planner.specs.answer.yours import Beside
from planner.specs.layouts.layout_text import short_layout
from planner.specs.search import SearchSpec

_SHOWN = 4
"""Unlisted plans that are named. [1]"""
TRY = "short trial runs (planner tune) will show whether one fits"
"""Sentence on short runs of riskier plans. [text]"""
LEAST_SHOWN = 0.0005
"""Price that is shown as nothing below it. [1]"""


def tie_sentences(found: Tie | None, *, robust: bool) -> list[str]:
    """The tie beside the fastest plan, and how one of its plans is chosen.

    Args:
        found: The tie, or none. [-]
        robust: True if the shown plan was chosen among the tied plans. [-]
    """
    return [] if found is None else list(_sentences(found, robust=robust))


def tie_parts(tie: Tie | None, *, robust: bool) -> list[Block]:
    """A tie in words, and the tied plans."""
    if tie is None:
        return []
    rows = [
        (
            layout_line(plan.layout),
            f"{plan.slower:+.2%}",
            f"{plan.error:.1%}",
            f"{plan.free_gib:.1f}",
            str(plan.axes),
        )
        for plan in tie.plans
    ]
    columns = ("plan", "slower", "off by", "free GiB", "axes")
    return [Notes(tie_sentences(tie, robust=robust), "A tie"), Table(columns, rows)]


def front_parts(
    best: RankedPlan, memory: Sequence[FrontPoint], gpus: Sequence[FrontPoint]
) -> list[Block]:
    """Both fronts, as far as they have more than one point, against the best plan."""
    parts: list[Block] = []
    pairs = (
        (memory, "headroom_gib", "Step time against free memory"),
        (gpus, "gpus", "Step time against GPUs"),
    )
    for points, measure, name in pairs:
        if len(points) > 1:
            parts.append(Chart(front_chart(points, measure), name))
            parts.append(Folded(f"{name}: plans", [_front(points, best)]))
    return parts


def _front(points: Sequence[FrontPoint], best: RankedPlan) -> Table:
    step, gpus = best.estimate.step_time_s.value, best.layout.gpus
    rows = [
        (
            layout_line(point.layout),
            f"{point.step_time_s:.3f}",
            f"{point.step_time_s / step - 1:+.1%}",
            f"{point.gpus:,}",
            f"{point.step_time_s * point.gpus / (step * gpus) - 1:+.1%}",
            f"{point.device_gib:.1f}",
            f"{point.headroom_gib:.1f}",
        )
        for point in points
    ]
    columns = ("plan", "step s", "slower", "GPUs", "GPU time", "GiB", "free GiB")
    return Table(columns, rows)


def _sentences(found: Tie, *, robust: bool) -> Iterator[str]:
    shown = sorted(plan.rank for plan in found.plans if plan.rank is not None)
    count = len(found.plans)
    listed = f"plans {_ranges(shown)}" if len(shown) > 1 else "the fastest"
    more = count - len(shown)
    verb = "is" if more == 1 else "are"
    beyond = f" and {more} that {verb} not listed" if more else ""
    widest = max(found.plans, key=lambda plan: plan.slower)
    said = f"{listed[0].upper()}{listed[1:]}{beyond} are within {found.within:.2%}"
    yield (
        f"{said}: a tie. For layout changes of this kind the typical prediction error "
        f"is {widest.error:.1%}."
    )
    if more:
        yield f"Not listed: {_unlisted(found.plans)}."
    if not robust:
        yield f"--robust on chooses among them: {found.rule}."


def _unlisted(plans: Sequence[TiedPlan]) -> str:
    hidden = [plan for plan in plans if plan.rank is None]
    said = "; ".join(map(_short, hidden[:_SHOWN]))
    left = len(hidden) - _SHOWN
    return f"{said}; and {left} more" if left > 0 else said


def _short(plan: TiedPlan) -> str:
    told = f"+{plan.slower:.2%}, {plan.free_gib:.1f} GiB free"
    return f"{short_layout(plan.layout)} ({told})"


def _ranges(ranks: Sequence[int]) -> str:
    """Neighbours together: 1, 2, 3, 5 is `1-3, 5`."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ", ".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else f"{r[0]}" for r in runs)


def bought(result: Result) -> tuple[str, ...]:
    """Gain and risk of faster plans, up to the fastest whose predicted memory fits.

    Whether they fit shows in a short run, which a last sentence says.

    Returns:
        For example `2.6% faster at a 31% risk of running out of memory: tp=2,dp=4
        (--robust off)`; none where the risk is not limited, or the limit costs nothing.
        [text]
    """
    fastest = result.fastest
    if fastest is None or fastest.faster <= 0:
        return ()
    asked = (f"--set search.memory_risk={one.limit:.2g}" for one in result.riskier)
    options = zip((*result.riskier, fastest), (*asked, "--robust off"), strict=True)
    return (*(_bought(one, how) for one, how in options), TRY)


def _bought(one: Fastest, how: str) -> str:
    unsure = "" if one.status == "optimal" else " (not proven the fastest)"
    digits = 0 if one.oom_probability >= 0.1 else 1
    risk = f"a {one.oom_probability:.{digits}%} risk of running out of memory"
    its = short_layout(one.layout)
    return f"{one.faster:.1%} faster at {risk}{unsure}: {its} ({how})"


def free_words(result: Result) -> str:
    """Price of memory that is left free, of every amount that was searched.

    Returns:
        For example `5 GiB of every GPU more costs nothing, 10 GiB 4.9%`; empty where no
        amount was searched. [text]
    """
    if not result.given_back:
        return ""
    alike = [(cost, list(each)) for cost, each in groupby(result.given_back, _price)]
    (cost, first), *others = alike
    told = f"{_amounts(first)} of every GPU more costs {cost}"
    return ", ".join([told, *(f"{_amounts(more)} {cost}" for cost, more in others)])


def _amounts(some: Sequence[GivenBack]) -> str:
    """For example `5, 10 or 20 GiB`. [text]."""
    *first, last = (f"{one.gib:g}" for one in some)
    return f"{', '.join(first)} or {last} GiB" if first else f"{last} GiB"


def _price(one: GivenBack) -> str:
    """Price of one amount in words. [text]."""
    unsure = "" if one.status == "optimal" else " (not proven)"
    if one.slower is not None:
        cost = f"{one.slower:.1%}" if one.slower >= LEAST_SHOWN else "nothing"
        return f"{cost}{unsure}"
    return f"over {one.most_slower:.0%}, or nothing fits{unsure}"


def free_rows(result: Result) -> tuple[tuple[str, ...], ...]:
    """The fastest plan of every amount of memory that is left free."""
    return tuple(
        (
            f"{one.gib:g} GiB",
            "-" if one.layout is None else layout_line(one.layout),
            _price(one),
            "-" if one.peak_device_gib is None else f"{one.peak_device_gib:.1f}",
        )
        for one in result.given_back
    )


def risk_limit(result: Result) -> float:
    """Limit on the probability of running out of memory that a search had."""
    fields = result.spec.get("search", {})
    return SearchSpec.model_validate(fields, strict=False).memory_risk


def yours_sentences(result: Result) -> tuple[str, ...]:
    """Tell of the spec's layout and the plain one, with every term that differs."""
    told = result.yours
    if told is None or told.given is None:
        return ()
    step = (result.plans[0] if result.plans else told.given).estimate.step_time_s.value
    pairs = (("Yours", told.given), ("The plain layout", told.plain))
    said = tuple(_sentence(name, its, step) for name, its in pairs if its is not None)
    if told.is_answer:
        return ("Yours is the answer.", *said[1:])
    memory = told.given.estimate.memory
    risk, step_s = memory.oom_probability or 0.0, told.given.estimate.step_time_s.value
    return (
        f"Yours takes {step_s:.3g} s a step, place {told.position} by step, and runs "
        f"out of memory with {risk:.0%}.",
        *((f"It is not chosen: {told.refused}.",) if told.refused else ()),
        *said,
    )


def _sentence(name: str, its: Beside, step_s: float) -> str:
    """A layout against the first plan, with all terms of time and memory."""
    times = (f"{t.words} {t.difference / step_s:+.2%}" for t in its.time_s)
    held = (f"{t.words} {t.difference:+.1f} GiB" for t in its.memory_gib)
    return (
        f"{name} ({its.differs}) takes {its.slower:+.2%} against ours, "
        f"{its.expected:+.2%} as measured pairs say, {slower_words(its)}: "
        f"{', '.join(times) or 'no term of time'}; "
        f"{', '.join(held) or 'no term of memory'}."
    )


def slower_words(its: Beside) -> str:
    """Odds that a layout is slower than the first plan."""
    return f"{likely_words(its.likely)} slower"
