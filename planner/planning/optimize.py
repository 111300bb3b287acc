"""Turns a resolved job into the best plan, with its proof."""

from collections.abc import Callable, Sequence

from planner.cost.estimate.estimate import estimate
from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.frameworks.sanity import compared
from planner.job.expressible import refuse_inexpressible
from planner.job.variants import variants
from planner.planning.fastest import FOR_THE_LIMIT, no_safe_plan, plain_optimum, riskier
from planner.planning.given_back import given_back
from planner.planning.idle import why_idle
from planner.planning.infeasible import infeasibility
from planner.planning.layouts import found_layout
from planner.planning.objectives.objective import objective_of, runner_up_words
from planner.planning.reasons import changes, explanation, why_slower
from planner.planning.sanity import doubts
from planner.planning.simpler import simpler
from planner.planning.ties import (
    Contender,
    needed_words,
    robust_choice,
    tie,
    tied,
    why_robust,
)
from planner.search.best_first import search_all
from planner.search.bounds.known_bounds import KnownBounds
from planner.search.incumbents import Found
from planner.search.outcome import PROOF, Enough, Progress, SearchOutcome
from planner.search.stop import INTERRUPTED, Stop, after
from planner.specs.answer.estimate import Estimate
from planner.specs.answer.result import (
    Explanation,
    RankedPlan,
    Result,
    SearchReport,
    Status,
)
from planner.specs.layouts.layout import Layout
from planner.specs.search import limit_words
from planner.verify import violations
from planner.verify.writable import writer_breaches

__all__ = ["Enough", "Progress", "optimize"]

MOST_NEAR = 32
"""Plans that are priced to find those that tie with the fastest. [1]"""
FINISH = 1.0
"""Time after a search to price and verify the plans that it found. [s]"""


def optimize(
    workloads: Sequence[Workload],
    *,
    top: int = 4,
    time_limit: float = 120.0,
    robust: bool = False,
    beside: bool = True,
    known_s: float = float("inf"),
    tolerance: float = 0.0,
    enough: Enough = PROOF,
    progress: Callable[[Progress], None] | None = None,
    stop: Stop | None = None,
) -> Result:
    """Search every variant's space together, keep the best, verify, explain.

    A variant is a framework with a method, an optimizer and an offload that the
    search block allows; none is favoured but by its step.

    Args:
        workloads: The job under each framework that may run it.
        top: Plans to list. [1]
        time_limit: Wall time over all variants, listing and pricing included. [s]
        robust: Admit a layout only if its probability of running out of memory is at
            most the job's limit, and put the simplest plan first that ties with the
            fastest; status, bound and objective stay those of the fastest admitted.
        beside: With robust, search what more risk buys and the price of free memory,
            too, in what time is left.
        known_s: A step time that is reachable already: slower plans are not sought.
            Without a plan, the status optimal says that no plan is as fast. [s]
        tolerance: Stop when no plan can be faster than the best by more; the status
            is then feasible, with a bound. [1]
        enough: Work that the search may take, and a step that needs no proof. [-]
        progress: Called about ten times a second with the state of a search.
        stop: Ends the search, in place of the time limit. [-]

    Returns:
        Status, plans, those that tie, bound and what removed every other candidate.

    Raises:
        BadInputError: The limits leave no legal layout, or ask for what no framework
            of the job can express.
    """
    refuse_inexpressible(workloads)
    whole = stop or after(time_limit)
    beside, stop = beside and robust, whole
    if robust:
        workloads = [each.at_risk_of_most(robust=True) for each in workloads]
    if beside:
        stop = whole.within(FOR_THE_LIMIT * whole.left)
    known = KnownBounds()
    outcomes = search_all(
        variants(workloads),
        top=top,
        known_s=known_s,
        tolerance=tolerance,
        enough=enough,
        progress=progress,
        stop=stop,
        known=known if robust else None,
    )
    seen = not any(outcome.stopped for outcome in outcomes)
    if seen and not any(outcome.candidates for outcome in outcomes):
        raise BadInputError(
            "no legal layout is left; removed by: " + _rules(outcomes),
            field="search",
        )
    spare = Stop(whole.deadline + FINISH, stop.memory)
    spare.why = INTERRUPTED if stop.why == INTERRUPTED else ""
    contenders = _contenders(outcomes, top, spare)
    needed: tuple[str, ...] = ()
    if robust and contenders and workloads[0].aim.is_step:
        fewer = simpler(workloads, contenders, whole, known)
        contenders += fewer.plans
        needed = fewer.needed
    found = _result(outcomes, contenders, top=top, robust=robust, spare=spare)
    told = found.explanation.model_copy(update={"needed": needed_words(needed)})
    found = found.model_copy(update={"explanation": told})
    if not beside:
        return found
    found = _with_fastest(found, workloads, contenders, whole, known)
    if not (contenders and workloads[0].aim.is_step):
        return found
    prices = given_back(workloads, contenders, found.search.work, whole, known)
    return found.model_copy(update={"given_back": prices})


def _with_fastest(
    found: Result,
    workloads: Sequence[Workload],
    contenders: Sequence[Contender],
    stop: Stop,
    known: KnownBounds,
) -> Result:
    """The answer with the plain optimum beside it, and plans between the two."""
    best = next(iter(contenders), None)
    if best is not None and not best.pricing.aim.is_step:
        return found
    fastest = plain_optimum(workloads, best, stop, known)
    enough = Enough(found.search.work)
    between = riskier(workloads, best, fastest, enough, stop, known)
    told = found.explanation
    if found.status == "infeasible":
        why = no_safe_plan(fastest, between, workloads[0].search.memory_risk)
        told = told.model_copy(update={"infeasible": (*why, *told.infeasible)})
    new = {"fastest": fastest, "riskier": between, "explanation": told}
    return found.model_copy(update=new)


def _result(
    outcomes: Sequence[SearchOutcome],
    contenders: Sequence[Contender],
    *,
    top: int,
    robust: bool,
    spare: Stop,
) -> Result:
    """The answer: plans, ties and the proof, which is always of the fastest."""
    aim = outcomes[0].pricing.aim
    # What tells steps apart says nothing about amounts of plans that use other GPUs.
    among = tied(contenders) if aim.is_step else []
    first = robust_choice(contenders, among) if robust and among else 0
    listed = _listed(contenders, top, first)
    plans = _plans(contenders, listed, spare)
    status = _status(outcomes, contenders)
    ranks = {at: rank for rank, at in enumerate(listed[: len(plans)], start=1)}
    told = _explain(outcomes, plans, status, spare)
    if first:
        why = why_robust(contenders, among, first)
        told = told.model_copy(update={"runner_up": why})
    if not aim.is_step and plans:
        told = told.model_copy(
            update={"runner_up": runner_up_words(aim.name, plans, contenders)}
        )
    return Result(
        status=status,
        objective=objective_of(outcomes, contenders),
        search=_report(outcomes),
        plans=tuple(plans),
        explanation=told,
        tie=tie(contenders, among, ranks) if len(among) > 1 else None,
        robust=robust,
        warnings=(
            *_warnings(plans),
            *_doubts(contenders[first : first + 1]),
            *_unseen(outcomes),
        ),
    )


def _doubts(chosen: Sequence[Contender]) -> tuple[str, ...]:
    """Doubts about the first plan."""
    return tuple(
        said for one in chosen for said in doubts(one.pricing, one.layout, one.estimate)
    )


def _unseen(outcomes: Sequence[SearchOutcome]) -> tuple[str, ...]:
    """Tell of candidates that were never priced, and of what bounds them."""
    why = next((outcome.unseen for outcome in outcomes if outcome.unseen), "")
    if not why:
        return ()
    return (
        f"not every candidate was priced before the end ({why}): the bound of the "
        "others is the time that the GPUs need for the model's products alone",
    )


def _rules(outcomes: Sequence[SearchOutcome]) -> str:
    counted = _report(outcomes).pruned
    # Rules on offload remove few candidates, so they go before those on degrees.
    ranked = sorted(
        counted.items(),
        key=lambda item: (not item[0].startswith(("offload", "host")), -item[1]),
    )
    limits = outcomes[0].pricing.search.limits()
    return "; ".join(_rule(rule, count, limits) for rule, count in ranked[:4] if count)


def _rule(rule: str, count: int, limits: dict[str, object]) -> str:
    """A rule in words; a limit of the user with its value."""
    axis = rule.removeprefix("limit:")
    if axis == rule or axis not in limits:
        return f"{rule} ({count} removed)"
    return f"the limit {limit_words(axis, limits[axis])} ({count} values removed)"


def _contenders(
    outcomes: Sequence[SearchOutcome], top: int, spare: Stop
) -> list[Contender]:
    """The best plan of all variants, and as time allows the next and the near plans."""
    ranked = sorted(plan for outcome in outcomes for plan in outcome.ranked)[:top]
    near = {plan for outcome in outcomes for plan in outcome.near}
    more = sorted(near.difference(ranked))[: max(MOST_NEAR - len(ranked), 0)]
    found: list[Contender] = []
    for plan in sorted([*ranked, *more]):
        if found and spare.reached:
            break
        one = _contender(outcomes, plan)
        if not any(_is_same(one, other) for other in found):
            found.append(one)
    return found


def _is_same(one: Contender, other: Contender) -> bool:
    """True where two searches gave plans of equal layout and settings."""
    same = one.layout == other.layout
    return same and one.pricing.chosen == other.pricing.chosen


def _contender(outcomes: Sequence[SearchOutcome], plan: Found) -> Contender:
    outcome = outcomes[plan.variant]
    pricing, layout = outcome.pricing, found_layout(outcome, plan)
    return Contender(pricing, layout, estimate(pricing, layout), plan.step_s)


def _listed(contenders: Sequence[Contender], top: int, first: int) -> list[int]:
    """Indices of the plans to list: the chosen one, then the fastest."""
    others = [at for at in range(len(contenders)) if at != first]
    return [first, *others][:top] if contenders else []


def _plans(
    contenders: Sequence[Contender], listed: Sequence[int], spare: Stop
) -> list[RankedPlan]:
    """The plans to list, verified one by one; the first, and others as time allows."""
    plans: list[RankedPlan] = []
    for rank, at in enumerate(listed, start=1):
        if plans and spare.reached:
            break
        one = contenders[at]
        _verify(one.pricing, one.layout, one.estimate)
        plans.append(_ranked(rank, one, contenders[0]))
    return plans


def _verify(workload: Workload, layout: Layout, predicted: Estimate) -> None:
    """Raise where the verifier objects to a plan: a bug of planner, never an answer."""
    objections = violations(
        workload,
        layout,
        step_s=predicted.step_time_s.value,
        device_gib=[stage.device for stage in predicted.memory.stages],
    )
    objections += (breach.sentence for breach in writer_breaches(workload, layout))
    host = predicted.memory.host
    if host is not None and not host.is_enough:
        objections.append(f"hosts lack memory: {host}")
    if objections:
        raise AssertionError("verify objects: " + "; ".join(objections))


def _ranked(rank: int, one: Contender, best: Contender) -> RankedPlan:
    """A plan with its rank, and the causes that make it slower than the fastest."""
    same = one is best
    causes = best.estimate.time_breakdown_s, one.estimate.time_breakdown_s
    return RankedPlan(
        rank=rank,
        layout=one.layout,
        estimate=one.estimate,
        slower=one.step_s / best.step_s - 1,
        expected=0.0 if same else compared().gain(*causes),
        likely=None if same else compared().likely(*causes),
        why="" if same else why_slower(best.estimate, one.estimate),
        settings=one.pricing.chosen,
    )


def _status(outcomes: Sequence[SearchOutcome], found: Sequence[Contender]) -> Status:
    """Infeasible only where every candidate of every variant is ruled out.

    Without a plan, optimal says that no plan is as fast as the known step.
    """
    bound = min(outcome.bound_s for outcome in outcomes)
    if not found:
        known = outcomes[0].known_s
        ruled_out: Status = "infeasible" if known == float("inf") else "optimal"
        return ruled_out if bound >= known else "unknown"
    best = min(outcome.ranked[0].step_s for outcome in outcomes if outcome.ranked)
    return "optimal" if bound >= best else "feasible"


def _report(outcomes: Sequence[SearchOutcome]) -> SearchReport:
    pruned: dict[str, int] = {}
    for outcome in (each for each in outcomes if not each.rough):
        for rule, count in outcome.pruned.items():
            pruned[rule] = pruned.get(rule, 0) + count
    return SearchReport(
        space=sum(outcome.candidates for outcome in outcomes),
        priced=sum(outcome.candidates for outcome in outcomes),
        pruned=pruned,
        solved=sum(outcome.solved for outcome in outcomes),
        seconds=sum(outcome.seconds for outcome in outcomes),
        work=sum(outcome.worked for outcome in outcomes),
        variants=sum(not outcome.rough for outcome in outcomes),
    )


def _explain(
    outcomes: Sequence[SearchOutcome],
    plans: list[RankedPlan],
    status: Status,
    spare: Stop,
) -> Explanation:
    if status == "infeasible":
        return Explanation(infeasible=infeasibility(outcomes, spare))
    told = explanation(plans)
    if not plans:
        return told
    proven = status == "optimal" and plans[0].slower <= 0
    idle = why_idle(outcomes, plans[0].layout, proven=proven)
    return told.model_copy(update={"binding": (*told.binding, *idle)})


def _warnings(plans: list[RankedPlan]) -> tuple[str, ...]:
    """Name an at-risk choice and the price of the safe one."""
    if not plans or plans[0].estimate.memory.verdict == "fits":
        return ()
    memory = plans[0].estimate.memory
    risk = (
        f"the best plan is {memory.verdict}: {memory.peak_device_gib.value:.1f} GiB of "
        f"{memory.capacity_gib:.1f} GiB, up to {memory.peak_device_gib.high:.1f} GiB"
    )
    safe = [plan for plan in plans if plan.estimate.memory.verdict == "fits"]
    if not safe:
        return (f"{risk}; none of the listed plans is safe",)
    return (
        f"{risk}; plan {safe[0].rank} ({changes(plans[0], safe[0])}) is safe at "
        f"{safe[0].slower:.1%} slower "
        f"({safe[0].estimate.memory.peak_device_gib.value:.1f} GiB)",
    )
