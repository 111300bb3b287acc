"""The part of a large space that is searched first, for a plan to measure it by."""

from collections.abc import Sequence
from dataclasses import replace

from planner.cost.workload import Workload
from planner.search.emptiness import thin

FROM_GPUS = 32
"""GPUs from which a full space is large enough for it to pay. [1]"""
MOST = 2
"""Variants whose default space is searched first; earlier ones offload less. [1]"""


def parts_of(workloads: Sequence[Workload]) -> tuple[Workload, ...]:
    """The first variants in the default space, where the full one is asked for.

    What is found there is a plan of the job, so its step is reachable: a candidate
    whose bound is above it needs no closer look. Which candidates are let go so
    depends on the job alone, and the best plan is never among them.

    Args:
        workloads: The variants of a job. [-]

    Returns:
        Variants with a smaller space; none where the job's space is small. [-]
    """
    full = [
        workload
        for workload in workloads
        if workload.search.space == "full"
        and workload.gpus >= FROM_GPUS
        and not workload.mixed
    ]
    return tuple(map(in_default_space, full[:MOST]))


def pilots_of(workloads: Sequence[Workload]) -> tuple[Workload, ...]:
    """The first variants with one value of each axis that decides nothing.

    A search of these takes moments, and its plans are plans of the job: they are there
    where a limit ends the search of the whole space before its first plan.

    Args:
        workloads: The variants of a job. [-]

    Returns:
        Variants with a thin space; none where the job's space is small. [-]
    """
    large = [
        workload
        for workload in workloads
        if workload.gpus >= FROM_GPUS and not workload.mixed
    ]
    return tuple(thin(in_default_space(workload)) for workload in large[:MOST])


def in_default_space(workload: Workload) -> Workload:
    """The same variant with the default space.

    Args:
        workload: A variant of the job. [-]

    Returns:
        The job, whose plans are plans of the given one too. [-]
    """
    search = workload.search.model_copy(update={"space": "default"})
    return replace(workload, search=search)
