"""Plans that none beats in both step and memory, or in both step and GPUs."""

from planner.cost.workload import Workload
from planner.explain.case import GIB, Case, Clock, with_capacity
from planner.explain.limits import widened
from planner.explain.relaxations import best_of
from planner.specs.explanation import FrontPoint
from planner.specs.result import RankedPlan

SHARES = (0.9, 0.8, 0.7, 0.6, 0.5)
"""Of the memory that a point of the front may use. [1]"""
SIZES = ((1, 2), (1, 4), (2, 1))
"""Nodes of the points of the other front, over the job's own: (times, by). [1]"""


def memory_front(case: Case, best: RankedPlan, clock: Clock) -> tuple[FrontPoint, ...]:
    """The fastest plan under each of some shares of the memory.

    Each point is a search of the whole space with less memory, so no plan within its
    memory is faster, where that search came to its end; shares below that of a point
    that holds less anyway are not asked.

    Args:
        case: The job. [-]
        best: Its best plan. [-]
        clock: Time for it. [s]

    Returns:
        Points that none beats in both, the fastest first.
    """
    capacity = best.estimate.memory.capacity_gib
    found = [_point(best, capacity)]
    for left, share in zip(range(len(SHARES), 0, -1), SHARES, strict=True):
        if found[-1].device_gib <= share * capacity:
            continue
        if clock.left <= 0:
            break
        smaller = case.edited(with_capacity(share * capacity * GIB))
        result = best_of(smaller, clock.share(left))
        if result is None or not result.plans:
            break
        found.append(_point(result.plans[0], capacity))
    return _front(found, "device_gib")


def gpu_front(
    case: Case, workload: Workload, best: RankedPlan, clock: Clock
) -> tuple[FrontPoint, ...]:
    """The fastest plan on half, a quarter and twice the nodes.

    Args:
        case: The job. [-]
        workload: The job that the best plan is for. [-]
        best: Its best plan. [-]
        clock: Time for it. [s]

    Returns:
        Points that none beats in both, the fewest GPUs last.
    """
    nodes = workload.topology.cluster.spec.nodes
    found = [_point(best, best.estimate.memory.capacity_gib)]
    for left, (times, by) in zip(range(len(SIZES), 0, -1), SIZES, strict=True):
        if nodes * times % by or clock.left <= 0:
            continue
        there = widened(case, (f"cluster.nodes={nodes * times // by}",))
        result = None if there is None else best_of(there, clock.share(left))
        if result is not None and result.plans:
            plan = result.plans[0]
            found.append(_point(plan, plan.estimate.memory.capacity_gib))
    return _front(found, "gpus")


def _point(plan: RankedPlan, capacity: float) -> FrontPoint:
    device = plan.estimate.memory.peak_device_gib.value
    return FrontPoint(
        step_time_s=plan.estimate.step_time_s.value,
        device_gib=device,
        headroom_gib=capacity - device,
        gpus=plan.layout.gpus,
        layout=plan.layout,
    )


def _front(points: list[FrontPoint], measure: str) -> tuple[FrontPoint, ...]:
    """Points that no other beats in both, the fastest first."""
    found: list[FrontPoint] = []
    for point in sorted(points, key=lambda p: (p.step_time_s, getattr(p, measure))):
        if not found or getattr(point, measure) < getattr(found[-1], measure):
            found.append(point)
    return tuple(found)
