"""Price of memory: the fastest plans that leave more of every GPU free."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.cost.estimate.estimate import estimate, oom_probability
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.job.variants import variants
from planner.planning.layouts import found_layout
from planner.planning.ties import Contender
from planner.search.best_first import search_all
from planner.search.bounds.known_bounds import KnownBounds
from planner.search.outcome import Enough
from planner.search.stop import Stop
from planner.specs.answer.result import GivenBack

AMOUNTS = (5.0, 10.0, 20.0)
"""Memory that is taken from the limit. [GiB]"""
MOST_SLOWER = 0.25
"""Share above the fastest step, up to which plans are sought. [1]"""
WORK = 4.0
"""Most work of a search here, over that of the search of the job. [1]"""
PART = 0.5
"""Share of the time left that these searches may take. [1]"""
GIB = 2**30


@dataclass(frozen=True)
class _Known:
    """Bounds and plans of the job, under the limit that it has."""

    best: Contender
    work: float
    """Work at which a search here ends. [visit]"""
    stop: Stop
    bounds: KnownBounds


def given_back(
    workloads: Sequence[Workload],
    contenders: Sequence[Contender],
    work: float,
    stop: Stop,
    bounds: KnownBounds,
) -> tuple[GivenBack, ...]:
    """The fastest plan with 5, 10 and 20 GiB less of every GPU.

    A plan with more free is a plan with less free. So the step of one amount bounds
    that of the next from below, and where a plan in hand meets the bound no search is
    needed.

    Args:
        workloads: The job under each framework that may run it.
        contenders: Plans under the limit, the fastest first. [-]
        work: Work of the search of the job. [visit]
        stop: Ends the searches.
        bounds: Bounds of the search of the job.

    Returns:
        An answer for each amount that the GPUs have; none on mixed fleets, where no
        search knows the bounds of another. [-]
    """
    if any(each.pools for each in workloads):
        return ()
    room = workloads[0].room / GIB
    known = _Known(contenders[0], WORK * work, stop.within(PART * stop.left), bounds)
    plans, floors = list(contenders), [contenders[0].step_s]
    amounts = [each for each in AMOUNTS if each < room]
    for gib in amounts:
        one, floor_s = _fastest(workloads, plans, gib, floors[-1], known)
        plans += [] if one is None else [one]
        floors.append(floor_s)
    return tuple(
        _told(_best_with(plans, gib), gib, floor_s, known.best)
        for gib, floor_s in zip(amounts, floors[1:], strict=True)
    )


def _best_with(plans: Sequence[Contender], gib: float) -> Contender | None:
    """The fastest of some plans that leaves so much free."""
    held = (one for one in plans if _leaves(one, gib))
    return min(held, key=lambda one: one.step_s, default=None)


def _fastest(
    workloads: Sequence[Workload],
    plans: Sequence[Contender],
    gib: float,
    floor_s: float,
    known: _Known,
) -> tuple[Contender | None, float]:
    """A fast plan with so much free, and a bound on the step of any. [s]."""
    best = _best_with(plans, gib)
    most = known.best.step_s * (1 + MOST_SLOWER)
    most = min(most, best.step_s) if best is not None else most
    if known.stop.reached or most <= floor_s:
        return best, floor_s
    found, bound_s = _searched(workloads, gib, most, known)
    slower = found is not None and best is not None and found.step_s >= best.step_s
    return best if found is None or slower else found, max(bound_s, floor_s)


def _searched(
    workloads: Sequence[Workload], gib: float, most_s: float, known: _Known
) -> tuple[Contender | None, float]:
    """The fastest plan of a step up to *most_s* with so much free, and its bound."""
    less = [replace(each, spare=each.spare + gib * GIB) for each in workloads]
    outcomes = search_all(
        variants(less),
        top=1,
        known_s=most_s,
        enough=Enough(known.work),
        stop=known.stop,
        known=known.bounds,
    )
    bound_s = min(outcome.bound_s for outcome in outcomes)
    for plan in sorted(plan for outcome in outcomes for plan in outcome.ranked)[:1]:
        outcome = outcomes[plan.variant]
        layout = found_layout(outcome, plan)
        its = replace(outcome.pricing, spare=workloads[0].spare)
        return Contender(its, layout, estimate(its, layout)), bound_s
    return None, bound_s


def _leaves(one: Contender, gib: float) -> bool:
    """Tell if a plan is within the limit on the risk with so much less memory."""
    less = replace(one.pricing, spare=one.pricing.spare + gib * GIB)
    its = Pricing.of(less, one.layout)
    chance = oom_probability(its, one.estimate.memory.stages)
    return less.risk is not None and chance <= less.risk


def _told(
    one: Contender | None, gib: float, bound_s: float, best: Contender
) -> GivenBack:
    if one is None:
        proven = bound_s >= best.step_s * (1 + MOST_SLOWER)
        return GivenBack(
            gib=gib,
            status="optimal" if proven else "unknown",
            slower=None,
            most_slower=MOST_SLOWER,
        )
    memory = one.estimate.memory
    return GivenBack(
        gib=gib,
        status="optimal" if bound_s >= one.step_s else "feasible",
        slower=one.step_s / best.step_s - 1,
        most_slower=MOST_SLOWER,
        step_time_s=one.step_s,
        layout=one.layout,
        settings=one.pricing.chosen,
        framework=one.pricing.framework.name,
        peak_device_gib=memory.peak_device_gib.value,
        oom_probability=memory.oom_probability,
    )
