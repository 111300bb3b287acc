"""The report of a validation for a terminal."""

from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from planner.document.blocks import Table
from planner.evidence.accuracy.validation import Validation
from planner.report.pages import sheets
from planner.report.tables import section

WORST = 12
"""Rows that a list of the largest errors shows. [1]"""


def validation_report(answer: Validation) -> RenderableType:
    """Everything of a validation: the summary, groups, worst rows, what is left out."""
    shown = (sheet for sheet in _sheets(answer) if sheet.rows)
    parts = (section(sheet.title, _table(sheet)) for sheet in shown)
    return Group(Text(sheets.opening(answer), style="bold"), *parts)


def _sheets(answer: Validation) -> Iterator[Table]:
    yield sheets.summary_sheet(answer)
    yield sheets.ranking_sheet(answer)
    yield sheets.oom_sheet(answer)
    yield sheets.claims_sheet(answer)
    yield from map(_narrow, sheets.group_sheets(answer))
    yield sheets.worst_time_sheet(answer, WORST)
    yield sheets.worst_memory_sheet(answer, WORST)
    yield sheets.suspect_sheet(answer)
    yield sheets.unsupported_sheet(answer)
    yield sheets.invalid_sheet(answer)


def _narrow(sheet: Table) -> Table:
    """Titles of a group table that leave room for eleven columns."""
    columns = tuple(title.replace("memory rows", "memory") for title in sheet.columns)
    short = tuple(title.removeprefix("memory ") for title in columns)
    return Table(short, sheet.rows, sheet.words, sheet.title)


def _table(sheet: Table) -> Grid:
    table = Grid(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True
    )
    for place, title in enumerate(sheet.columns):
        words = place < sheet.words
        table.add_column(
            title,
            justify="left" if words else "right",
            overflow="fold",
            no_wrap=not words,
        )
    for row in sheet.rows:
        table.add_row(*map(Text, row))
    return table
