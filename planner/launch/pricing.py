"""Prices a plan anew before it is written, on the stack of its target."""

from collections.abc import Iterator
from dataclasses import replace

from planner.economics import Planned, run_of, with_run
from planner.errors import InfeasibleError
from planner.estimate.estimate import estimate
from planner.job.resolve import about
from planner.launch.emit import chosen
from planner.launch.gaps import require_expressible, under_target
from planner.launch.read_plan import PlanFile
from planner.launch.target import Target
from planner.prediction.refusals import refuse_host
from planner.specs.answer.estimate import Estimate
from planner.specs.answer.result import RankedPlan

SAME = 1e-3
"""Relative difference up to which two predictions agree. [1]"""


def priced(found: PlanFile, name: str, *, force: bool = False) -> PlanFile:
    """Price a plan for the target that is to write it.

    A plan for another framework becomes a plan for the target's framework, on that
    framework's own stack. The file's prediction stays where the new prediction
    agrees.

    Args:
        found: The plan. [-]
        name: Name of a target. [text]
        force: True to let a plan pass that does not fit in memory. [-]

    Raises:
        BadInputError: There is no such target, or the host is too small.
        UnsupportedPlanError: The target cannot express the plan.
        InfeasibleError: The plan does not fit, and *force* is not given.
    """
    target, _ = chosen(found, name)
    require_expressible(found, target)
    moved = _moved(found, target)
    now = priced_anew(moved)
    if not force:
        _refuse_oom(moved, now)
    if moved is found and _agree(found.plan.estimate, now):
        return found
    plan = moved.plan.model_copy(update={"estimate": now})
    return replace(moved, plan=plan, told=tuple(_remarks(found, target, now)))


def _moved(found: PlanFile, target: Target) -> PlanFile:
    """Turn a plan into a plan for the target's framework."""
    if found.spec.framework == target.framework:
        return found
    change = {"framework": target.framework, "stack": {}}
    spec = {**found.plan.spec, **change}
    return replace(
        found,
        plan=found.plan.model_copy(update={"spec": spec}),
        spec=found.spec.model_copy(update=change),
        pricing=under_target(found, target),
    )


def priced_anew(found: PlanFile) -> Estimate:
    """Predict a plan anew, with the whole run where the file has one."""
    with about(found.path):
        layout = found.plan.layout
        plan = RankedPlan(
            rank=1, layout=layout, estimate=estimate(found.pricing, layout)
        )
        refuse_host(found.pricing, plan.estimate.memory)
        if found.plan.estimate.time_to_train_s is None or not found.spec.training:
            return plan.estimate
        phase = Planned("", found.pricing, plan, found.spec.training)
        return with_run(plan, run_of([phase], found.spec.economics)).estimate


def _refuse_oom(found: PlanFile, now: Estimate) -> None:
    if now.memory.verdict != "oom":
        return
    raise InfeasibleError(
        f"{found.path}: layout: does not fit: {_memory(now)}; allowed: a layout that "
        "fits (planner plan), or --force to write it all the same"
    )


def _agree(was: Estimate, now: Estimate) -> bool:
    pairs = (
        (was.step_time_s.value, now.step_time_s.value),
        (was.memory.peak_device_gib.value, now.memory.peak_device_gib.value),
    )
    same = all(abs(a - b) <= SAME * b for a, b in pairs)
    return same and was.memory.verdict == now.memory.verdict


def _remarks(found: PlanFile, target: Target, now: Estimate) -> Iterator[str]:
    was = found.plan.estimate
    if found.spec.framework == target.framework:
        yield (
            f"The plan file says {_short(was)}; its layout is priced at {_short(now)}."
        )
        yield (
            "The layout or the job was changed since, or another version or "
            "calibration of planner priced it; these files hold the new prediction."
        )
        return
    stack = now.stack.get("name", target.framework)
    yield (
        f"The plan was made for {found.spec.framework}: {_short(was)}. Under "
        f"{target.title}'s own stack ({stack}) it is {_short(now)}, which these files "
        "hold."
    )


def _short(its: Estimate) -> str:
    return f"{its.step_time_s.value:.3f} s a step, {_memory(its)}"


def _memory(its: Estimate) -> str:
    memory = its.memory
    peak, room = memory.peak_device_gib.value, memory.capacity_gib
    return f"{peak:.1f} of {room:.1f} GiB ({memory.verdict})"
