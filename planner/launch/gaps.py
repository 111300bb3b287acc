"""Features of a plan that a target cannot express, and the nearest plan."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.errors import BadInputError, UnsupportedPlanError
from planner.job.resolve import resolve
from planner.launch.brief import Gap
from planner.launch.read_plan import PlanFile
from planner.launch.target import POOLS, Target
from planner.planning.optimize import optimize
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.axes import FREE
from planner.specs.layouts.layout import Layout
from planner.specs.layouts.layout_text import degrees_text, recompute_kinds
from planner.specs.search import SearchSpec
from planner.verify.legality import rule_violations

KEPT = tuple(axis.name for axis in FREE if axis.group != "ranks")
"""Axes that the nearest plan should share, most important first. [text]"""
SECONDS = 8.0
"""Time for all searches for a nearest plan. [s]"""
AT_FULL_BATCH = (
    "nearest: the same plan at its full batch; plan without training.batch_ramp, or "
    "give the smaller batches as phases"
)
"""Alternatives for a job with a batch ramp. [text]"""
TOP = 8
"""Plans of a search that are checked against the target. [1]"""


def require_expressible(
    found: PlanFile, target: Target, *, nearest: bool = True
) -> None:
    """Refuse a plan that a target cannot express.

    Args:
        found: The plan. [-]
        target: Target that is to write the plan. [-]
        nearest: False to leave the nearest plan, which takes searches, out. [-]

    Raises:
        UnsupportedPlanError: A feature cannot be expressed; names every feature with
            its line, and the nearest plan with its predicted step.
    """
    _refuse_ramp(found, target)
    gaps = (*_framework_gaps(found, target), *target.gaps(found.brief))
    if not gaps:
        return
    told = [_sentence(gap, found) for gap in dict.fromkeys(gaps)]
    told += [_nearest(found, target, gaps)] if nearest else []
    raise UnsupportedPlanError(
        f"{target.title} {target.version} cannot express this plan:\n  "
        + "\n  ".join(told)
    )


def require_written(workloads: Sequence[Workload], file: str) -> None:
    """Refuse a job that no target can write files for, before any search.

    Raises:
        UnsupportedPlanError: Every framework's stack has no target, or the job has a
            batch ramp; names the nearest target.
    """
    if workloads[0].training.batch_ramp:
        raise UnsupportedPlanError(
            f"{file}: no target's files start at smaller batches "
            f"(spec.training.batch_ramp)\n  {AT_FULL_BATCH}"
        )
    if any(workload.framework.writers for workload in workloads):
        return
    room = workloads[0].framework
    raise UnsupportedPlanError(
        f"{file}: no launch files are written for stack {room.profile.name} of "
        f"{room.name}\n  nearest: target {room.nearest_target}; plan without "
        "stack.name and stack.version, or leave --out away"
    )


def ramp_gaps(found: PlanFile) -> tuple[Gap, ...]:
    """Gap of a batch ramp, which no target can express."""
    ramp = found.brief.training.batch_ramp or ()
    batches = ", ".join(f"{step.global_batch:,}" for step in ramp)
    gap = Gap("no batch ramp is written", "spec.training.batch_ramp", batches, "")
    return (gap,) if ramp else ()


def _refuse_ramp(found: PlanFile, target: Target) -> None:
    """Refuse a batch ramp at once, since no other layout can express it."""
    for gap in ramp_gaps(found):
        _refuse(gap, found, target)


def _refuse(gap: Gap, found: PlanFile, target: Target) -> None:
    raise UnsupportedPlanError(
        f"{target.title} {target.version} cannot express this plan:\n  "
        f"{_sentence(gap, found)}\n  {AT_FULL_BATCH}"
    )


def _sentence(gap: Gap, found: PlanFile) -> str:
    line = found.line_of(gap.field)
    at = f"{found.path}:{line}: " if line is not None else f"{found.path}: "
    allowed = f"; it has {gap.allowed}" if gap.allowed else ""
    return f"{at}{gap.field} = {gap.value}: {gap.feature}{allowed}"


def _framework_gaps(found: PlanFile, target: Target) -> tuple[Gap, ...]:
    """Rules of the target's framework that a plan for another framework breaks."""
    if found.spec.framework == target.framework:
        return ()
    workload = under_target(found, target)
    broken = rule_violations(workload.unwritten(), found.plan.layout)
    return tuple(Gap(b.sentence, b.field, b.value, "") for b in broken)


def under_target(found: PlanFile, target: Target) -> Pricing:
    """The plan's job in the target's framework, with that framework's own stack.

    Raises:
        UnsupportedPlanError: The framework cannot run the job.
    """
    spec = found.spec.model_copy(update={"framework": target.framework, "stack": {}})
    try:
        (workload,) = resolve(
            spec,
            file=found.path,
            base=Path(found.path).parent,
            catalog=found.pricing.topology.cluster.catalog,
            calibration=found.calibration,
        )
    except BadInputError as error:
        raise UnsupportedPlanError(
            f"{target.title} cannot run this job at all: {error}"
        ) from error
    pricing = Pricing.of(workload, found.plan.layout)
    return replace(pricing, search=SearchSpec())


def _nearest(found: PlanFile, target: Target, gaps: Sequence[Gap]) -> str:
    """Sentence on the target's plan that shares most axes with the given plan."""
    stuck = [gap for gap in gaps if gap.field.startswith("spec.")]
    if any(gap.field == "spec.model" for gap in stuck):
        return f"nearest: none; no layout of this model has words in {target.title}"
    pools = [pool.name for pool in found.pricing.pools]
    if pools and any(gap.field == POOLS for gap in gaps):
        return f"nearest: plan the job on {' or '.join(pools)} alone, as its cluster"
    if stuck:
        changes = "; ".join(f"{gap.field}: {gap.allowed or 'another'}" for gap in stuck)
        return f"nearest: plan the job again with {changes}"
    workload = under_target(found, target)
    room = workload.framework
    own = tuple(writer for writer in room.writers if writer.target == target.name)
    workload = replace(workload, framework=replace(room, writers=own))
    broken = {gap.field.removeprefix("layout.") for gap in gaps}
    kept = [axis for axis in KEPT if axis not in broken]
    until = monotonic() + SECONDS
    for count in range(len(kept), -1, -1):
        limits = _limits(found.plan.layout, kept[:count])
        # Half of what is left: the later searches, of fewer limits, have time, too.
        left = (until - monotonic()) / (2 if count else 1)
        if left <= 0:
            return f"nearest: none found in {SECONDS:g} s"
        plan = _best(found, target, replace(workload, search=limits), left)
        if plan is not None:
            return _said(found, target, plan)
    return f"nearest: no layout of this job fits under {target.title}"


def _limits(layout: Layout, axes: Sequence[str]) -> SearchSpec:
    kinds = recompute_kinds(layout)
    values = {axis: getattr(layout, axis) for axis in axes if axis != "recompute"}
    if "recompute" in axes and kinds:
        values["recompute"] = tuple(sorted(kinds))
    return SearchSpec.model_validate(values)


def _best(
    found: PlanFile, target: Target, workload: Workload, seconds: float
) -> RankedPlan | None:
    """Fastest plan within the limits that the target can express."""
    try:
        result = optimize([workload], top=TOP, time_limit=seconds)
    except BadInputError:
        return None
    return next((p for p in result.plans if _can(found, target, p)), None)


def _can(found: PlanFile, target: Target, plan: RankedPlan) -> bool:
    fields = {"layout": plan.layout, "estimate": plan.estimate}
    other = replace(found, plan=found.plan.model_copy(update=fields))
    return not target.gaps(other.brief)


def _said(found: PlanFile, target: Target, plan: RankedPlan) -> str:
    mine = found.plan.estimate.step_time_s.value
    its = plan.estimate.step_time_s.value
    return (
        f"nearest plan that {target.title} can express: {degrees_text(plan.layout)}: "
        f"predicted {its:.3f} s a step, {its / mine - 1:+.1%}; "
        f"planner plan with framework: {target.framework} gives it"
    )
