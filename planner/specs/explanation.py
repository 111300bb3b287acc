"""The answer of `planner explain`: limits that clash, prices, neighbours, changes."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.estimate import Verdict
from planner.specs.layout import Layout
from planner.specs.result import RankedPlan, Status, Tie


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Limit(_Frozen):
    """One member of a smallest set of limits that cannot hold together."""

    field: str
    """Where the user writes it: a dotted field of the spec."""
    limit: str
    """In words, with its number."""


class Contradiction(_Frozen):
    """Limits that leave no legal layout, and what is near that does."""

    limits: tuple[Limit, ...]
    text: str
    nearest: tuple[str, ...]
    """What could stand in the place of each limit, all else as it is. [text]"""
    last: str
    """Which limit removed the last layouts. [text]"""


class Need(_Frozen):
    """The least memory that the whole space comes down to. [GiB]."""

    stage: int
    at_least_gib: float
    """No layout holds less: a search of the space under this capacity proved it."""
    reached_gib: float
    """The most frugal layout known."""
    capacity_gib: float


class Relaxation(_Frozen):
    """One change that makes a job feasible, and what the job then takes."""

    change: str
    effect: str
    assignments: tuple[str, ...]
    """The same change as `--set` takes it."""
    step_time_s: float
    gpus: int
    status: Status


class Binding(_Frozen):
    """What holds one pipeline rank back."""

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
    effect: str
    legal: bool
    fits: bool = False
    tied: bool = False
    """Whether it is within what such comparisons are off by."""
    step_time_s: float | None = None
    slower: float | None = None
    """Step over that of the best plan, minus 1; below 0 it is faster. [1]"""
    device_gib: float | None = None


class Price(_Frozen):
    """What one limit of the search costs."""

    limit: str
    effect: str
    step_time_s: float
    gain: float
    """Share of the step that goes if the limit goes. [1]"""


class Sensitivity(_Frozen):
    """What one better number of the machine would bring."""

    change: str
    effect: str
    step_time_s: float
    """The same plan there. [s]"""
    gain: float
    """Share of the step that the same plan saves. [1]"""
    best_step_time_s: float
    """The best plan known there. [s]"""
    best_gain: float
    another_wins: bool


class Change(_Frozen):
    """One set of changes to a given layout, and what it brings."""

    changes: tuple[str, ...]
    step_time_s: float
    share: float
    """Of the gain that the best plan brings. [1]"""


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
    """The one change that takes most."""
    fewest: Change | None = None
    """The fewest changes found that take most of the gain."""


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
    """The same where no layout is legal, with the nearest that would be."""
    need: Need | None = None
    relaxations: tuple[Relaxation, ...] = ()
    best: RankedPlan | None = None
    tie: Tie | None = None
    """Plans that the cost model cannot tell from the fastest."""
    robust: bool = False
    """Whether the best plan was chosen among tied ones."""
    runner_up: str = ""
    """What the best plan beats, or why it stands before the fastest."""
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
    """What the time limit cut off."""
    warnings: tuple[str, ...] = ()
