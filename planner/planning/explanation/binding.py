"""Resource that binds each pipeline rank: memory, the rank's own work, or waiting."""

from collections.abc import Iterator

from planner.cost.estimate.pricing import price
from planner.cost.pipeline.splits import by_rank, stage_vectors
from planner.cost.workload import Workload
from planner.planning.reasons import CAUSE_WORDS
from planner.specs.answer.estimate import Estimate, StageMemory
from planner.specs.answer.explanation import Binding
from planner.specs.answer.result import RankedPlan

FULL = 0.97
"""Share of the memory from which a rank counts as full. [1]"""
LEVEL = 0.99
"""Share of the busiest rank's work from which a rank counts as busiest too. [1]"""
PARTS = ("weights", "gradients", "optimizer", "activations", "transient")


def bindings(workload: Workload, plan: RankedPlan) -> tuple[Binding, ...]:
    """Name the resource that binds every pipeline rank of a plan.

    A rank whose peak is within three per cent of the memory is bound by memory. The
    text names the moment and the largest category. Else a rank as busy as the busiest
    rank is bound by time. Any other rank waits.

    Returns:
        One binding for each rank, shape (pp,).
    """
    memory, busy = plan.estimate.memory, list(_busy(workload, plan))
    return tuple(
        Binding(
            stage=stage.stage,
            resource=resource,
            text=text,
            device_gib=stage.device,
            capacity_gib=memory.capacity_gib,
            busy=share,
        )
        for stage, share in zip(memory.stages, busy, strict=True)
        for resource, text in [_bound(plan.estimate, stage, share, max(busy))]
    )


def _busy(workload: Workload, plan: RankedPlan) -> Iterator[float]:
    """Share of the step in which each rank runs micro-batches. [1]."""
    priced = price(workload, plan.layout)
    costs, vectors = priced.costs, stage_vectors(priced.costs, priced.counts)
    work = (vectors.forward + vectors.backward) * costs.passes
    for nanoseconds in by_rank(costs, work):
        yield float(nanoseconds) * costs.slowdown / 1e9 / priced.step_s


def _bound(
    estimate: Estimate, stage: StageMemory, busy: float, most: float
) -> tuple[str, str]:
    """The resource and a sentence."""
    capacity = estimate.memory.capacity_gib
    largest = max(PARTS, key=lambda name: getattr(stage, name))
    held = (
        f"{stage.device:.1f} of {capacity:.1f} GiB at {stage.moment}, most of it "
        f"{largest} ({getattr(stage, largest):.1f} GiB)"
    )
    works = f"works {busy:.1%} of the step"
    if stage.device >= FULL * capacity:
        return "memory", f"memory: {held}; {works}"
    if busy >= LEVEL * most:
        return "time", f"time, {_cause(estimate)}: {works}; {held}"
    return "waiting", f"waits for others: {works}; {held}"


def _cause(estimate: Estimate) -> str:
    """The longest part of the step, and its share."""
    times = estimate.causes_s
    longest = max(times, key=lambda cause: times[cause])
    return f"{CAUSE_WORDS[longest]} {times[longest] / estimate.step_time_s.value:.1%}"
