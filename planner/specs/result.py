"""The answer of a search, with its certificate."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.estimate import Estimate
from planner.specs.layout import Layout
from planner.specs.offload import offload_text
from planner.specs.run import Run

Status = Literal["optimal", "feasible", "infeasible", "unknown"]


class Objective(BaseModel):
    """What was maximised, the value found and the bound that proves it."""

    model_config = ConfigDict(frozen=True)

    name: str
    value: float
    bound: float
    gap: float


class SearchReport(BaseModel):
    """How the space was exhausted: nothing left out without a rule's name."""

    model_config = ConfigDict(frozen=True)

    space: int
    priced: int
    pruned: dict[str, int]
    solved: int
    seconds: float
    work: float = 0.0
    """What it took, in visits of a candidate; the same on every machine. [1]"""
    variants: int = 1
    """Frameworks, methods, optimizers and offloads that were searched together."""


class RankedPlan(BaseModel):
    """One of the best plans, and what tells it from the best."""

    model_config = ConfigDict(frozen=True)

    rank: int
    layout: Layout
    estimate: Estimate
    slower: float = 0.0
    """Than the fastest plan; above 0 for a first plan that was chosen by `robust`.
    [1]"""
    why: str = ""
    settings: dict[str, str] = {}
    """What the search chose of the training block, by field; empty where the user
    left nothing open."""

    @property
    def chosen(self) -> str:
        """Settings and offload in words, empty where there is nothing to say. [text].

        For example `method qlora, optimizer adamw-8bit, offload optimizer 1.0`.
        """
        parts = [f"{name} {value}" for name, value in self.settings.items()]
        return ", ".join(filter(None, [*parts, offload_text(self.layout.offload)]))


class TiedPlan(BaseModel):
    """A plan that the cost model cannot tell from the fastest."""

    model_config = ConfigDict(frozen=True)

    rank: int | None
    """Its place among the listed plans; none where it is not listed. [1]"""
    layout: Layout
    settings: dict[str, str]
    framework: str
    slower: float
    """Than the fastest, as predicted. [1]"""
    error: float
    """What half of such comparisons are off by. [1]"""
    free_gib: float
    """Memory of the fullest GPU that is left. [GiB]"""
    axes: int
    """Degrees above one; recompute and offload count as one each. [1]"""


class Tie(BaseModel):
    """Plans that lie within the error of comparing them with the fastest."""

    model_config = ConfigDict(frozen=True)

    plans: tuple[TiedPlan, ...]
    """The fastest first."""
    within: float
    """The most that one of them is slower, as predicted. [1]"""
    rule: str
    """How a robust search chooses among them. [text]"""
    spread: float
    """Error at a difference of one step, from measured sweeps. [1]"""
    source: str


class Explanation(BaseModel):
    """Why this plan, in words."""

    model_config = ConfigDict(frozen=True)

    binding: tuple[str, ...] = ()
    runner_up: str = ""
    infeasible: tuple[str, ...] = ()


class Result(BaseModel):
    """The whole answer, schema ``planner/result@1``."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_name: Literal["planner/result@1"] = Field(
        default="planner/result@1", alias="schema"
    )
    status: Status
    objective: Objective
    search: SearchReport
    plans: tuple[RankedPlan, ...]
    explanation: Explanation
    tie: Tie | None = None
    """Plans that the cost model cannot tell from the fastest; none where it stands
    alone."""
    robust: bool = False
    """Whether the first plan was chosen among tied ones; the objective is always that
    of the fastest."""
    warnings: tuple[str, ...] = ()
    spec: dict[str, object] = {}
    run: Run | None = None
    """The whole run of the first plan, of all phases together; none where the job
    does not say how many tokens it has."""
    phases: tuple["PhaseResult", ...] = ()
    """One search for each phase, the first's as above; empty for a run of one."""


class PhaseResult(BaseModel):
    """The answer for one phase of a run."""

    model_config = ConfigDict(frozen=True)

    name: str
    result: Result


class Plan(BaseModel):
    """One plan on its own, schema ``planner/plan@1``: what an emitter reads."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_name: Literal["planner/plan@1"] = Field(
        default="planner/plan@1", alias="schema"
    )
    spec: dict[str, object]
    layout: Layout
    estimate: Estimate
    versions: dict[str, str]
