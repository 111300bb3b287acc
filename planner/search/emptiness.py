"""Whether a space has any candidate, without listing it."""

from dataclasses import replace
from itertools import islice

from planner.cost.workload import Workload
from planner.search.space import Enumerator

AT_A_TIME = 64
"""Meshes that are looked at together at first; twice as many every time. [1]"""


def is_empty(workload: Workload) -> bool:
    """Whether the declared space of a job has no candidate.

    Args:
        workload: The job. [-]

    Returns:
        True without one; the space is listed no further than to the first.
    """
    enumerator = Enumerator(thin(workload))
    rows, size = enumerator.rows(), AT_A_TIME
    while part := list(islice(rows, size)):
        if len(enumerator.space(part)):
            return False
        size *= 2
    return True


def thin(workload: Workload, free: str = "") -> Workload:
    """The job with one value of each axis that decides nothing about legality.

    What the user leaves open is fixed at the value that every rule allows where it
    allows another: one sequence a micro-batch, since micro-batches that come in whole
    groups still do when there are more of them; the first rank order, which asks
    nothing of the experts; shard groups of all replicas, the only ones that every
    framework with sharding has, and the least that a host holds. So a space is empty
    where the thin one is, and the degrees of the other axes are the same.

    Args:
        workload: The job. [-]
        free: An axis to leave as it is. [text]

    Returns:
        The job with a smaller space. [-]
    """
    search, limits = workload.search, workload.framework.limits
    fixed: dict[str, object] = {"micro_batch": 1, "order": limits.orders[0]}
    open_ones = {
        axis: value
        for axis, value in fixed.items()
        if axis != free and getattr(search, axis) is None
    }
    if free != "dp_shard" and search.dp_shard is None:
        limits = replace(limits, hybrid_sharding=False)
    return replace(
        workload,
        search=search.model_copy(update=open_ones),
        framework=replace(workload.framework, limits=limits),
    )
