"""Test for an empty space, without listing the whole space."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from planner.cost.pricing import Pricing
from planner.search.space.space import Enumerator
from planner.specs.layouts.offload import CATEGORIES

AT_A_TIME = 64
"""Meshes that are looked at together at first; twice as many every time. [1]"""


def is_empty(pricing: Pricing) -> bool:
    """Tell if the declared space of a job has no candidate.

    Returns:
        True without candidates; the listing stops at the first candidate.
    """
    enumerator = Enumerator(thin(pricing), priced=False)
    rows, size = enumerator.rows(), AT_A_TIME
    while part := list(islice(rows, size)):
        if len(enumerator.space(part)):
            return False
        size *= 2
    return True


def has_legal(variants: Sequence[Pricing]) -> bool:
    """Tell if any variant has a legal layout, whatever memory the layout needs.

    Returns:
        True where some variant's space has a candidate.
    """
    # The first, on one pool and with least offload, is legal for most jobs.
    if variants and not is_empty(variants[0]):
        return True
    return any(not is_empty(variant) for variant in easiest(variants))


def easiest(variants: Sequence[Pricing]) -> tuple[Pricing, ...]:
    """Variants without those that only add rules to another variant.

    Offload only adds rules. So the variants that offload least stay, for equal
    framework, training block, wire formats, place and switches.

    Returns:
        Variants, of which some has a legal layout if any of ``variants`` has.
    """
    kept: dict[tuple[object, ...], list[Pricing]] = {}
    for variant in sorted(variants, key=_parts):
        alike = kept.setdefault(tuple(map(_key, _place(variant))), [])
        if not any(_within(other, variant) for other in alike):
            alike.append(variant)
    return tuple(variant for alike in kept.values() for variant in alike)


def _place(variant: Pricing) -> tuple[object, ...]:
    off = None if variant.without is None else sorted(variant.without)
    its = (variant.framework.name, variant.training, variant.comm_dtype)
    return (*its, variant.stage_pools, off)


def _key(part: object) -> str:
    return repr(part)


def _parts(variant: Pricing) -> float:
    return float(sum(getattr(variant.offload, name) for name in CATEGORIES))


def _within(less: Pricing, more: Pricing) -> bool:
    """Tell if a variant offloads no more of any category than another variant."""
    pairs = ((getattr(v.offload, n) for n in CATEGORIES) for v in (less, more))
    return all(own <= other for own, other in zip(*pairs, strict=True))


def thin(pricing: Pricing, free: str = "") -> Pricing:
    """Job with a single value of each axis that decides nothing about legality.

    An axis that the user leaves open is fixed at a value that is legal where any
    value is. A micro-batch has one sequence, or pair: whole groups of micro-batches
    stay whole with more of them. The rank order is the first, which asks nothing of
    the experts. Weights have no second copy.
    Shard groups span all replicas: every framework with sharding has them, and hosts
    hold least. So a space is empty where the thin space is empty. The degrees of the
    other axes do not change.
    """
    search, limits = pricing.search, pricing.framework.limits
    fixed: dict[str, object] = {
        "micro_batch": pricing.training.together,
        "order": limits.orders[0],
        "hpz": 1,
    }
    open_ones = {
        axis: value
        for axis, value in fixed.items()
        if axis != free and getattr(search, axis) is None
    }
    if free != "dp_shard" and search.dp_shard is None:
        limits = replace(limits, hybrid_sharding=False)
    return replace(
        pricing,
        search=search.model_copy(update=open_ones),
        framework=replace(pricing.framework, limits=limits),
    )
