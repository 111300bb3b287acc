"""Questions that pages ask, and the messages that workers answer with."""

from dataclasses import dataclass, field

from planner.document.blocks import Document, Tile
from planner.launch.brief import LaunchFile
from planner.report.charts.search import SearchState

Fields = tuple[tuple[str, str], ...]
"""Name and value of each field of a form, as the user wrote it."""


@dataclass(frozen=True)
class Question:
    """One question, equal to another where the answer is.

    Attributes:
        kind: `plan`, `what-if`, `compare`, `memory`, `explain` or `rows`. [text]
        fields: Fields of the form. [text]
        seconds: Longest time of the search. [s]
        memory: Most memory of the worker. [text]
    """

    kind: str
    fields: Fields
    seconds: float
    memory: str

    def get(self, name: str) -> str:
        """Value of a field.

        Returns:
            The value; empty where the user left it open. [text]
        """
        return dict(self.fields).get(name, "")

    def each(self, name: str) -> list[str]:
        """Values of a field that a form has several times."""
        return [value for key, value in self.fields if key == name]


@dataclass(frozen=True)
class Waiting:
    """The question waits for a worker."""

    before: int
    """Questions that come first. [1]"""


@dataclass(frozen=True)
class Searching:
    """State of a search under way.

    Attributes:
        trail: States so far. [-]
        left: Candidates that are not settled. [1]
        count: Candidates in all. [1]
    """

    trail: tuple[SearchState, ...]
    left: int
    count: int


@dataclass(frozen=True)
class Counting:
    """Things done of things in all."""

    done: int
    count: int


@dataclass(frozen=True)
class Refused:
    """The question cannot be answered.

    Attributes:
        message: The reason. [text]
        field: Field of the form that is wrong; empty where none is. [text]
        bug: True where the fault is ours. [-]
    """

    message: str
    field: str = ""
    bug: bool = False


@dataclass(frozen=True)
class Summary:
    """The main numbers of a plan, for answers side by side.

    Attributes:
        layout: The layout in its short form. [text]
        verdict: The answer in one sentence. [text]
        tiles: Main numbers. [-]
        tokens_per_s_per_gpu: Throughput. [token/s]
        tokens_per_s: Throughput of all GPUs. [token/s]
        gap: Share by which another plan may be faster. [1]
        proven: True where the plan is the fastest. [-]
    """

    layout: str
    verdict: str
    tiles: tuple[Tile, ...]
    tokens_per_s_per_gpu: float
    tokens_per_s: float
    gap: float
    proven: bool


@dataclass(frozen=True)
class Answered:
    """The answer to a question, in all its forms.

    Attributes:
        page: The report's own page. [-]
        json: JSON as the command writes. [text]
        job: The job file. [YAML]
        assumed: Words for what the form leaves open. [text]
        files: The launch folder; empty where there is none. [-]
        unwritten: Reason why there is no launch folder. [text]
        summary: Main numbers, of a plan. [-]
        more: Values for links that go on from here, by name. [text]
        seconds: Limit on the time of the search; 0 where there is none. [s]
    """

    page: Document
    json: str
    job: str = ""
    assumed: tuple[str, ...] = ()
    files: tuple[LaunchFile, ...] = ()
    unwritten: str = ""
    summary: Summary | None = None
    more: dict[str, tuple[str, ...]] = field(default_factory=dict)
    seconds: float = 0.0


Told = Waiting | Searching | Counting | Refused | Answered
"""Message of a worker; the last one is `Refused` or `Answered`."""
