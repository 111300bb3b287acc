"""A screen: named parts that give way until they fit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

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
        body = Table.grid(padding=(0, 2))
        if self.titles:
            body.add_row(*(Text(title, style="dim") for title in self.titles))
        for row in self.rows:
            body.add_row(*map(Text, row))
        grid = Table.grid(padding=(0, 2))
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
