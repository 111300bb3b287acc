"""Switches that degrees alone do not decide: variants with and without each switch."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from planner.cost.pricing import Pricing
from planner.cost.reach import Mask
from planner.cost.workload import Workload
from planner.search.space.declared import Space
from planner.search.space.schedules import SEARCHED
from planner.specs.frameworks.switches import FULL, Layouts
from planner.specs.layouts.recompute import BLOCK_KINDS


def with_and_without(pricing: Pricing) -> Iterator[Pricing]:
    """A variant for each setting of the switches that a plan decides.

    A plan is in the variant of the switches that the framework takes with the plan. So
    the variants share no plan and leave no plan out.
    """
    names = pricing.framework.by_plan
    routed = pricing.model.expert_parameters > 0
    needs = pricing.framework.switches
    states = [
        (True, False) if routed or not needs[name].experts_spread else (False,)
        for name in names
    ]
    for on in product(*states):
        off = (name for name, its in zip(names, on, strict=True) if not its)
        yield replace(pricing, without=frozenset(off))


def keeps_full(pricing: Pricing) -> bool:
    """Tell if a variant may recompute whole layers with the switches that are on.

    Returns:
        False where a switch that is on forbids it.
    """
    needs, off = pricing.framework.switches, pricing.without
    if off is None:
        return True
    on = set(pricing.framework.by_plan) - off
    return all(needs[name].full_recompute for name in on)


def of_the_variant(pricing: Pricing, space: Space) -> Mask:
    """Candidates whose plans the framework takes with just the variant's switches.

    Returns:
        True for each such candidate. shape (candidates,)
    """
    kept = np.ones(len(space), dtype=bool)
    if pricing.without is None or not len(space):
        return kept
    where = where_of(pricing, space)
    for name in pricing.framework.by_plan:
        on = name not in pricing.without
        kept &= pricing.framework.takes(name, where) == on
    return kept


def where_of(workload: Workload, space: Space) -> Layouts:
    """Candidates in the words of a framework's switches.

    Returns:
        Columns; a candidate whose layers may choose full recompute counts as such.
        shape (candidates,)
    """
    entries, of_each = np.unique(space.menu, return_inverse=True)
    first = [int(np.flatnonzero(space.menu == entry)[0]) for entry in entries]
    full = [
        any(space.recompute[at] == FULL for at in space.choices(candidate))
        for candidate in first
    ]
    return replace(
        workload.where(space.meshes.take(space.mesh)),
        chunks=space.vpp,
        schedule=np.array(SEARCHED)[space.schedules],
        full=np.array(full)[of_each],
    )


def chosen_together(
    workload: Workload, menu: tuple[str, ...], *, tied: bool
) -> list[tuple[str, ...]]:
    """Kinds of recompute that the layers of a plan choose from.

    Where a switch of the stack forbids whole layers, there are two menus. The first
    has all kinds, whole layers first; the second has no whole layers. A block has whole
    layers in any case.
    """
    if tied:
        return [(kind,) for kind in menu]
    partial = tuple(kind for kind in menu if kind != FULL)
    one = not workload.framework.by_plan or partial in ((), menu)
    if one or menu == BLOCK_KINDS:
        return [menu]
    return [tuple(sorted(menu, key=lambda kind: kind != FULL)), partial]
