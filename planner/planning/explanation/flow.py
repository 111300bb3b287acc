"""The flow of `planner explain`: why not, why this, and what would change it."""

from collections.abc import Callable

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.job.case import Case
from planner.job.variants import variants, with_settings
from planner.planning.explanation.ask import Answer, fits, is_legal
from planner.planning.explanation.binding import bindings
from planner.planning.explanation.changes import Clock
from planner.planning.explanation.conflict import least_memory, memory_conflict
from planner.planning.explanation.contradictions import contradiction
from planner.planning.explanation.fronts import gpu_front, memory_front
from planner.planning.explanation.given import judged
from planner.planning.explanation.neighbours import neighbours
from planner.planning.explanation.prices import limit_prices, sensitivities
from planner.planning.explanation.relaxations import relaxations
from planner.planning.explanation.safe import safe_choice
from planner.planning.optimize import optimize
from planner.planning.prediction.ran import predicted
from planner.specs.answer.explanation import Explained, Judgement, Limit, Need
from planner.specs.answer.result import RankedPlan, Result
from planner.specs.layouts.layout import PartialLayout

FIRST = 0.4
"""Share of the time that the search for the best plan may take. [1]"""


def explain(
    case: Case,
    given: PartialLayout,
    *,
    time_limit: float = 120.0,
    robust: bool = False,
) -> Explained:
    """Say why no layout will do, or why the best one wins and what it is worth.

    Args:
        case: The job. [-]
        given: A layout to judge, or nothing. [-]
        time_limit: Wall time for all searches; every single price is made whatever
            it says. [s]
        robust: Limit the risk of running out of memory, and explain the simplest
            tied plan in place of the fastest.

    Returns:
        Without a plan: a minimal set of limits that cannot hold together, and the
        changes that help. With a plan: the binding resources, neighbours, the price of
        every limit, sensitivities, fronts.

    Raises:
        BadInputError: The given layout is not legal, or a setting is impossible.
    """
    clock = Clock(time_limit)
    case = case.edited(lambda job: job.at_risk_of_most(robust=robust))
    if not is_legal(case):
        return _no_legal_layout(case, clock)
    if fits(case, FIRST * time_limit) is Answer.NO_FIT:
        return _infeasible(case, clock)
    result = optimize(
        case.workloads,
        top=4,
        time_limit=FIRST * time_limit,
        robust=robust,
        beside=False,
    )
    if result.plans:
        return _feasible(case, result, given, clock)
    return Explained(
        feasible=False, status="unknown", left_out=("everything: no plan in time",)
    )


def _no_legal_layout(case: Case, clock: Clock) -> Explained:
    # A setting that no framework has is bad input of its own kind, told as such.
    variants(case.workloads)
    found = contradiction(case)
    return Explained(
        feasible=False,
        status="no legal layout",
        conflict=found.limits,
        conflict_text=found.text,
        contradiction=found,
        relaxations=relaxations(case, found.limits, clock),
    )


def _infeasible(case: Case, clock: Clock) -> Explained:
    conflict, proven = memory_conflict(case, Clock(clock.share(3)))
    need = least_memory(case, Clock(clock.share(3)))
    unsure = () if proven else ("some searches behind the set of limits",)
    return Explained(
        feasible=False,
        status="infeasible",
        conflict=conflict,
        conflict_text=f"{_listed(conflict)}: {_needs(need)}",
        need=need,
        relaxations=relaxations(case, conflict, clock),
        left_out=unsure,
    )


def _listed(conflict: tuple[Limit, ...]) -> str:
    return ", ".join(limit.limit for limit in conflict) or "the model itself"


def _needs(need: Need | None) -> str:
    if need is None:
        return "no layout fits"
    return f"stage {need.stage} needs at least {need.at_least_gib:.1f} GiB"


def _feasible(
    case: Case, result: Result, given: PartialLayout, clock: Clock
) -> Explained:
    best, fastest = result.plans[0], min(result.plans, key=lambda plan: plan.slower)
    workload, its = workload_of(case, best), workload_of(case, fastest)
    judgement = _judged(case, given, fastest, clock) if given.given() else None
    parts: dict[str, Callable[[Clock], object]] = {
        "neighbours": lambda part: neighbours(workload, best, part),
        "safe": lambda part: safe_choice(case, best, part),
        "memory_front": lambda part: memory_front(case, result.plans, part),
        "gpu_front": lambda part: gpu_front(case, fastest, part),
        "sensitivities": lambda part: sensitivities(case, its, fastest, part),
        "limits": lambda part: limit_prices(case, fastest, part),
    }
    found, left_out = _in_turn(parts, clock)
    return Explained.model_validate(
        {
            **found,
            "feasible": True,
            "status": result.status,
            "best": best,
            "tie": result.tie,
            "robust": result.robust,
            "runner_up": result.explanation.runner_up,
            "given": judgement,
            "binding": bindings(workload, best),
            "left_out": left_out,
            "warnings": result.warnings,
        }
    )


def _in_turn(
    parts: dict[str, Callable[[Clock], object]], clock: Clock
) -> tuple[dict[str, object], tuple[str, ...]]:
    """Answers by name, each in an equal part of the time left, and those cut short."""
    found: dict[str, object] = {}
    cut: list[str] = []
    for left, (name, ask) in zip(range(len(parts), 0, -1), parts.items(), strict=True):
        part = Clock(clock.share(left))
        found[name] = ask(part)
        if not part.left:
            cut.append(f"{name.replace('_', ' ')}: the time ended first")
    return found, tuple(cut)


def workload_of(case: Case, plan: RankedPlan) -> Workload:
    """The job that a plan is for: its framework, method and optimizer."""
    name = plan.estimate.stack.get("framework")
    by_name = {w.framework.name: w for w in case.workloads}
    return with_settings(by_name[str(name)], plan.settings)


def _judged(
    case: Case, given: PartialLayout, fastest: RankedPlan, clock: Clock
) -> Judgement:
    """A given layout beside the best plan of its own framework and training block."""
    if len(case.workloads) > 1:
        raise BadInputError(
            "a layout is priced under one framework",
            file=case.file,
            field="framework",
            value=case.spec.framework,
            allowed=", ".join(w.framework.name for w in case.workloads),
        )
    best: RankedPlan | None = fastest
    own = case.assigned(("search.method=null", "search.optimizer=null"))
    (workload,) = own.workloads
    plan = predicted(workload, given)
    if fastest.settings:
        best = next(
            iter(optimize([workload], top=1, time_limit=clock.share(3)).plans), None
        )
    if best is None:
        raise BadInputError(
            "no plan fits under the job's own method and optimizer", field="search"
        )
    return judged(workload, plan, best, Clock(clock.share(3)))
