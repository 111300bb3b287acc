"""Features of a plan that a target cannot express."""

from collections.abc import Iterator, Sequence

from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.errors import UnsupportedPlanError
from planner.launch.brief import Gap
from planner.launch.read_plan import PlanFile
from planner.launch.target import Target

RAMP = "spec.training.batch_ramp"
"""Field of a ramp of batches, which no target and no other layout expresses. [text]"""
AT_FULL_BATCH = (
    "nearest: the same plan at its full batch; plan without training.batch_ramp, or "
    "give the smaller batches as phases"
)
"""Alternatives for a job with a batch ramp. [text]"""


class InexpressibleError(UnsupportedPlanError):
    """A target lacks words for features of a plan.

    Attributes:
        plan: The plan. [-]
        target: The target that was to write it. [-]
        gaps: The features. [-]
        pricing: The plan's job under the target's framework. [-]
    """

    def __init__(
        self, plan: PlanFile, target: Target, gaps: Sequence[Gap], pricing: Pricing
    ) -> None:
        """Name every feature with its line in the plan's file."""
        self.plan, self.target = plan, target
        self.gaps, self.pricing = tuple(dict.fromkeys(gaps)), pricing
        lines = "\n  ".join(_sentence(gap, plan) for gap in self.gaps)
        name = f"{target.title} {target.version}"
        super().__init__(f"{name} cannot express this plan:\n  {lines}")


def require_expressible(plan: PlanFile, target: Target) -> None:
    """Refuse a plan that a target of its framework cannot express.

    Raises:
        InexpressibleError: A feature cannot be expressed.
    """
    if gaps := gaps_of(plan, target):
        raise InexpressibleError(plan, target, gaps, plan.pricing)


def gaps_of(plan: PlanFile, target: Target) -> tuple[Gap, ...]:
    """Features of a plan that a target cannot express; a ramp of batches alone. [-]."""
    return tuple(_ramp_gaps(plan)) or target.gaps(plan.brief)


def require_written(workloads: Sequence[Workload], file: str) -> None:
    """Refuse a job that no target can write files for, before any search.

    Raises:
        UnsupportedPlanError: Every framework's stack has no target, or the job has a
            batch ramp; names the nearest target.
    """
    if workloads[0].training.batch_ramp:
        raise UnsupportedPlanError(
            f"{file}: no target's files start at smaller batches "
            f"({RAMP})\n  {AT_FULL_BATCH}"
        )
    if any(workload.framework.writers for workload in workloads):
        return
    room = workloads[0].framework
    raise UnsupportedPlanError(
        f"{file}: no launch files are written for stack {room.profile.name} of "
        f"{room.name}\n  nearest: target {room.nearest_target}; plan without "
        "stack.name and stack.version, or leave --out away"
    )


def _ramp_gaps(plan: PlanFile) -> Iterator[Gap]:
    """Gap of a batch ramp, told alone, since no other layout can express it."""
    if ramp := plan.brief.training.batch_ramp:
        batches = ", ".join(f"{step.global_batch:,}" for step in ramp)
        yield Gap("no batch ramp is written", RAMP, batches, "")


def _sentence(gap: Gap, plan: PlanFile) -> str:
    line = plan.line_of(gap.field)
    at = f"{plan.path}:{line}: " if line is not None else f"{plan.path}: "
    allowed = f"; it has {gap.allowed}" if gap.allowed else ""
    return f"{at}{gap.field} = {gap.value}: {gap.feature}{allowed}"
