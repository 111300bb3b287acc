"""Whether a space has any candidate, without listing it."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from planner.cost.workload import Workload
from planner.search.space import Enumerator
from planner.specs.offload import CATEGORIES

AT_A_TIME = 64
"""Meshes that are looked at together at first; twice as many every time. [1]"""


def is_empty(workload: Workload) -> bool:
    """Whether the declared space of a job has no candidate.

    Args:
        workload: The job. [-]

    Returns:
        True without one; the space is listed no further than to the first.
    """
    enumerator = Enumerator(thin(workload), priced=False)
    rows, size = enumerator.rows(), AT_A_TIME
    while part := list(islice(rows, size)):
        if len(enumerator.space(part)):
            return False
        size *= 2
    return True


def easiest(variants: Sequence[Workload]) -> tuple[Workload, ...]:
    """Variants without those that only add rules to another.

    What lies in host memory adds rules, of a step's formats on the wire the
    framework's own have none, and the training block keeps the rest: so of one
    framework, precision, place and set of pools those that offload least stay.

    Args:
        variants: Of a job. [-]

    Returns:
        All of them have a legal layout, or none has, where the variants do.
    """
    kept: dict[tuple[object, ...], list[Workload]] = {}
    for variant in sorted(variants, key=_parts):
        alike = kept.setdefault(tuple(map(_key, _place(variant))), [])
        if not any(_within(other, variant) for other in alike):
            alike.append(variant)
    return tuple(variant for alike in kept.values() for variant in alike)


def _place(variant: Workload) -> tuple[object, ...]:
    off = None if variant.without is None else sorted(variant.without)
    its = (variant.framework.name, variant.training, variant.comm_dtype)
    return (*its, variant.hosts, off)


def _key(part: object) -> str:
    return repr(part)


def _parts(variant: Workload) -> float:
    return float(sum(getattr(variant.offload, name) for name in CATEGORIES))


def _within(less: Workload, more: Workload) -> bool:
    """Whether one variant offloads no more of anything than another."""
    pairs = ((getattr(v.offload, n) for n in CATEGORIES) for v in (less, more))
    return all(own <= other for own, other in zip(*pairs, strict=True))


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
