"""Nearest plan that a target can express, in answer to a target's refusal."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic

from planner.cost.workload import Workload
from planner.errors import BadInputError, UnsupportedPlanError
from planner.launch.gaps import AT_FULL_BATCH, RAMP, InexpressibleError
from planner.launch.target import POOLS
from planner.planning.optimize import optimize
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.axes import FREE
from planner.specs.layouts.layout import Layout
from planner.specs.layouts.layout_text import degrees_text, recompute_kinds
from planner.specs.search import SearchSpec

KEPT = tuple(axis.name for axis in FREE if axis.group != "ranks")
"""Axes that the nearest plan should share, most important first. [text]"""
SECONDS = 8.0
"""Time for all searches for a nearest plan. [s]"""
TOP = 8
"""Plans of a search that are checked against the target. [1]"""


@contextmanager
def with_nearest() -> Iterator[None]:
    """Adds the nearest plan to the refusal of a target.

    Raises:
        UnsupportedPlanError: The refusal, with the nearest plan and its step.
    """
    try:
        yield
    except InexpressibleError as error:
        raise UnsupportedPlanError(f"{error}\n  {nearest(error)}") from error


def nearest(refusal: InexpressibleError) -> str:
    """Search the target's plan that shares most axes with the refused plan.

    Returns:
        The plan in a sentence, or what else to change. [text]
    """
    title = refusal.target.title
    stuck = [gap for gap in refusal.gaps if gap.field.startswith("spec.")]
    fields = {gap.field for gap in refusal.gaps}
    if RAMP in fields:
        return AT_FULL_BATCH
    if "spec.model" in fields:
        return f"nearest: none; no layout of this model has words in {title}"
    pools = [pool.name for pool in refusal.plan.pricing.pools]
    if pools and POOLS in fields:
        return f"nearest: plan the job on {' or '.join(pools)} alone, as its cluster"
    if stuck:
        changes = "; ".join(f"{gap.field}: {gap.allowed or 'another'}" for gap in stuck)
        return f"nearest: plan the job again with {changes}"
    return _searched(refusal)


def _searched(refusal: InexpressibleError) -> str:
    """Search with all axes of the plan kept, then with fewer and fewer."""
    target, room = refusal.target, refusal.pricing.framework
    own = tuple(writer for writer in room.writers if writer.target == target.name)
    workload = replace(refusal.pricing, framework=replace(room, writers=own))
    broken = {gap.field.removeprefix("layout.") for gap in refusal.gaps}
    kept = [axis for axis in KEPT if axis not in broken]
    until = monotonic() + SECONDS
    for count in range(len(kept), -1, -1):
        limits = _limits(refusal.plan.plan.layout, kept[:count])
        # Half of what is left: the later searches, of fewer limits, have time, too.
        left = (until - monotonic()) / (2 if count else 1)
        if left <= 0:
            return f"nearest: none found in {SECONDS:g} s"
        best = _best(refusal, replace(workload, search=limits), left)
        if best is not None:
            return _sentence(refusal, best)
    return f"nearest: no layout of this job fits under {target.title}"


def _limits(layout: Layout, axes: Sequence[str]) -> SearchSpec:
    kinds = recompute_kinds(layout)
    values = {axis: getattr(layout, axis) for axis in axes if axis != "recompute"}
    if "recompute" in axes and kinds:
        values["recompute"] = tuple(sorted(kinds))
    return SearchSpec.model_validate(values)


def _best(
    refusal: InexpressibleError, workload: Workload, seconds: float
) -> RankedPlan | None:
    """Fastest plan within the limits that the target can express."""
    try:
        result = optimize([workload], top=TOP, time_limit=seconds)
    except BadInputError:
        return None
    return next((plan for plan in result.plans if _is_expressed(refusal, plan)), None)


def _is_expressed(refusal: InexpressibleError, plan: RankedPlan) -> bool:
    fields = {"layout": plan.layout, "estimate": plan.estimate}
    other = replace(refusal.plan, plan=refusal.plan.plan.model_copy(update=fields))
    return not refusal.target.gaps(other.brief)


def _sentence(refusal: InexpressibleError, plan: RankedPlan) -> str:
    target = refusal.target
    asked = refusal.plan.plan.estimate.step_time_s.value
    step = plan.estimate.step_time_s.value
    return (
        f"nearest plan that {target.title} can express: {degrees_text(plan.layout)}: "
        f"predicted {step:.3f} s a step, {step / asked - 1:+.1%}; "
        f"planner plan with framework: {target.framework} gives it"
    )
