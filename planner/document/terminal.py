"""A document in a terminal: text and tables, without figures."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from planner import __version__
from planner.document.blocks import (
    Block,
    Document,
    Facts,
    Folded,
    Mood,
    Notes,
    Section,
    Table,
    Tile,
)

STYLES: dict[Mood, str] = {"": "", "good": "green", "warn": "yellow", "bad": "red"}
"""Style of a mood. [text]"""
INDENT = (0, 0, 0, 2)
BAR = 40
"""Width of a bar of a table. [column]"""
MANY = 8
"""Short facts above which two share a line. [1]"""
HALF = 44
"""Longest name and value of a fact that shares a line. [column]"""
SHORT = 14
"""Longest words that are never broken. [column]"""


def report(document: Document) -> RenderableType:
    """The whole document, one part below the other."""
    return Group(
        Text(document.answer, style="bold"),
        Text(
            "; ".join(filter(None, (document.eyebrow, f"planner {__version__}"))),
            style="dim",
        ),
        *([Text(document.lead)] if document.lead else []),
        *([_tiles(document.tiles)] if document.tiles else []),
        *sections(document.sections),
    )


def sections(parts: Sequence[Section]) -> Iterator[RenderableType]:
    """Sections with something to read, each under its title."""
    for part in parts:
        if shown := [*_shown(part.parts)]:
            lead = [Text(part.lead, style="dim")] if part.lead else []
            yield titled(part.title, Group(*lead, *shown))


def titled(title: str, body: RenderableType) -> RenderableType:
    """A bold title over an indented body."""
    return Group("", Text(title, style="bold cyan"), Padding(body, INDENT))


def _tiles(tiles: Sequence[Tile]) -> RenderableType:
    grid = Grid.grid(padding=(0, 2))
    for tile in tiles:
        value = Text(tile.value, style=STYLES[tile.mood])
        grid.add_row(Text(tile.name, style="dim"), value, Text(tile.note, style="dim"))
    return grid


def _shown(parts: Sequence[Block]) -> Iterator[RenderableType]:
    """Blocks that hold text, each below its title."""
    above: list[RenderableType] = []
    for part in parts:
        if isinstance(part, Folded) and not part.is_appendix:
            if inside := [*_shown(part.parts)]:
                yield from (*above, Text(part.summary, style="cyan"), *inside)
        elif isinstance(part, Table | Facts | Notes):
            title = [*above, Text(part.title, style="cyan")] if part.title else []
            yield from (*title, _body(part))
        else:
            continue
        above = [""]


def _body(part: Table | Facts | Notes) -> RenderableType:
    if isinstance(part, Notes):
        return _dashed(part.lines)
    return _pairs(part.rows) if isinstance(part, Facts) else grid_of(part)


def _dashed(lines: Sequence[str]) -> RenderableType:
    """Lines that wrap under their own dash."""
    grid = Grid.grid(padding=(0, 1))
    for line in lines:
        grid.add_row("-", Text(line))
    return grid


def _pairs(rows: Sequence[tuple[str, str]]) -> RenderableType:
    """Names and values; of many short ones two stand in a line, above the others."""
    short = [*filter(_is_short, rows)]
    if len(short) <= MANY:
        return _names(rows, 1)
    long = [row for row in rows if row not in short]
    return Group(_names(short, 2), *([_names(long, 1)] if long else []))


def _names(rows: Sequence[tuple[str, str]], per_line: int) -> Grid:
    """Names and values, so many in a line."""
    grid = Grid.grid(padding=(0, 2))
    for start in range(0, len(rows), per_line):
        line = rows[start : start + per_line]
        grid.add_row(*(c for n, v in line for c in (Text(n, style="dim"), Text(v))))
    return grid


def _is_short(row: tuple[str, str]) -> bool:
    return sum(map(len, row)) < HALF


def grid_of(table: Table) -> Grid:
    """A table: words fold on the left, numbers and short words stay whole."""
    grid = Grid(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True
    )
    for place, title in enumerate(table.columns):
        lines = [line for row in table.rows for line in row[place].splitlines()]
        widest = max(map(len, lines), default=0)
        is_word = place < table.words
        grid.add_column(
            title,
            justify="left" if is_word else "right",
            min_width=None if is_word and widest > SHORT else widest,
            overflow="fold",
        )
    moods = table.moods or [""] * len(table.rows)
    bars = [Bar(1.0, *span, width=BAR, color="cyan") for span in table.spans]
    if bars:
        grid.add_column("")
    for place, (row, mood) in enumerate(zip(table.rows, moods, strict=True)):
        more = bars[place : place + 1]
        grid.add_row(*map(Text, row), *more, style=STYLES[mood])
    return grid
