"""Two plans side by side: fields that differ, and terms of time and memory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.planning.reasons import (
    CATEGORIES,
    CAUSE_WORDS,
    memory_terms,
    time_terms,
    why_slower,
)
from planner.specs.answer.difference import Difference, FieldChange, Side, TermChange
from planner.specs.answer.estimate import Estimate
from planner.specs.layouts.layout_text import parts_changed

_NOT_ASKED = ("layout",)
"""Fields of a job that its plan replaces."""


@dataclass(frozen=True)
class Compared:
    """A plan to be compared.

    Attributes:
        side: Names and layout. [-]
        spec: Job of the plan, names looked up. [-]
        settings: Values that the search chose for the training block. [text]
        estimate: Predicted time and memory. [-]
    """

    side: Side
    spec: Mapping[str, object]
    settings: Mapping[str, str]
    estimate: Estimate


def difference_of(a: Compared, b: Compared) -> Difference:
    """Compare two plans.

    Returns:
        Fields and terms that differ; signs are those of B minus A. [-]
    """
    ours, theirs = a.estimate, b.estimate
    times, memory = changed_terms(ours, theirs)
    peaks = (ours.memory.peak_device_gib, theirs.memory.peak_device_gib)
    steps = (ours.step_time_s, theirs.step_time_s)
    return Difference(
        a=a.side,
        b=b.side,
        spec=tuple(_fields(a, b)),
        layout=tuple(
            FieldChange(field=name, a=before, b=after)
            for name, before, after in parts_changed(a.side.layout, b.side.layout)
        ),
        step_time_s=_term("step", steps[0].value, steps[1].value),
        tokens_per_s=_term("tokens/s", ours.tokens_per_s, theirs.tokens_per_s),
        time_s=times,
        device_gib=_term("device peak", peaks[0].value, peaks[1].value),
        memory_gib=memory,
        why=why_slower(ours, theirs),
    )


def changed_terms(
    a: Estimate, b: Estimate
) -> tuple[tuple[TermChange, ...], tuple[TermChange, ...]]:
    """Terms of time and memory that differ between two layouts.

    Returns:
        Causes of the step [s] and categories of the fullest rank [GiB], the largest
        difference first.
    """
    times = _sorted(time_terms(a, b), CAUSE_WORDS)
    return times, _sorted(memory_terms(a, b), CATEGORIES)


def _term(name: str, a: float, b: float, words: str = "") -> TermChange:
    return TermChange(term=name, words=words or name, a=a, b=b, difference=b - a)


def _sorted(
    terms: list[tuple[str, float, float]], words: Mapping[str, str]
) -> tuple[TermChange, ...]:
    """Terms that differ, the largest difference first."""
    changed = (_term(*term, words[term[0]]) for term in terms if term[1] != term[2])
    return tuple(sorted(changed, key=lambda term: -abs(term.difference)))


def _fields(a: Compared, b: Compared) -> Iterator[FieldChange]:
    """Fields of the jobs that differ, with what the searches chose."""
    ours, theirs = (
        dict(_flat(_without(one.spec))) | _chosen(one.settings) for one in (a, b)
    )
    for path in dict.fromkeys([*ours, *theirs]):
        before, after = ours.get(path), theirs.get(path)
        if before != after:
            yield FieldChange(field=path, a=before, b=after)


def _without(spec: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in spec.items() if name not in _NOT_ASKED}


def _chosen(settings: Mapping[str, str]) -> dict[str, object]:
    return {f"training.{name}": value for name, value in settings.items()}


def _flat(fields: Mapping[str, object], path: str = "") -> Iterator[tuple[str, Any]]:
    """Values by dotted path."""
    for name, value in fields.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
