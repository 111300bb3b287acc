"""The spec's layout and the plain one beside the answer of a search."""

import time
from collections.abc import Iterator
from dataclasses import replace

from planner.cost.workload import Workload
from planner.errors import BadInputError
from planner.frameworks.sanity import compared
from planner.job.loading import Job
from planner.planning.difference import changed_terms
from planner.planning.prediction.predict import predict
from planner.planning.prediction.ran import predicted
from planner.planning.reasons import why_slower
from planner.specs.answer.estimate import Estimate
from planner.specs.answer.result import Objective, RankedPlan, Result
from planner.specs.answer.yours import Beside, Yours
from planner.specs.layouts.layout import PartialLayout
from planner.specs.layouts.layout_text import difference
from planner.verify import violations
from planner.verify.legality import rule_violations

PLAIN_TIME = 2.0
"""Most time to look for the plain layout. [s]"""
CERTAIN = 0.999999
"""Risk that no prediction of memory exceeds. [1]"""


def with_yours(job: Job, found: Result, *, robust: bool) -> Result:
    """Let the spec's layout take part in a search that is over.

    The layout stands first where it is faster than the first plan, so that the answer
    is never worse. A layout that breaks a rule or a limit of the search, or that does
    not fit, is priced and ranked all the same, with the reason why it is no answer.

    Args:
        job: The job. [-]
        found: Answer of its search. [-]
        robust: True where the risk of running out of memory is limited. [-]
    """
    given = job.spec.layout
    if not given.given():
        return found
    workload = job.workload_of(next(iter(found.plans), None))
    try:
        yours = predicted(workload, given)
    except BadInputError as error:
        told = Yours(given=None, plain=None, is_answer=False, refused=str(error))
        return _with(found, told)
    if given.ran:
        found = _with_risk_of(found, yours)
    refused = _refused(workload, yours, robust=robust, ran=bool(given.ran))
    refused = refused or _unraced(found)
    raced = found if refused else _raced(found, yours, workload)
    first = next(iter(raced.plans), yours)
    plain = None if _unraced(found) else _plain(workload, robust=robust)
    told = Yours(
        given=beside(first, yours),
        plain=None if plain is None else beside(first, plain),
        is_answer=not refused and first.layout == yours.layout,
        refused=refused,
        position=_position(found, yours),
        ran=bool(given.ran),
    )
    return _with(raced, told)


def _with(found: Result, told: Yours) -> Result:
    """The answer with the spec's layout, and a warning where it cannot be chosen."""
    said = (f"the layout of the spec is not chosen: {told.refused}",)
    warnings = (*found.warnings, *(said if told.refused else ()))
    return found.model_copy(update={"yours": told, "warnings": warnings})


def _with_risk_of(found: Result, yours: RankedPlan) -> Result:
    """The answer with the price of a layout that ran, where the search found it."""
    its = {"estimate": yours.estimate}
    plans = tuple(
        one.model_copy(update=its) if one.layout == yours.layout else one
        for one in found.plans
    )
    return found.model_copy(update={"plans": plans})


def _unraced(found: Result) -> str:
    """Reason why no layout joins a search for another objective; else empty."""
    name = found.objective.name
    return "" if name == "throughput" else f"it is ranked by its step, not by {name}"


def _position(found: Result, yours: RankedPlan) -> int:
    """Place of a layout among the listed plans, by step. [1]."""
    step = yours.estimate.step_time_s.value
    faster = [one for one in found.plans if one.estimate.step_time_s.value < step]
    return 1 + len(faster)


def _refused(
    workload: Workload, plan: RankedPlan, *, robust: bool, ran: bool = False
) -> str:
    """Reason why a layout may not be the answer; empty where it may."""
    layout, its = plan.layout, plan.estimate
    reasons = (breach.sentence for breach in rule_violations(workload, layout))
    if reason := next(reasons, _unfit(workload, its, robust=robust)):
        return reason
    if ran:  # no limit on predicted memory binds what is known to fit
        workload = replace(workload, risk=CERTAIN)
    objections = violations(
        workload,
        layout,
        step_s=its.step_time_s.value,
        device_gib=[stage.device for stage in its.memory.stages],
    )
    return next(iter(objections), "")


def _unfit(workload: Workload, its: Estimate, *, robust: bool) -> str:
    memory = its.memory
    if memory.peak_device_gib.value > memory.capacity_gib:
        return (
            f"it does not fit: {memory.peak_device_gib.value:.1f} of "
            f"{memory.capacity_gib:.1f} GiB"
        )
    most = workload.search.memory_risk if robust else 1.0
    chance = memory.oom_probability or 0.0
    if chance > most:
        return f"it runs out of memory with {chance:.0%}, over the limit of {most:.0%}"
    return ""


def _raced(found: Result, yours: RankedPlan, workload: Workload) -> Result:
    """The answer with the layout first where it is faster than the first plan."""
    step = yours.estimate.step_time_s.value
    if found.plans and step >= found.plans[0].estimate.step_time_s.value:
        return found
    best = min([step, *(plan.estimate.step_time_s.value for plan in found.plans)])
    mine = yours.model_copy(update={"slower": step / best - 1})
    others = (
        plan.model_copy(
            update={
                "rank": rank,
                "slower": plan.estimate.step_time_s.value / best - 1,
                "why": why_slower(yours.estimate, plan.estimate),
            }
        )
        for rank, plan in enumerate(found.plans, start=2)
    )
    return found.model_copy(
        update={
            "plans": (mine, *others),
            "tie": None,
            "objective": _objective(found, workload, best),
            "status": _status(found),
        }
    )


def _objective(found: Result, workload: Workload, best_s: float) -> Objective:
    """Throughput of the fastest, and a bound that is no less."""
    tokens = workload.sequences * workload.training.seq_len
    value = tokens / best_s
    bound = max(found.objective.bound, value)
    name = found.objective.name
    return Objective(name=name, value=value, bound=bound, gap=bound / value - 1)


def _status(found: Result) -> str:
    """A layout from outside the space is a plan where the space has none."""
    ended = {"infeasible": "optimal", "unknown": "feasible"}
    return ended.get(found.status, found.status)


def beside(first: RankedPlan, other: RankedPlan) -> Beside:
    """A layout beside the first plan."""
    ours, theirs = first.estimate, other.estimate
    causes = ours.time_breakdown_s, theirs.time_breakdown_s
    times, memory = changed_terms(ours, theirs)
    return Beside(
        layout=other.layout,
        estimate=theirs,
        slower=theirs.step_time_s.value / ours.step_time_s.value - 1,
        expected=compared().gain(*causes),
        likely=compared().likely(*causes),
        differs=difference(other.layout, first.layout),
        why=why_slower(ours, theirs),
        time_s=times,
        memory_gib=memory,
    )


def _plain(workload: Workload, *, robust: bool) -> RankedPlan | None:
    """The first layout of few axes and the framework's defaults that may run."""
    until = time.monotonic() + PLAIN_TIME
    free = replace(workload, search=workload.search.unlimited())
    for partial in plain_layouts(workload):
        if time.monotonic() > until:
            return None
        try:
            plan = predict(free, partial)
        except BadInputError:
            continue
        if not _refused(free, plan, robust=robust):
            return plan
    return None


def plain_layouts(workload: Workload) -> Iterator[PartialLayout]:
    """Layouts in order of simplicity; what they leave open is the framework's default.

    Data parallelism alone comes first, then experts over ranks, then tensor
    parallelism within a node, then a pipeline of even stages beside it. Each comes
    without recompute, then with all of it.
    """
    experts = workload.model.expert_parameters > 0
    node = workload.topology.cluster.node.gpus_per_node
    tensor = _powers(node)
    for pp in _powers(workload.gpus):
        for tp in tensor if pp == 1 else tensor[-1:]:
            for ep in _powers(node) if experts else (1,):
                for kind in ("none", "full"):
                    yield PartialLayout(
                        tp=tp,
                        sp=tp > 1,
                        pp=pp,
                        ep=ep,
                        micro_batch=1,
                        recompute=kind,
                        stages="even",
                        order=workload.framework.limits.orders[0],
                    )


def _powers(most: int) -> tuple[int, ...]:
    """Powers of two up to a number. [1]."""
    return tuple(1 << at for at in range(max(most, 1).bit_length()))
