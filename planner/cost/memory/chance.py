"""A limit on the probability of running out of memory, as a limit on memory.

States are counted, parameters times bytes. What else a rank must hold is off by a
factor X, whose distribution is the band of the job. With M the predicted memory and K
the states::

    P(K + X (M - K) > room) <= risk   if and only if   K + z (M - K) <= room

where X exceeds z with the probability ``risk``. M is linear in the layers of a rank,
``f (S + R) / phi + F`` with S all that is static, and ``K = f k``. So the limit is one
on blocks again::

    S - (1 - 1/z) phi k + R <= (room / z - F) phi / f

The room is the capacity without what a plan has to leave free.
"""

from math import inf

from planner.cost.workload import Workload


def multiple(workload: Workload) -> float:
    """Multiple z of the uncertain memory that must fit.

    Returns:
        The multiple; 1 without a limit. [1]
    """
    if workload.risk is None:
        return 1.0
    return workload.uncertainty.exceeded(workload.risk)


def spared_share(workload: Workload) -> float:
    """Share of the counted states that a limit on the risk leaves out.

    Returns:
        ``(1 - 1/z) phi``; 0 without a limit, negative where z is below 1. [1]
    """
    return (1 - 1 / multiple(workload)) * workload.framework.profile.packing


def chance(workload: Workload, needed: float, known: float) -> float:
    """Probability that a rank needs more than its GPU has room for.

    Args:
        needed: Predicted memory, the allocator's caches given back. [B]
        known: Part of the memory that is counted. [B]
    """
    return workload.uncertainty.beyond(times(workload, needed, known))


def times(workload: Workload, needed: float, known: float) -> float:
    """Multiple of the uncertain memory of a rank that its GPU has room for.

    Args:
        needed: Predicted memory, the allocator's caches given back. [B]
        known: Part of the memory that is counted. [B]

    Returns:
        ``(room - K) / (M - K)``; 0 where what is counted is too much. [1]
    """
    room, rest = workload.room - known, needed - known
    if room <= 0:
        return 0.0
    return room / rest if rest > 0 else inf
