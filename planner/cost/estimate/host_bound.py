"""Most that the host of a node holds, for every candidate of a space at once."""

import numpy as np
import numpy.typing as npt

from planner.cost.estimate.host_memory import at_home
from planner.cost.memory.activations import kept_bytes
from planner.cost.meshes import PP_INSIDE, Floats, Ints, Meshes
from planner.cost.parameters.rank_parameters import (
    Owned,
    embedding_owned,
    head_owned,
    layer_owned,
)
from planner.cost.parameters.states import state_bytes
from planner.cost.pricing import Pricing
from planner.cost.time.columns import Context
from planner.cost.time.ends import embedding_end, head_end
from planner.cost.time.gradients import layer_pending_bytes
from planner.hardware.reading.quantities import Bytes, Column
from planner.specs.layouts.layout import Offload
from planner.specs.table import BLOCK

Bools = npt.NDArray[np.bool_]


def leaves_the_gpus(pricing: Pricing) -> bool:
    """Tell if anything of a job lies in its hosts' memory."""
    offload = pricing.offload
    return pricing.training.paged or (offload.device == "cpu" and offload != Offload())


def host_bound(
    pricing: Pricing,
    meshes: Meshes,
    *,
    vpp: Ints,
    layers: Ints,
    recompute: tuple[str, ...],
    at_once: Bools,
    folded: Bools | None = None,
    copies: Ints | None = None,
    split: Bools | None = None,
) -> Column[Bytes]:
    """Most that a node holds for its GPUs, whatever the split of the layers.

    A node has G ranks, at most i of them on one stage. With n layers on a rank and x
    the offloaded bytes of a unit, the states take at most::

        min(G (n max x_l + x_e + x_h), i (sum x_l + x_e + x_h))

    A rank of a pipeline has one of the ends unless its chunks lie in a V. The second
    term counts once for every copy of the model. The activations take at most
    ``G (chunks n / v  max a_l + a_e + a_h)``; where the backward is split, each ``a``
    has the gradients that wait for W. Without a pipeline the bound is exact.

    Args:
        vpp: Virtual chunks per pipeline rank. [1], shape (candidates,)
        layers: Most layers of one virtual stage. [1], shape (candidates,)
        folded: The first rank has both ends of the model; none: nowhere. [bool]
        copies: Copies of the model on the ranks; none: one copy. [1]
        split: The backward is two operations; none: nowhere. [bool]

    Returns:
        Memory. [B], shape (candidates,)

    References:
        Ren et al. 2021, arXiv 2101.06840, section 4.
    """
    node = np.minimum(pricing.topology.cluster.node.gpus_per_node, meshes.gpus)
    both = np.zeros(len(meshes), dtype=bool) if folded is None else folded
    times = np.ones(len(meshes), dtype=np.int64) if copies is None else copies
    needed = _states(pricing, meshes, vpp * layers, node, both, times)
    if pricing.offload.activations:
        flying = _in_flight(meshes, vpp, at_once, both)
        waits = np.zeros(len(meshes), dtype=bool) if split is None else split
        kept = _activations(pricing, meshes, flying, layers, recompute, waits)
        needed = needed + node * kept
    return needed


def _states(
    pricing: Pricing,
    meshes: Meshes,
    most: Ints,
    node: Ints,
    folded: Bools,
    copies: Ints,
) -> Column[Bytes]:
    """Offloaded states on the fullest node, at most. [B]."""
    kinds = [
        _away(pricing, layer_owned(pricing, kind, meshes), meshes)
        for kind in pricing.kinds
    ]
    first = _away(pricing, embedding_owned(pricing, meshes), meshes)
    last = _away(pricing, head_owned(pricing, meshes), meshes)
    total = sum(count * kinds[kind] for kind, count in pricing.runs) + first + last
    one_end = (meshes.pp > 1) & ~folded
    edges = np.where(one_end, np.maximum(first, last), first + last)
    layers = np.minimum(most, copies * pricing.model.layers)
    of_rank = layers * np.max(kinds, axis=0) + edges
    of_stage = _on_one_stage(meshes, node) * copies * total
    return np.asarray(np.minimum(node * of_rank, of_stage))


def _on_one_stage(meshes: Meshes, node: Ints) -> Ints:
    """Ranks of one pipeline stage on a node, at most. [1].

    Stages take turns of i ranks, so a window of G ranks has whole rounds and a rest.
    """
    inside = np.where(meshes.order == PP_INSIDE, 1, meshes.dp)
    turn = meshes.tp * meshes.cp * inside
    rounds, rest = np.divmod(node, turn * meshes.pp)
    return np.asarray(rounds * turn + np.minimum(rest, turn))


def _away(pricing: Pricing, owned: Owned, meshes: Meshes) -> Column[Bytes]:
    """States of a unit that its rank keeps in host memory. [B]."""
    home = state_bytes(at_home(pricing), owned, meshes)
    here = state_bytes(pricing, owned, meshes)
    return home.total - here.total


def _in_flight(
    meshes: Meshes, vpp: Ints, at_once: Bools, folded: Bools
) -> tuple[Ints, Ints]:
    """Chunks and micro-batches that the fullest rank holds, at most. [1]."""
    batches, pp = meshes.micro_batches, meshes.pp
    depth = np.where(at_once, batches, np.minimum(batches, pp * (1 + folded)))
    return np.where(vpp > 1, np.minimum(batches * vpp, pp * (vpp + 1)), depth), depth


def _activations(
    pricing: Pricing,
    meshes: Meshes,
    flying: tuple[Ints, Ints],
    layers: Ints,
    recompute: tuple[str, ...],
    waits: Bools,
) -> Column[Bytes]:
    """Offloaded activations of the fullest rank, at most. [B]."""
    context, recipe = Context.of(pricing, meshes), pricing.framework.recipe
    kept = [
        _blocks(kept_bytes(pricing, kind, recipe.kind(name), meshes))
        + waits * _blocks(layer_pending_bytes(context, kind))
        for kind in pricing.kinds
        for name in recompute
    ]
    ends = (embedding_end(context), head_end(context))
    edges = sum(_blocks(end.saved) + waits * _blocks(end.pending) for end in ends)
    chunks, depth = flying
    kept_layers = np.minimum(layers, pricing.model.layers) * np.max(kept, axis=0)
    return np.asarray(
        pricing.offload.activations * (chunks * kept_layers + depth * edges)
    )


def _blocks(size: Floats) -> Column[Bytes]:
    """Sizes rounded up to blocks, as by the allocator and the table. [B]."""
    return np.asarray(np.ceil(size / BLOCK) * BLOCK)
