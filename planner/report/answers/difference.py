"""The screen and the page of `planner diff`."""

from collections.abc import Iterator, Sequence

from planner.document.blocks import Document, Facts, Section, Table
from planner.planning.reasons import NO_DIFFERENCE
from planner.report.screen.fitting import Part, Screen
from planner.report.screen.verdict import three_digits
from planner.specs.answer.difference import Difference, FieldChange, TermChange

FIELDS = ("field", "A", "B")
"""Titles of the fields that differ."""
TERMS = ("term", "A", "B", "B - A", "of A")
"""Titles of the terms that differ."""
_NAMED = ("model", "cluster", "stack")
"""Blocks of a job of which one row is shown where their name differs."""
_SHORT = 36
"""Longest value of a field in a table. [1]"""


def difference_screen(answer: Difference) -> Screen:
    """Two plans on one screen, the faster one named first."""
    ending = "--json - prints every field. Signs are those of B minus A."
    parts = [Part(*part) for part in _parts(answer)]
    return Screen(f"{sentence(answer)}.", parts, (), ending)


def sentence(answer: Difference) -> str:
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


def _parts(
    answer: Difference,
) -> Iterator[tuple[str, tuple[tuple[str, ...], ...], tuple[str, ...]]]:
    """Name, rows and titles of each part of the screen."""
    for name, words in _sides(answer):
        yield name, ((words,),), ()
    yield "Time [s]", tuple(term_rows(answer.time_s, answer.step_time_s)), TERMS
    memory = tuple(term_rows(answer.memory_gib, answer.device_gib))
    yield "GiB", memory, TERMS
    yield "Layout", tuple(field_rows(answer.layout)) or (("the same",),), ()
    yield "Job", tuple(field_rows(shown_fields(answer.spec))) or (("the same",),), ()


def _sides(answer: Difference) -> list[tuple[str, str]]:
    """Names, titles and verdicts of both plans."""
    pairs = zip("AB", (answer.a, answer.b), strict=True)
    return [(at, f"{one.name}: {one.title}; {one.verdict}") for at, one in pairs]


def term_rows(
    terms: Sequence[TermChange], whole: TermChange
) -> Iterator[tuple[str, ...]]:
    """The whole, and the terms that make its difference."""
    for term in (whole, *terms):
        share = term.difference / whole.a if whole.a else 0.0
        figures = (f"{term.a:,.3f}", f"{term.b:,.3f}", f"{term.difference:+,.3f}")
        yield term.words, *figures, f"{round(share, 3) + 0.0:+.1%}"


def shown_fields(fields: Sequence[FieldChange]) -> Iterator[FieldChange]:
    """Fields of a job, those of a block with another name as one."""
    named = {one.field.partition(".")[0] for one in fields if _is_name(one.field)}
    for one in fields:
        block = one.field.partition(".")[0]
        if block not in named or one.field == block or _is_name(one.field):
            yield one


def _is_name(path: str) -> bool:
    return path in {f"{block}.name" for block in _NAMED}


def field_rows(
    fields: Iterator[FieldChange] | Sequence[FieldChange],
) -> list[tuple[str, str, str]]:
    """Fields with both values."""
    return [(one.field, _short(one.a), _short(one.b)) for one in fields]


def _short(value: object) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 4]} ..."


def difference_page(answer: Difference) -> Document:
    """The page of two plans."""
    tables = {
        "Time [s]": Table(TERMS, tuple(term_rows(answer.time_s, answer.step_time_s))),
        "Memory of the fullest GPU [GiB]": Table(
            TERMS, tuple(term_rows(answer.memory_gib, answer.device_gib))
        ),
        "Layout": Table(FIELDS, tuple(field_rows(answer.layout)), 3),
        "Job": Table(FIELDS, tuple(field_rows(answer.spec)), 3),
    }
    return Document(
        title="planner diff",
        eyebrow=f"{answer.a.name} and {answer.b.name}",
        answer=sentence(answer),
        lead="Signs are those of B minus A.",
        sections=[
            Section("plans", "Plans", [Facts(_sides(answer))]),
            *(
                Section(f"part-{at}", title, [sheet])
                for at, (title, sheet) in enumerate(tables.items())
            ),
        ],
    )
