"""Plans that none beats in both step and memory, or in both step and GPUs."""

from collections.abc import Sequence

from planner.cost.estimate.estimate import estimate
from planner.job.case import Case
from planner.planning.capacity.leanest import leanest
from planner.planning.explanation.ask import variants_of
from planner.planning.explanation.changes import GIB, Clock, with_capacity
from planner.planning.explanation.limits import widened
from planner.planning.explanation.relaxations import best_of
from planner.specs.answer.estimate import Estimate
from planner.specs.answer.explanation import FrontPoint
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.layout import Layout

AMOUNTS = (0.85, 0.65, 0.4, 0.2)
"""Memory that is searched, of the way from the most frugal to the best plan. [1]"""
SIZES = ((1, 2), (1, 4), (1, 8), (2, 1))
"""Nodes of the GPU front, over the job's nodes: (times, by). [1]"""


def fronts(
    case: Case, plans: Sequence[RankedPlan], seconds: float
) -> tuple[tuple[FrontPoint, ...], tuple[FrontPoint, ...], tuple[str, ...]]:
    """Memory front and GPU front in a given time, and a note where time ended.

    Args:
        case: The job. [-]
        plans: Best plans of the job's search. [-]
        seconds: Time for all searches. [s]

    Returns:
        Step against memory, step against GPUs, sentences. [-]
    """
    clock = Clock(seconds)
    memory = memory_front(case, plans, Clock(seconds / 2))
    gpus = gpu_front(case, plans[0], clock)
    said = f"The fronts had {seconds:g} s of search; `planner explain` gives them more."
    return memory, gpus, () if clock.left > 0 else (said,)


def memory_front(
    case: Case, plans: Sequence[RankedPlan], clock: Clock
) -> tuple[FrontPoint, ...]:
    """The fastest plan under each of some amounts of memory.

    The amounts lie between the peak memory of the fastest plan and the least peak
    memory known. Each amount is a search of the whole space. Where the search came to
    an end, no plan within the amount is faster. The search starts from the fastest
    known plan within the amount. The most frugal layout ends the front, although it
    was not sought for speed.

    Args:
        case: The job. [-]
        plans: Best plans of the job's search. [-]
        clock: Time for all searches. [s]

    Returns:
        Points that no other beats in step time and memory, the fastest first.
    """
    capacity = plans[0].estimate.memory.capacity_gib
    found = [_point(plan, capacity) for plan in plans]
    most = min(found, key=lambda point: point.step_time_s).device_gib
    found += _most_frugal(case, capacity)
    few = min(point.device_gib for point in found)
    for left, part in zip(range(len(AMOUNTS), 0, -1), AMOUNTS, strict=True):
        amount = few + (most - few) * part
        if clock.left <= 0 or few >= most:
            break
        smaller = case.edited(with_capacity(amount * GIB))
        result = best_of(smaller, clock.share(left), known_s=_known(found, amount))
        if result is not None and result.plans:
            found.append(_point(result.plans[0], capacity))
    return _front(found, "device_gib")


def _most_frugal(case: Case, capacity: float) -> list[FrontPoint]:
    """The layout of least peak memory, priced."""
    frugal = [
        (held, variant) for variant in variants_of(case) if (held := leanest(variant))
    ]
    if not frugal:
        return []
    held, variant = min(frugal, key=lambda pair: pair[0].memory.peak_device_gib.value)
    predicted = estimate(variant, held.layout)
    return [_measured(predicted, held.layout, capacity)]


def _known(found: Sequence[FrontPoint], amount: float) -> float:
    """Step of the fastest plan in hand that holds no more than an amount. [s]."""
    steps = (point.step_time_s for point in found if point.device_gib <= amount)
    return min(steps, default=float("inf"))


def gpu_front(case: Case, best: RankedPlan, clock: Clock) -> tuple[FrontPoint, ...]:
    """The fastest plan on twice the nodes, half, a quarter and an eighth.

    Args:
        case: The job. [-]
        best: Best plan of the job. [-]
        clock: Time for all searches. [s]

    Returns:
        Points that no other beats in step time and GPUs, the fewest GPUs last.
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
    return _measured(plan.estimate, plan.layout, capacity)


def _measured(predicted: Estimate, layout: Layout, capacity: float) -> FrontPoint:
    device = predicted.memory.peak_device_gib.value
    return FrontPoint(
        step_time_s=predicted.step_time_s.value,
        device_gib=device,
        headroom_gib=capacity - device,
        gpus=layout.gpus,
        layout=layout,
    )


def _front(points: list[FrontPoint], measure: str) -> tuple[FrontPoint, ...]:
    """Points that no other beats in both, the fastest first."""
    found: list[FrontPoint] = []
    for point in sorted(points, key=lambda p: (p.step_time_s, getattr(p, measure))):
        if not found or getattr(point, measure) < getattr(found[-1], measure):
            found.append(point)
    return tuple(found)
