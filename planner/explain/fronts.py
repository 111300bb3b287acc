"""Plans that none beats in both step and memory, or in both step and GPUs."""

from collections.abc import Sequence

from planner.explain.ask import least
from planner.explain.case import GIB, Case, Clock, with_capacity
from planner.explain.limits import widened
from planner.explain.relaxations import best_of
from planner.specs.explanation import FrontPoint
from planner.specs.result import RankedPlan

POINTS = 5
"""Amounts of memory that are searched, between the best plan's and the least. [1]"""
SIZES = ((1, 2), (1, 4), (1, 8), (2, 1))
"""Nodes of the points of the other front, over the job's own: (times, by). [1]"""


def memory_front(
    case: Case, plans: Sequence[RankedPlan], clock: Clock
) -> tuple[FrontPoint, ...]:
    """The fastest plan under each of some amounts of memory.

    The amounts lie evenly between what the best plan holds and what the most frugal
    layout known does. Each is a search of the whole space with no more memory, so no
    plan within it is faster, where that search came to its end; the fastest plan in
    hand that holds no more is where it starts.

    Args:
        case: The job. [-]
        plans: The best plans of its search. [-]
        clock: Time for it. [s]

    Returns:
        Points that none beats in both, the fastest first.
    """
    capacity = plans[0].estimate.memory.capacity_gib
    found = [_point(plan, capacity) for plan in plans]
    most = min(found, key=lambda point: point.step_time_s).device_gib
    frugal = least(case)
    few = most if frugal is None else frugal.memory.peak_device_gib.value
    for left in range(POINTS, 0, -1):
        amount = few + (most - few) * (left - 1) / POINTS
        if clock.left <= 0 or few >= most:
            break
        smaller = case.edited(with_capacity(amount * GIB))
        result = best_of(smaller, clock.share(left), known_s=_known(found, amount))
        if result is not None and result.plans:
            found.append(_point(result.plans[0], capacity))
    return _front(found, "device_gib")


def _known(found: Sequence[FrontPoint], amount: float) -> float:
    """Step of the fastest plan in hand that holds no more than an amount. [s]."""
    steps = (point.step_time_s for point in found if point.device_gib <= amount)
    return min(steps, default=float("inf"))


def gpu_front(case: Case, best: RankedPlan, clock: Clock) -> tuple[FrontPoint, ...]:
    """The fastest plan on twice the nodes, half, a quarter and an eighth.

    Args:
        case: The job. [-]
        best: Its best plan. [-]
        clock: Time for it. [s]

    Returns:
        Points that none beats in both, the fewest GPUs last.
    """
    nodes = case.workloads[0].topology.cluster.spec.nodes
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
