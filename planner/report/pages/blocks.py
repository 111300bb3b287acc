"""Parts of a page: sections of charts, tables and sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from planner.report.charts.look import Figure, Legend
from planner.report.charts.racks import Rack
from planner.report.pages.sheets import Sheet


@dataclass
class Chart:
    """A figure with a legend; the page sets the identifier."""

    figure: Figure
    title: str
    legend: Legend = ()
    note: str = ""
    id: str = ""
    kind: str = "chart"


@dataclass(frozen=True)
class Table:
    """A table that can be sorted."""

    sheet: Sheet
    kind: str = "table"


@dataclass(frozen=True)
class Facts:
    """Pairs of a name and its value."""

    rows: Sequence[tuple[str, str]]
    kind: str = "facts"


@dataclass(frozen=True)
class Notes:
    """Sentences."""

    lines: Sequence[str]
    title: str = ""
    kind: str = "notes"


@dataclass(frozen=True)
class Racks:
    """A picture of GPUs."""

    racks: Sequence[Rack]
    kind: str = "racks"


@dataclass(frozen=True)
class Folded:
    """Blocks that open on a click."""

    summary: str
    parts: Sequence["Block"]
    kind: str = "folded"


@dataclass
class Pick:
    """Blocks of several choices, of which one is seen; the page sets the identifier."""

    title: str
    choices: Sequence[tuple[str, Sequence["Block"]]]
    id: str = ""
    kind: str = "pick"


Block = Chart | Table | Facts | Notes | Racks | Folded | Pick


@dataclass(frozen=True)
class Section:
    """A part of the page with an entry in the table of contents."""

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
    mood: str = ""
    """`good`, `warn`, `bad` or none."""


@dataclass(frozen=True)
class Page:
    """A whole page.

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
    sections: Sequence[Section] = field(default_factory=tuple)
    command: str = ""

    def charts(self) -> list[Chart]:
        """Number charts and choices in reading order, and return the charts."""
        every = [part for section in self.sections for part in _every(section.parts)]
        found = [part for part in every if isinstance(part, Chart)]
        for place, chart in enumerate(found):
            chart.id = f"figure-{place}"
        picks = [part for part in every if isinstance(part, Pick)]
        for place, pick in enumerate(picks):
            pick.id = f"pick-{place}"
        return found


def _every(parts: Sequence[Block]) -> Iterator[Block]:
    """Blocks, each followed by those inside it."""
    for part in parts:
        yield part
        if isinstance(part, Folded):
            yield from _every(part.parts)
        elif isinstance(part, Pick):
            for _, inside in part.choices:
                yield from _every(inside)
