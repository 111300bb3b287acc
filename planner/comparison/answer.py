"""What a comparison answers, schema ``planner/comparison@1``."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.result import RankedPlan
from planner.specs.run import Run

CandidateStatus = Literal[
    "optimal", "feasible", "infeasible", "unknown", "over-budget", "too-late"
]
"""Of the plan search at the chosen count; over-budget where no count can be paid for,
too-late where no count meets the deadline."""


WORK = 20_000.0
"""Work for one candidate: half a minute or so on one core. [1]"""


class Answer(BaseModel):
    """A part of the answer: frozen, and read back as it was written."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Searched(Answer):
    """How a space was exhausted, in numbers that no clock changes."""

    space: int
    """Candidates. [1]"""
    priced: int
    """[1]"""
    pruned: dict[str, int]
    """By rule. [1]"""
    solved: int
    """[1]"""
    work: float
    """In visits of a candidate. [1]"""
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
    """Of the plan search. [-]"""
    gap: float = 1.0
    """How much faster a plan may be than the one found, at most. [1]"""
    step_time_s: float | None = None
    """[s]"""
    time_s: float | None = None
    """The whole run; none without a plan. [s]"""
    least_s: float = 0.0
    """No run on these nodes is shorter. [s]"""
    settled: bool = True
    """No plan is faster by more than the tolerance, or there is proven to be none."""
    cost_usd: float | None = None
    """The whole run. [USD]"""
    outlay_usd: float | None = None
    """What is signed for: the hardware where it is bought, the run's rent where it is
    rented. [USD]"""
    why: str = ""
    """What stands against a plan, where there is none."""


class PhasePlan(Answer):
    """The plan of one phase."""

    name: str
    """Empty for a run without phases."""
    plan: RankedPlan


class CandidateAnswer(Answer):
    """What one candidate would take for the job."""

    name: str
    status: CandidateStatus
    gpu: str
    """Name of its GPU."""
    price: str
    """With its unit, its date and where it is from."""
    chosen: str = ""
    """Why this number of nodes."""
    plan: RankedPlan | None = None
    """The best one found, of the first phase; none where nothing fits."""
    plans: tuple[PhasePlan, ...] = ()
    """Of every phase, in their order; one where the run has none."""
    search: Searched | None = None
    """How its space was exhausted."""
    settled: bool = True
    """Every verdict on it is proven. One that is not settled wins and loses nothing."""
    unsettled: str = ""
    """What is open, and why the search ended."""
    gap: float | None = None
    """How much faster another plan may be, at most. [1]"""
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
    """What is signed for. [USD]"""
    tokens_per_usd: float | None = None
    """Of the run's cost. [token/USD]"""
    budget_tokens: float | None = None
    """The most that the budget trains on these nodes. [token]"""
    run: Run | None = None
    """The whole run, every figure with its interval."""
    unmeasured: tuple[str, ...] = ()
    """What was never measured on this hardware and comes from a relative."""
    interval_from: str = ""
    """The measured runs behind the intervals, and how they were widened."""
    why: str = ""
    """What stands against it, where there is no plan to sign for."""
    points: tuple[Point, ...] = ()
    """Every count that was planned, ascending."""
    ruled_out: tuple[Floor, ...] = ()
    """Counts that were searched and have no plan that would do, ascending."""
    open_counts: tuple[int, ...] = ()
    """Counts that may do better than the one chosen, as far as was proven. [1]"""
    least_time_s: float | None = None
    """No run that answers the question is shorter here. [s]"""
    least_cost_usd: float | None = None
    """Nor cheaper. [USD]"""
    out_of_time: bool = False
    """The user's time limit ended it."""
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
    """In words."""
    time_s: float
    """Of the whole run with it. [s]"""
    saved_s: float
    """[s]"""
    cost_usd: float | None = None
    """Of the run with it, where its price is known. [USD]"""
    extra_usd: float | None = None
    """What it adds to what is signed for; below 0 where a rent falls by more than the
    change costs. None without a price. [USD]"""
    saved_s_per_usd: float | None = None
    """Time saved for a dollar that it adds; none without a price, or where it adds
    none. [s/USD]"""
    worth: str = ""
    """The price at which the run costs the same with it."""
    note: str = ""
    out_of_time: bool = False
    """The user's time limit ended the search for it."""


class Question(Answer):
    """What the candidates are held against."""

    tokens: float
    """[token]"""
    budget_usd: float | None = None
    """[USD]"""
    deadline_s: float | None = None
    """[s]"""


class Effort(Answer):
    """How hard each plan is searched for."""

    work: float = WORK
    """Of the searches of one candidate together, in visits of a layout: it ends them
    at the same place on every machine. [1]"""
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
    front: tuple[FrontPoint, ...]
    """No planned count of any candidate is both faster and cheaper than one of these;
    fastest first."""
    extras: tuple[Extra, ...] = ()
    """What the next dollar buys at the best candidate, the best first."""
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    seconds: float = 0.0
    """Wall time. [s]"""
