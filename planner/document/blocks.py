"""A document and its parts: sections of facts, tables, notes and figures.

An answer is made into a document once; :mod:`planner.document.terminal` and
:mod:`planner.report.pages` draw it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Figure = dict[str, object]
"""`data` and `layout`, as plotly.js takes them, colours as names of the palette."""
Legend = Sequence[tuple[str, str]]
"""Name and colour of every kind of mark. [text]"""
Mood = Literal["", "good", "warn", "bad"]
"""Colour of a number or a row by what it means for the reader."""
Cells = tuple[str, ...]
"""Texts of a row of a table."""


@dataclass
class Chart:
    """A figure with a legend; only pages draw it, and the page sets the identifier."""

    figure: Figure
    title: str
    legend: Legend = ()
    note: str = ""
    id: str = ""
    kind: str = "chart"


@dataclass(frozen=True)
class Table:
    """A table; a reader of a page can sort it.

    Attributes:
        columns: Title of each column. [text], shape (columns,)
        rows: Cells. [text], shape (rows, columns)
        words: Columns that hold words, on the left of the others. [1]
        title: Title of the table. [text]
        moods: Mood of each row; none for all rows alike. [-], shape (rows,)
        spans: Start and end of the bar behind each row on a terminal, of the whole;
            none without bars. [1], shape (rows, 2)
    """

    columns: Cells
    rows: Sequence[Cells]
    words: int = 1
    title: str = ""
    moods: Sequence[Mood] = ()
    spans: Sequence[tuple[float, float]] = ()
    kind: str = "table"


@dataclass(frozen=True)
class Facts:
    """Pairs of a name and its value."""

    rows: Sequence[tuple[str, str]]
    title: str = ""
    kind: str = "facts"


@dataclass(frozen=True)
class Notes:
    """Sentences."""

    lines: Sequence[str]
    title: str = ""
    kind: str = "notes"


@dataclass(frozen=True)
class Gpu:
    """One GPU of a picture."""

    stage: int
    ours: bool
    """True if the GPU belongs to the replica that is shown."""
    hue: int
    title: str


@dataclass(frozen=True)
class Node:
    """A node or a larger scale-up domain."""

    name: str
    wide: int
    gpus: tuple[Gpu, ...]


@dataclass(frozen=True)
class Rack:
    """Nodes that share a unit of the first tier."""

    name: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Racks:
    """A picture of GPUs; only pages draw it."""

    racks: Sequence[Rack]
    kind: str = "racks"


@dataclass(frozen=True)
class Folded:
    """Blocks that open on a click; only pages show those of an appendix."""

    summary: str
    parts: Sequence["Block"]
    is_appendix: bool = False
    kind: str = "folded"


@dataclass
class Pick:
    """Blocks of several choices, of which a page shows one and sets the identifier."""

    title: str
    choices: Sequence[tuple[str, Sequence["Block"]]]
    id: str = ""
    kind: str = "pick"


Block = Chart | Table | Facts | Notes | Racks | Folded | Pick


@dataclass(frozen=True)
class Section:
    """A part of the document with an entry in the table of contents."""

    id: str
    title: str
    parts: Sequence[Block]
    lead: str = ""


@dataclass(frozen=True)
class Tile:
    """A number of the heading."""

    name: str
    value: str
    note: str = ""
    mood: Mood = ""


@dataclass(frozen=True)
class Document:
    """A whole answer.

    Attributes:
        title: Title of the window. [text]
        eyebrow: Heading of the job, in small letters. [text]
        answer: The answer in one sentence. [text]
        lead: Sentences below the answer. [text]
        tiles: Main numbers. [-]
        sections: Sections in order. [-]
        command: Command that does the next step, for a shell. [text]
    """

    title: str
    eyebrow: str
    answer: str
    lead: str
    tiles: Sequence[Tile] = ()
    sections: Sequence[Section] = ()
    command: str = ""

    def charts(self) -> list[Chart]:
        """Number charts and choices in reading order, and return the charts."""
        every = [part for section in self.sections for part in _every(section.parts)]
        charts = [part for part in every if isinstance(part, Chart)]
        for place, chart in enumerate(charts):
            chart.id = f"figure-{place}"
        picks = [part for part in every if isinstance(part, Pick)]
        for place, pick in enumerate(picks):
            pick.id = f"pick-{place}"
        return charts


def listed(title: str, lines: Sequence[str]) -> list[Block]:
    """Notes under a title, and nothing where there are none."""
    return [Notes(lines, title)] if lines else []


def section(
    name: str, title: str, parts: Sequence[Block], lead: str = ""
) -> list[Section]:
    """A section, and nothing where it has no parts."""
    return [Section(name, title, parts, lead)] if parts else []


def _every(parts: Sequence[Block]) -> Iterator[Block]:
    """Blocks, each followed by those inside it."""
    for part in parts:
        yield part
        if isinstance(part, Folded):
            yield from _every(part.parts)
        elif isinstance(part, Pick):
            for _, inside in part.choices:
                yield from _every(inside)
