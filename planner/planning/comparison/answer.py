"""Answer of a comparison, schema ``planner/comparison@1``."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.answer.result import RankedPlan
from planner.specs.answer.run import Run

CandidateStatus = Literal[
    "optimal", "feasible", "infeasible", "unknown", "over-budget", "too-late"
]
"""Status of the plan search at the chosen count; over-budget where no count can be
paid for, too-late where no count meets the deadline."""


WORK = 20_000.0
"""Work for one candidate: half a minute or so on one core. [1]"""


class Answer(BaseModel):
    """A part of the answer: frozen, and read back as it was written."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Searched(Answer):
    """Numbers of a search that no clock changes."""

    space: int
    """Candidates. [1]"""
    priced: int
    """[1]"""
    pruned: dict[str, int]
    """By rule. [1]"""
    solved: int
    """[1]"""
    work: float
    """Work of the search, in visits of a candidate. [1]"""
    variants: int
    """[1]"""


class Floor(Answer):
    """A node count that was searched and has no plan that would do."""

    nodes: int
    """[1]"""
    time_s: float
    """No run on it is shorter. [s]"""


class Point(Answer):
    """One node count of a candidate that was planned."""

    nodes: int
    """[1]"""
    gpus: int
    """[1]"""
    status: str
    """Status of the plan search. [-]"""
    gap: float = 1.0
    """Largest share by which a plan may be faster than the plan found. [1]"""
    step_time_s: float | None = None
    """[s]"""
    time_s: float | None = None
    """Time of the whole run; none without a plan. [s]"""
    least_s: float = 0.0
    """No run on these nodes is shorter. [s]"""
    settled: bool = True
    """No plan is faster by more than the tolerance, or there is proven to be none."""
    cost_usd: float | None = None
    """Cost of the whole run. [USD]"""
    outlay_usd: float | None = None
    """Money to sign for: the price of the hardware where it is bought, the run's rent
    where it is rented. [USD]"""
    why: str = ""
    """Reason against a plan, where there is none."""


class PhasePlan(Answer):
    """The plan of one phase."""

    name: str
    """Empty for a run without phases."""
    plan: RankedPlan


class CandidateAnswer(Answer):
    """Time, cost and plan of one candidate for the job."""

    name: str
    status: CandidateStatus
    gpu: str
    """Name of the candidate's GPU."""
    price: str
    """Price in words, with unit, date and source."""
    quotes: int = 0
    """Quotes behind the price; a price that the user gives is one. [1]"""
    cost_range_usd: tuple[float, float] | None = None
    """Cost of the run at the least and at the greatest quote; none without a cost.
    [USD]"""
    chosen: str = ""
    """Reason for this number of nodes."""
    plan: RankedPlan | None = None
    """Best plan found of the first phase; none where nothing fits."""
    plans: tuple[PhasePlan, ...] = ()
    """Plan of every phase, in order; one plan for a run without phases."""
    search: Searched | None = None
    """Numbers of the search of the first phase."""
    settled: bool = True
    """Every verdict on the candidate is proven. A candidate that is not settled wins
    and loses nothing."""
    unsettled: str = ""
    """Verdict that is open, and why the search ended."""
    gap: float | None = None
    """Largest share by which another plan may be faster. [1]"""
    nodes: int | None = None
    """[1]"""
    gpus: int | None = None
    """[1]"""
    time_to_train_s: float | None = None
    """[s]"""
    cost_usd: float | None = None
    """[USD]"""
    energy_mwh: float | None = None
    """[MWh]"""
    outlay_usd: float | None = None
    """Money to sign for. [USD]"""
    tokens_per_usd: float | None = None
    """Tokens of the run over the run's cost. [token/USD]"""
    budget_tokens: float | None = None
    """The most that the budget trains on these nodes. [token]"""
    run: Run | None = None
    """The whole run, every figure with its interval."""
    unmeasured: tuple[str, ...] = ()
    """Kernels and collectives never measured on this GPU: a relative's are taken."""
    interval_from: str = ""
    """The measured runs behind the intervals, and how they were widened."""
    why: str = ""
    """Reason against the candidate, where there is no plan to sign for."""
    points: tuple[Point, ...] = ()
    """Every count that was planned, ascending."""
    ruled_out: tuple[Floor, ...] = ()
    """Counts that were searched and have no plan that would do, ascending."""
    open_counts: tuple[int, ...] = ()
    """Counts that may do better than the chosen count, as far as was proven. [1]"""
    least_time_s: float | None = None
    """No run that answers the question is shorter here. [s]"""
    least_cost_usd: float | None = None
    """No run that answers the question is cheaper here. [USD]"""
    out_of_time: bool = False
    """The user's time limit ended the search."""
    pareto: bool = False
    """No other candidate is both faster and cheaper."""
    meets_deadline: bool | None = None
    """None without a deadline."""
    within_budget: bool | None = None
    """None without a budget."""


class FrontPoint(Answer):
    """A place on the front of time against cost."""

    name: str
    nodes: int
    gpus: int
    time_s: float
    cost_usd: float


class Extra(Answer):
    """One step of more or better hardware for the best candidate."""

    change: str
    """The step in words."""
    time_s: float
    """Time of the whole run with the step. [s]"""
    saved_s: float
    """[s]"""
    cost_usd: float | None = None
    """Cost of the run with the step, where the step's price is known. [USD]"""
    extra_usd: float | None = None
    """Money that the step adds to the outlay; below 0 where a rent falls by more than
    the step costs. None without a price. [USD]"""
    saved_s_per_usd: float | None = None
    """Time saved for a dollar that the step adds; none without a price, or where the
    step adds no dollar. [s/USD]"""
    worth: str = ""
    """Price of the step at which the run costs as much as without it."""
    note: str = ""
    out_of_time: bool = False
    """The user's time limit ended the search with the step."""


class Question(Answer):
    """Tokens, budget and deadline that all candidates are compared under."""

    tokens: float
    """[token]"""
    budget_usd: float | None = None
    """[USD]"""
    deadline_s: float | None = None
    """[s]"""


class Effort(Answer):
    """Limits of the search for each plan."""

    work: float = WORK
    """Work of all searches of one candidate, in visits of a layout. It ends the
    searches at the same layout on every machine. [1]"""
    time_limit_s: float | None = None
    """Wall time of the whole comparison, where the user limits it. [s]"""
    tolerance: float
    """A search ends when no plan can be faster by more. [1]"""


class Comparison(Answer):
    """The whole answer: candidates side by side, and what to sign for."""

    schema_name: Literal["planner/comparison@1"] = Field(
        default="planner/comparison@1", alias="schema"
    )
    title: str
    question: Question
    effort: Effort
    candidates: tuple[CandidateAnswer, ...]
    """In the order in which they were given."""
    best: str
    """Name of the candidate that answers the question best."""
    why_best: str
    over_quotes: str = ""
    """Change of the best over the spread of the quotes; empty without a spread."""
    front: tuple[FrontPoint, ...]
    """No planned count of any candidate is both faster and cheaper than one of these;
    fastest first."""
    extras: tuple[Extra, ...] = ()
    """Steps that the next dollar buys at the best candidate, the best first."""
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    seconds: float = 0.0
    """Wall time. [s]"""
