"""Whether a space has any candidate, without listing it."""

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
    enumerator = Enumerator(workload)
    rows, size = enumerator.rows(), AT_A_TIME
    while part := list(islice(rows, size)):
        if len(enumerator.space(part)):
            return False
        size *= 2
    return True
