"""Candidates of a space whose host memory holds what leaves the GPUs."""

from collections import Counter

import numpy as np

from planner.cost.estimate.host_bound import host_bound
from planner.cost.meshes import Floats, Ints
from planner.cost.pricing import Pricing
from planner.search.space.declared import Space
from planner.search.space.schedules import AT_ONCE, COPIES, FOLDS, SPLITS


def within_host_memory(pricing: Pricing, space: Space, removed: Counter[str]) -> Ints:
    """Candidates whose host memory holds what leaves the GPUs, under every split.

    The declared space leaves out a candidate if any split does not fit, even where
    other splits would.
    """
    room = pricing.topology.cluster.node.host_memory
    if room is None:
        return np.arange(len(space))
    needed = np.zeros(len(space))
    for entry in np.unique(space.menu).tolist():
        at = np.flatnonzero(space.menu == entry)
        needed[at] = _on_host(pricing, space.take(at))
    kept = np.flatnonzero(needed <= room)
    rule = f"host memory: {room / 1e9:,.0f} GB a node, less than is offloaded"
    removed[rule] += len(needed) - len(kept)
    return kept


def _on_host(pricing: Pricing, space: Space) -> Floats:
    """Most host memory of a node, for candidates of one menu entry. [B]."""
    meshes = space.meshes.take(space.mesh)
    copies = COPIES[space.schedules]
    stages = meshes.pp * space.vpp // copies
    largest = -(-pricing.model.layers // stages)
    return host_bound(
        pricing,
        meshes,
        vpp=space.vpp,
        layers=largest + int(pricing.search.space == "full"),
        recompute=tuple(space.recompute[entry] for entry in space.choices(0)),
        at_once=space.schedules == AT_ONCE,
        folded=FOLDS[space.schedules],
        copies=copies,
        split=SPLITS[space.schedules],
    )
