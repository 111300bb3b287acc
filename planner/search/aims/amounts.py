"""The first tier of a search that makes another amount least than the step."""

from dataclasses import replace

import numpy as np

from planner.cost.meshes import Floats, Ints
from planner.cost.pricing import Pricing
from planner.cost.table.kernel_time import KernelTime
from planner.errors import BadInputError
from planner.search.first_tier import FirstTier
from planner.search.space.blocks import CHOSEN, block_entries, layers_in_blocks
from planner.search.space.declared import Space

__all__ = ["aimed", "kernel_seconds"]


def aimed(pricing: Pricing, tier: FirstTier) -> FirstTier:
    """Turn bounds on the step into bounds on the amount that is sought.

    The key of a plan is ``factor T + offset``, both fixed by its candidate: by the
    nodes that it uses, and by the time of its kernels, which no split changes.

    Args:
        pricing: A variant of the job, with its aim.
        tier: Candidates with bounds on the step. [s]

    Returns:
        Candidates with bounds on the key, in the order of these. [s]
    """
    aim, space = pricing.aim, tier.space
    if aim.is_step:
        return tier
    factor = aim.factor(space.meshes.gpus[space.mesh])
    offset = np.zeros(len(space))
    if aim.kernel:
        offset = aim.kernel / aim.whole * kernel_seconds(pricing, space)
    bounds = tier.bounds * factor + offset
    return replace(
        tier,
        bounds=bounds,
        slowdown=tier.slowdown * factor,
        offset=offset,
        order=np.argsort(bounds, kind="stable"),
        unseen_s=aim.floor(tier.unseen_s, pricing.gpus),
    )


def kernel_seconds(pricing: Pricing, space: Space) -> Floats:
    """Seconds of all GPUs in kernels for one step of every candidate.

    Returns:
        GPU-seconds. [s], shape (candidates,)

    Raises:
        BadInputError: Layers choose among several kinds, so that splits differ.
    """
    if not len(space):
        return np.zeros(0)
    choosing = (space.menu < 0) & (space.menu >= CHOSEN) & (len(space.recompute) > 1)
    if choosing.any():
        raise BadInputError(
            "energy is not proven where layers choose their own recompute: give "
            "search.recompute one kind, or economics.power one power for all phases",
            field="objective",
            value=pricing.aim.name,
        )
    times = KernelTime.of(pricing, space.meshes, space.recompute)
    counts = _layers_of(pricing)
    by_entry = np.tensordot(counts, times.layers, axes=1)
    layers = by_entry[np.maximum(space.menu, 0), space.mesh]
    blocks = np.flatnonzero(space.menu < CHOSEN)
    if len(blocks):
        layers[blocks] = _in_blocks(pricing, space, times, blocks)
    rows = space.meshes.take(space.mesh)
    passes = rows.micro_batches * rows.block
    return (layers + times.ends[space.mesh]) * passes


def _layers_of(pricing: Pricing) -> Ints:
    """Layers of every kind. [1], shape (kinds,)."""
    counts = np.zeros(len(pricing.kinds), dtype=np.int64)
    for kind, count in pricing.runs:
        counts[kind] += count
    return counts


def _in_blocks(
    pricing: Pricing, space: Space, times: KernelTime, blocks: Ints
) -> Floats:
    """Kernels of all layers where the first of every stage recompute. [s]."""
    entries, found = block_entries(space.recompute), np.zeros(len(blocks))
    for at, candidate in enumerate(blocks.tolist()):
        row, mesh = int(space.mesh[candidate]), space.meshes
        stages = int(mesh.pp[row] * space.vpp[candidate])
        held = layers_in_blocks(pricing.runs, stages, space.block(candidate))
        found[at] = (held.sum(axis=0) * times.layers[:, entries, row]).sum()
    return found
