"""The answer of `planner explain`: limits that clash, prices, neighbours, changes."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.answer.estimate import Verdict
from planner.specs.answer.result import RankedPlan, Status, Tie
from planner.specs.layouts.layout import Layout


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Limit(_Frozen):
    """One member of a smallest set of limits that cannot hold together."""

    field: str
    """Dotted field of the spec that holds the limit."""
    limit: str
    """The limit in words, with its number."""


class Contradiction(_Frozen):
    """Limits that leave no legal layout, and near limits that leave some."""

    limits: tuple[Limit, ...]
    text: str
    nearest: tuple[str, ...]
    """Replacement for each limit, all else as it is. [text]"""
    last: str
    """Limit that removed the last layouts. [text]"""


class Need(_Frozen):
    """The least memory that the whole space comes down to. [GiB]."""

    stage: int
    at_least_gib: float
    """Lower bound of all layouts, proved by a search under this capacity."""
    reached_gib: float
    """Memory of the most frugal layout known."""
    capacity_gib: float


class Relaxation(_Frozen):
    """One change that makes a job feasible, and what the job then takes."""

    change: str
    effect: str
    assignments: tuple[str, ...]
    """The change as `--set` takes it."""
    step_time_s: float
    gpus: int
    status: Status


class Binding(_Frozen):
    """Resource that holds one pipeline rank back."""

    stage: int
    resource: str
    text: str
    device_gib: float
    capacity_gib: float
    busy: float
    """Share of the step that its kernels and exchanges of micro-batches take. [1]"""


class Neighbour(_Frozen):
    """The best plan with one degree changed."""

    change: str
    field: str
    """Field of the layout that the change is about, as `tp`."""
    value: int | str
    """Value of that field after the change."""
    effect: str
    legal: bool
    fits: bool = False
    tied: bool = False
    """True where the difference is within the error of such comparisons."""
    step_time_s: float | None = None
    slower: float | None = None
    """Step over the best plan's step, minus 1; below 0 for a faster plan. [1]"""
    device_gib: float | None = None


class Price(_Frozen):
    """Cost of one limit of the search."""

    limit: str
    effect: str
    step_time_s: float
    gain: float
    """Share of the step that goes if the limit goes. [1]"""


class Sensitivity(_Frozen):
    """Gain from one better number of the machine."""

    change: str
    effect: str
    step_time_s: float
    """Step of the unchanged plan on the better machine. [s]"""
    gain: float
    """Share of the step that the unchanged plan saves. [1]"""
    best_step_time_s: float
    """Step of the best plan known on the better machine. [s]"""
    best_gain: float
    another_wins: bool


class Change(_Frozen):
    """One set of changes to a given layout, and what it brings."""

    changes: tuple[str, ...]
    step_time_s: float
    share: float
    """Share of the gain that the best plan brings. [1]"""


class Judgement(_Frozen):
    """A given layout beside the best plan."""

    layout: Layout
    step_time_s: float
    device_gib: float
    verdict: Verdict
    wrong: tuple[str, ...]
    gain: float
    """Share of the step that the best plan saves; 0 where it saves nothing. [1]"""
    single: Change | None = None
    """The single change that brings most of the gain."""
    fewest: Change | None = None
    """The fewest changes found that bring most of the gain."""


class FrontPoint(_Frozen):
    """A plan that no other beats in both step and the other measure."""

    step_time_s: float
    device_gib: float
    headroom_gib: float
    gpus: int
    layout: Layout


class Explained(_Frozen):
    """The whole answer, schema ``planner/explanation@1``."""

    schema_name: Literal["planner/explanation@1"] = Field(
        default="planner/explanation@1", alias="schema"
    )
    feasible: bool
    status: Status | Literal["no legal layout"]
    conflict: tuple[Limit, ...] = ()
    conflict_text: str = ""
    contradiction: Contradiction | None = None
    """The conflict where no layout is legal, with near limits that leave some."""
    need: Need | None = None
    relaxations: tuple[Relaxation, ...] = ()
    best: RankedPlan | None = None
    tie: Tie | None = None
    """Plans that the cost model cannot tell from the fastest."""
    robust: bool = False
    """True where the best plan was chosen among tied plans."""
    runner_up: str = ""
    """Plan that the best plan beats, or reason why it stands before the fastest."""
    binding: tuple[Binding, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    limits: tuple[Price, ...] = ()
    sensitivities: tuple[Sensitivity, ...] = ()
    given: Judgement | None = None
    safe: str = ""
    """The price of the fastest plan that is not at risk, where the best is."""
    memory_front: tuple[FrontPoint, ...] = ()
    gpu_front: tuple[FrontPoint, ...] = ()
    left_out: tuple[str, ...] = ()
    """Parts that the time limit cut off."""
    warnings: tuple[str, ...] = ()
