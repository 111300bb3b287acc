"""The answer of `planner diff`."""

from collections.abc import Iterator, Sequence

from planner.document.blocks import Block, Document, Facts, Notes, Section, Table
from planner.planning.reasons import NO_DIFFERENCE
from planner.report.screen.verdict import three_digits
from planner.specs.answer.difference import Difference, FieldChange, TermChange

FIELDS = ("field", "A", "B")
"""Titles of the fields that differ."""
TERMS = ("term", "A", "B", "B - A", "of A")
"""Titles of the terms that differ."""
_NAMED = ("model", "cluster", "stack")
"""Blocks of a job of which one row is shown where their name differs."""
ENDING = "--json - prints every field. Signs are those of B minus A."
"""Last line of the screen. [text]"""
_SHORT = 36
"""Longest value of a field in a table. [1]"""


def difference_document(answer: Difference) -> Document:
    """Fields and terms in which two plans differ, the faster one named first."""
    fields = {"Layout": answer.layout, "Job": [*_shown_fields(answer.spec)]}
    terms = {
        "Time [s]": _terms(answer.time_s, answer.step_time_s),
        "Memory [GiB]": _terms(answer.memory_gib, answer.device_gib),
    }
    tables: dict[str, Block] = {**terms, **{n: _fields(x) for n, x in fields.items()}}
    return Document(
        title="planner diff",
        eyebrow="",
        answer=_sentence(answer),
        lead="Signs are those of B minus A; memory is that of the fullest GPU.",
        sections=[
            Section("plans", "Plans", [Facts(_sides(answer))]),
            *(
                Section(f"part-{at}", title, [table])
                for at, (title, table) in enumerate(tables.items())
            ),
        ],
    )


def _sentence(answer: Difference) -> str:
    """The faster plan, by how much, and why."""
    step = answer.step_time_s
    times = f"{three_digits(step.b)} s a step against {three_digits(step.a)} s"
    if answer.why == NO_DIFFERENCE:
        return f"A and B take the same time: {times}"
    time = step.difference / step.a
    rate = answer.tokens_per_s.difference / answer.tokens_per_s.a
    more, trains = ("more" if value > 0 else "less" for value in (time, rate))
    return (
        f"B takes {abs(time):.1%} {more} time a step than A, {times}, and trains "
        f"{abs(rate):.1%} {trains} each second: {answer.why}"
    )


def _sides(answer: Difference) -> list[tuple[str, str]]:
    """Names, titles and verdicts of both plans."""
    pairs = zip("AB", (answer.a, answer.b), strict=True)
    return [(at, f"{one.name}: {one.title}; {one.verdict}") for at, one in pairs]


def _terms(terms: Sequence[TermChange], whole: TermChange) -> Table:
    """The whole, and the terms that make its difference."""
    return Table(TERMS, [_term(term, whole) for term in (whole, *terms)])


def _term(term: TermChange, whole: TermChange) -> tuple[str, ...]:
    share = term.difference / whole.a if whole.a else 0.0
    figures = (f"{term.a:,.3f}", f"{term.b:,.3f}", f"{term.difference:+,.3f}")
    return term.words, *figures, f"{round(share, 3) + 0.0:+.1%}"


def _shown_fields(fields: Sequence[FieldChange]) -> Iterator[FieldChange]:
    """Fields of a job, those of a block with another name as one."""
    named = {one.field.partition(".")[0] for one in fields if _is_name(one.field)}
    for one in fields:
        block = one.field.partition(".")[0]
        if block not in named or one.field == block or _is_name(one.field):
            yield one


def _is_name(path: str) -> bool:
    return path in {f"{block}.name" for block in _NAMED}


def _fields(fields: Sequence[FieldChange]) -> Table | Notes:
    """Fields with both values."""
    rows = [(one.field, _short(one.a), _short(one.b)) for one in fields]
    return Table(FIELDS, rows, words=3) if rows else Notes(["the same"])


def _short(value: object) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 4]} ..."
