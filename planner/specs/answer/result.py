"""The answer of a search, with its certificate."""

from math import ceil
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.answer.estimate import Estimate
from planner.specs.answer.left_out import LeftOut
from planner.specs.answer.run import Run
from planner.specs.answer.yours import Yours
from planner.specs.layouts.layout import Layout
from planner.specs.layouts.offload import offload_text

Status = Literal["optimal", "feasible", "infeasible", "unknown"]


class Objective(BaseModel):
    """Quantity that was maximised, the value found and the bound that proves it."""

    model_config = ConfigDict(frozen=True)

    name: str
    value: float
    bound: float
    gap: float


class SearchReport(BaseModel):
    """Account of the space: nothing is left out without a rule's name."""

    model_config = ConfigDict(frozen=True)

    space: int
    priced: int
    pruned: dict[str, int]
    solved: int
    seconds: float
    work: float = 0.0
    """Work of the search, in visits of a candidate; equal on every machine. [1]"""
    left_out: tuple[LeftOut, ...] = ()
    """Rules by which the default space is smaller than the full; empty for the full."""
    full_faster: float | None = None
    """Most by which a plan of the full space may be faster, by a bound that takes no
    search; none where the full space was searched. [1]"""
    variants: int = 1
    """Frameworks, methods, optimizers and offloads that were searched together."""


class RankedPlan(BaseModel):
    """One of the best plans, and what tells it from the best."""

    model_config = ConfigDict(frozen=True)

    rank: int
    layout: Layout
    estimate: Estimate
    slower: float = 0.0
    """Step over the fastest plan's step, minus 1; above 0 for a first plan that was
    chosen by `robust`. [1]"""
    expected: float = 0.0
    """Expected difference: what measured pairs kept of the predicted one. [1]"""
    likely: float | None = None
    """Probability that the fastest plan is faster than this one; none for itself. [1]
    """
    why: str = ""
    settings: dict[str, str] = {}
    """Values that the search chose for the training block, by field; empty where the
    user left nothing open."""
    gap: float = Field(default=0.0, exclude=True)
    """Most by which another split of a given layout may be faster; 0 where the split
    is proven the best, or comes from a search, whose proof stands beside it. [1]"""

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
    """Rank among the listed plans; none where the plan is not listed. [1]"""
    layout: Layout
    settings: dict[str, str]
    framework: str
    slower: float
    """Predicted step over the fastest plan's step, minus 1. [1]"""
    error: float
    """Median error of such comparisons. [1]"""
    free_gib: float
    """Free memory of the fullest GPU. [GiB]"""
    axes: int
    """Degrees above one but data's and experts'; recompute and offload as one. [1]"""


class Tie(BaseModel):
    """Plans that lie within the error of comparing them with the fastest."""

    model_config = ConfigDict(frozen=True)

    plans: tuple[TiedPlan, ...]
    """The fastest first."""
    within: float
    """Largest predicted step over the fastest plan's step, minus 1. [1]"""
    rule: str
    """Rule by which a robust search chooses among the plans. [text]"""
    spread: float
    """Error at a difference of one step, from measured sweeps. [1]"""
    source: str


class Fastest(BaseModel):
    """The fastest plan whose predicted memory fits, or under a limit on the risk."""

    model_config = ConfigDict(frozen=True)

    status: Status
    """Optimal where no plan that is as likely to fit is faster."""
    layout: Layout
    settings: dict[str, str] = {}
    framework: str
    step_time_s: float
    faster: float
    """Share of the step that the fastest admitted plan takes longer; 0 where that is
    this plan, or where none is admitted. [1]"""
    oom_probability: float
    """Probability that the run does not fit. [1]"""
    peak_device_gib: float
    """Predicted memory of the fullest GPU. [GiB]"""

    @property
    def limit(self) -> float:
        """The least limit on the risk, in hundredths, that admits the plan. [1]."""
        return ceil(100 * self.oom_probability) / 100


class GivenBack(BaseModel):
    """The fastest plan that leaves so much more of every GPU's memory free."""

    model_config = ConfigDict(frozen=True)

    gib: float
    """Memory taken from the limit; the limit on the risk holds for the rest. [GiB]"""
    status: Status
    """Optimal where no plan with this much free is faster than the one here, or than
    `most_slower` where there is none."""
    slower: float | None
    """Step over the fastest admitted plan's, minus 1; none without a plan. [1]"""
    most_slower: float
    """Share above that step, up to which plans were sought. [1]"""
    step_time_s: float | None = None
    layout: Layout | None = None
    settings: dict[str, str] = {}
    framework: str = ""
    peak_device_gib: float | None = None
    """Predicted memory of the fullest GPU. [GiB]"""
    oom_probability: float | None = None
    """Probability that the run does not fit the whole GPU. [1]"""


class Explanation(BaseModel):
    """Reasons for a plan, in words."""

    model_config = ConfigDict(frozen=True)

    binding: tuple[str, ...] = ()
    runner_up: str = ""
    needed: str = ""
    """Axes of the first plan that no plan nearly as fast leaves out without another in
    their place, in words; empty where none is proven. [text]"""
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
    """Plans that the cost model cannot tell from the fastest; none where the fastest
    stands alone."""
    robust: bool = False
    """True where the risk of every plan is limited, and the first plan was chosen among
    tied plans; the objective is always the fastest admitted plan's."""
    fastest: Fastest | None = None
    """The plain optimum, whatever its risk; none where the risk is not limited."""
    riskier: tuple[Fastest, ...] = ()
    """Plans between the first and the plain optimum: the fastest at risks of at most 10
    and 20 %, where each is worth telling."""
    given_back: tuple[GivenBack, ...] = ()
    """Price of 5, 10 and 20 GiB of every GPU; none where the risk is not limited."""
    yours: Yours | None = None
    """The spec's layout and the plain one beside the first plan; none where the spec
    has no layout, or one that may not run."""
    warnings: tuple[str, ...] = ()
    spec: dict[str, object] = {}
    run: Run | None = None
    """The whole run of the first plan, of all phases together; none where the job
    does not say how many tokens it has."""
    phases: tuple["PhaseResult", ...] = ()
    """Result of each phase, the first as above; empty for a run without phases."""


class PhaseResult(BaseModel):
    """The answer for one phase of a run."""

    model_config = ConfigDict(frozen=True)

    name: str
    result: Result


Result.model_rebuild()


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
