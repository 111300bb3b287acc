"""The spec's layout and the plain one beside the first plan, as rows of a screen."""

from collections.abc import Iterator, Sequence

from planner.report.screen.sentences import risk_words
from planner.report.screen.verdict import three_digits
from planner.report.sections.ties import slower_words
from planner.specs.answer.difference import TermChange
from planner.specs.answer.estimate import Estimate
from planner.specs.answer.result import Result
from planner.specs.answer.yours import Beside

YOURS = ("layout", "step", "against ours", "GiB", "risk", "more and less than ours")
"""Titles above the layouts."""
TERMS = 3
"""Terms of time that are named. [1]"""
LEAST = 0.001
"""Share of a step from which a term is named. [1]"""


def yours_rows(result: Result) -> tuple[tuple[str, ...], ...]:
    """Ours, yours and the plain layout."""
    told = result.yours
    if told is None or told.given is None:
        return ()
    if not result.plans:
        its = told.given.estimate
        return (("yours, not chosen", *_figures(its, ""), "-"),)
    ours = result.plans[0].estimate
    name = "yours, the answer" if told.is_answer else "ours"
    rows: list[tuple[str, ...]] = [(name, *_figures(ours, ""), "-")]
    if not told.is_answer:
        name = "yours, not chosen" if told.refused else "yours"
        rows.append(_row(name, told.given, ours))
    if told.plain is not None:
        rows.append(_row("plain", told.plain, ours))
    return tuple(rows)


def _row(name: str, its: Beside, ours: Estimate) -> tuple[str, ...]:
    against = f"{its.slower:+.2%}, {slower_words(its)}"
    terms = "; ".join(_terms(its.time_s, ours.step_time_s.value))
    return name, *_figures(its.estimate, against), terms or "the same"


def _figures(its: Estimate, against: str) -> tuple[str, str, str, str]:
    memory = its.memory
    return (
        f"{three_digits(its.step_time_s.value)} s",
        against or "-",
        f"{memory.peak_device_gib.value:.1f}",
        risk_words(memory),
    )


def _terms(terms: Sequence[TermChange], step_s: float) -> Iterator[str]:
    """The largest terms of time that differ, over our step."""
    for term in terms[:TERMS]:
        share = term.difference / step_s
        if abs(share) >= LEAST:
            yield f"{term.words} {share:+.1%}"
