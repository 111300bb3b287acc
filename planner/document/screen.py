"""A document on one screen of a terminal: named parts that give way until they fit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table as Grid
from rich.text import Text

from planner.document.blocks import Block, Document, Facts, Notes, Table

LINES = 38
"""Most lines of a screen; a message of an error may stand below. [1]"""
ROWS = 12
"""Most rows of a part. [1]"""
NAME = 9
"""Width of the names of parts. [column]"""


@dataclass(frozen=True)
class Part:
    """Rows under one name.

    Attributes:
        name: Name at the left. [text]
        rows: Cells of each row. [text]
        titles: Titles above the cells, or none. [text]
    """

    name: str
    rows: tuple[tuple[str, ...], ...]
    titles: tuple[str, ...] = ()

    def shown(self) -> RenderableType:
        """The name beside the rows."""
        body = Grid.grid(padding=(0, 2))
        if self.titles:
            body.add_row(*(Text(title, style="dim") for title in self.titles))
        for row in self.rows:
            body.add_row(*map(Text, row))
        grid = Grid.grid(padding=(0, 2))
        grid.add_column(width=NAME)
        grid.add_row(Text(self.name, style="bold cyan"), body)
        return grid


@dataclass(frozen=True)
class Screen:
    """A sentence, parts that may give way, and a tail: at most `LINES` lines.

    Attributes:
        opening: First sentence. [text]
        parts: Parts, the most needed first. [-]
        tail: Parts that stay. [-]
        ending: Last line. [text]
    """

    opening: str
    parts: Sequence[Part]
    tail: Sequence[Part] = ()
    ending: str = ""

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """Lay the screen out: rows of the longest part, then last parts, give way."""

        def height(*shown: RenderableType) -> int:
            return len(console.render_lines(Group(*shown), options, pad=False))

        head = Group(Text(self.opening, style="bold"), "")
        ending = Text(self.ending, style="dim")
        tail = Group(*(part.shown() for part in self.tail), "", ending)
        most = LINES - height(head, tail)
        parts = [replace(p, rows=p.rows[:ROWS]) for p in self.parts[:most]]
        heights = [height(part.shown()) for part in parts]
        while parts and sum(heights) > most:
            at = _longest(parts)
            _shorten(parts, at)
            heights[at : at + 1] = [height(part.shown()) for part in parts[at : at + 1]]
        yield Group(head, *(part.shown() for part in parts), tail)


def _longest(parts: Sequence[Part]) -> int:
    """The part with most rows; the last part where each has one."""
    counts = [len(part.rows) for part in parts]
    return counts.index(max(counts)) if max(counts) > 1 else len(parts) - 1


def _shorten(parts: list[Part], at: int) -> None:
    """Take the last row of a part away, and the part with its last row."""
    rows = parts[at].rows[:-1]
    parts[at : at + 1] = [replace(parts[at], rows=rows)] if rows else []


def screen_of(document: Document, ending: str) -> Screen:
    """A document on one screen: its facts, tables and notes, without details.

    Args:
        document: The document. [-]
        ending: Last line. [text]
    """
    parts = [Part("Job", ((document.eyebrow,),))] if document.eyebrow else []
    for section in document.sections:
        for block in section.parts:
            parts += _parts(section.title, block)
    tail = [Part("Next", ((document.command,),))] if document.command else []
    return Screen(f"{document.answer}.", parts, tail, ending)


def _parts(title: str, block: Block) -> Iterator[Part]:
    if isinstance(block, Facts):
        yield from (Part(name, ((value,),)) for name, value in block.rows)
    elif isinstance(block, Notes):
        yield Part(block.title or title, dashed(block.lines))
    elif isinstance(block, Table):
        yield Part(block.title or title, tuple(block.rows), block.columns)


def dashed(lines: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Sentences as rows; a dash before each of several."""
    return tuple(("-", line) for line in lines) if len(lines) > 1 else ((*lines,),)
