"""Parts of a large space that are searched first, for an incumbent."""

from collections.abc import Sequence
from dataclasses import replace
from heapq import nsmallest

from planner.cost.pricing import Pricing
from planner.search.bounds.floor import step_floor
from planner.search.emptiness import thin

FROM_GPUS = 32
"""GPUs from which a space is large enough for a part to pay. [1]"""
AMPLE = 30.0
"""Time from which a search of a default space does without a pilot. [s]"""
UP_TO_GPUS = 32_768
"""GPUs up to which it does: their default space is priced within seconds. [1]"""
MOST = 2
"""Variants whose default space is searched first; earlier ones offload less. [1]"""


def parts_of(workloads: Sequence[Pricing]) -> tuple[Pricing, ...]:
    """The first variants in the default space, where the full space is asked for.

    On a mixed fleet, whatever the space, the arrangements that could be fastest: of
    several pools, which host as many stages as they hold. Where the user limits
    ``gpus``, of one pool, since several then have too many candidates.

    Plans found there are plans of the job, so their steps are reachable. A candidate
    whose bound is above such a step needs no closer look. The candidates dropped so
    depend on the job alone, and the best plan is never among them.
    """
    mixed = [workload for workload in workloads if workload.mixed]
    if mixed:
        few = [each for each in workloads if each.mixed == (each.search.gpus is None)]
        alike = (each for each in few if len(each.makers) == 1)
        return tuple(map(in_default_space, nsmallest(MOST, alike, key=step_floor)))
    full = [
        workload
        for workload in workloads
        if workload.search.space == "full" and workload.gpus >= FROM_GPUS
    ]
    return tuple(map(in_default_space, full[:MOST]))


def pilots_of(workloads: Sequence[Pricing], time_s: float = 0.0) -> tuple[Pricing, ...]:
    """The first variants with one value of each axis that decides no legality.

    A search of these takes moments and finds plans of the job. These plans remain
    where a limit ends the search of the whole space before its first plan.

    Args:
        workloads: The variants of a job. [-]
        time_s: Time that the search may take, if no work ends it. [s]

    Returns:
        Variants with a thin space; none where the job's space is small for the time.
        [-]
    """
    large = [
        workload
        for workload in workloads
        if workload.gpus >= FROM_GPUS
        and not workload.mixed
        and not (time_s >= AMPLE and _is_priced_soon(workload))
    ]
    return tuple(thin(in_default_space(workload)) for workload in large[:MOST])


def _is_priced_soon(pricing: Pricing) -> bool:
    """Tell if the whole space has its first plan about as soon as a pilot has.

    Any number of GPUs of one pool is many candidates, and of several pools more.
    """
    search = pricing.search
    waits = bool(pricing.pools) and search.gpus is not None
    return search.space == "default" and pricing.gpus <= UP_TO_GPUS and not waits


def in_default_space(pricing: Pricing) -> Pricing:
    """Variant with the default space in place of the declared space.

    Returns:
        The variant; all of its plans are plans of *workload*, too. [-]
    """
    search = pricing.search.model_copy(update={"space": "default"})
    return replace(pricing, search=search)
