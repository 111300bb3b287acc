"""Launch files of a plan, priced before they are written on the stack of the target."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from planner.cost.estimate.estimate import estimate
from planner.cost.pricing import Pricing
from planner.errors import BadInputError, InfeasibleError, UnsupportedPlanError
from planner.job.resolve import about, resolve
from planner.launch.brief import Gap, LaunchFile
from planner.launch.emit import chosen, emit, emit_own
from planner.launch.gaps import RAMP, InexpressibleError, gaps_of
from planner.launch.read_plan import PlanFile
from planner.launch.target import Target
from planner.planning.economics import Planned, run_of, with_run
from planner.planning.prediction.refusals import refuse_host
from planner.questions.nearest import with_nearest
from planner.specs.answer.estimate import Estimate
from planner.specs.answer.result import RankedPlan
from planner.specs.search import SearchSpec
from planner.verify.legality import rule_violations

SAME = 1e-3
"""Relative difference up to which two predictions agree. [1]"""


@dataclass(frozen=True)
class Emit:
    """`planner emit`: a plan is to become a folder of launch files.

    Attributes:
        plan: The plan. [-]
        target: A target, for which the plan is priced anew; None: the plan's own
            framework, under the plan's own prediction. [text]
        force: True to write a plan that does not fit the memory. [-]
    """

    plan: PlanFile
    target: str | None = None
    force: bool = False

    def answer(self) -> "Folder":
        """Write the files.

        Raises:
            BadInputError: There is no such target, or the host is too small.
            UnsupportedPlanError: The target cannot express the plan; names the nearest
                plan that it can.
            InfeasibleError: The plan does not fit, and is not forced.
        """
        with with_nearest():
            if self.target is None:
                return Folder(emit_own(self.plan))
            plan = priced(self.plan, self.target, force=self.force)
            return Folder(emit(plan, self.target), plan.told)


@dataclass(frozen=True)
class Folder:
    """Files of a launch folder.

    Attributes:
        files: The files. [-]
        remarks: Remarks on the prediction. [text]
    """

    files: tuple[LaunchFile, ...]
    remarks: tuple[str, ...] = ()


def priced(plan: PlanFile, name: str, *, force: bool = False) -> PlanFile:
    """Price a plan for the target that is to write it.

    A plan for another framework becomes a plan for the target's framework, on that
    framework's own stack. The file's prediction stays where the new prediction
    agrees.

    Args:
        plan: The plan. [-]
        name: Name of a target. [text]
        force: True to let a plan pass that does not fit in memory. [-]

    Raises:
        BadInputError: There is no such target, or the host is too small.
        UnsupportedPlanError: The target cannot express the plan.
        InfeasibleError: The plan does not fit, and *force* is not given.
    """
    target, _ = chosen(plan, name)
    moved = _moved(plan, target)
    _require_expressible(plan, target, moved)
    now = priced_anew(moved)
    if not force:
        _refuse_oom(moved, now)
    if moved is plan and _agree(plan.plan.estimate, now):
        return plan
    fields = moved.plan.model_copy(update={"estimate": now})
    return replace(moved, plan=fields, told=tuple(_remarks(plan, target, now)))


def _require_expressible(plan: PlanFile, target: Target, moved: PlanFile) -> None:
    """Refuse a plan that a target lacks words for, or that its framework forbids."""
    gaps = gaps_of(plan, target)
    if moved is not plan and RAMP not in {gap.field for gap in gaps}:
        gaps = (*_broken_rules(moved), *gaps)
    if gaps:
        raise InexpressibleError(plan, target, gaps, moved.pricing)


def _broken_rules(moved: PlanFile) -> Iterator[Gap]:
    """Rules of the target's framework that a plan for another framework breaks."""
    for breach in rule_violations(moved.pricing.unwritten(), moved.plan.layout):
        yield Gap(breach.sentence, breach.field, breach.value, "")


def _moved(plan: PlanFile, target: Target) -> PlanFile:
    """Turn a plan into a plan for the target's framework, on that one's own stack."""
    if plan.spec.framework == target.framework:
        return plan
    change = {"framework": target.framework, "stack": {}}
    spec = plan.spec.model_copy(update=change)
    return replace(
        plan,
        plan=plan.plan.model_copy(update={"spec": {**plan.plan.spec, **change}}),
        spec=spec,
        pricing=_resolved(replace(plan, spec=spec), target),
    )


def _resolved(plan: PlanFile, target: Target) -> Pricing:
    """The job of a plan that came from another framework.

    Raises:
        UnsupportedPlanError: The framework cannot run the job.
    """
    try:
        (workload,) = resolve(
            plan.spec,
            file=plan.path,
            base=Path(plan.path).parent,
            catalog=plan.pricing.topology.cluster.catalog,
            calibration=plan.calibration,
        )
    except BadInputError as error:
        raise UnsupportedPlanError(
            f"{target.title} cannot run this job at all: {error}"
        ) from error
    return replace(Pricing.of(workload, plan.plan.layout), search=SearchSpec())


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
