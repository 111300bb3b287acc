"""Candidates that recompute the first layers of every virtual stage in full."""

from collections import Counter

import numpy as np

from planner.cost.meshes import Floats, Ints, Meshes
from planner.cost.pipeline.splits import Counts
from planner.cost.table.table import CostTable
from planner.cost.workload import Workload
from planner.search.space.schedules import SPLITS, Rows
from planner.specs.layouts.layout import even_layers
from planner.specs.layouts.recompute import BLOCK_KINDS, block_of
from planner.specs.table import StageCosts

QUARTERS = (1, 2, 3)
"""Quarters of the largest even stage's layers that the full space recomputes. [1]"""
CHOSEN = -1
"""Menu entry of candidates whose layers choose; blocks of N have CHOSEN - N. [1]"""


def named_blocks(workload: Workload) -> tuple[int, ...]:
    """Sizes of blocks that the user lists, such as `full:2`."""
    limits = workload.framework.limits
    if not limits.recompute_blocks or limits.recompute_scope != "plan":
        return ()
    words = workload.search.words("recompute")
    return tuple(sorted({size for word in words if (size := block_of(word))}))


def block_rows(
    workload: Workload, meshes: Meshes, rows: Rows, removed: Counter[str]
) -> tuple[Rows, Ints]:
    """Candidates with blocks: those that the user lists, or steps in the full space.

    The full space has a quarter, a half and three quarters of the layers of the
    largest stage, rounded up. Candidates with blocks split the layers evenly, so each
    is a single plan. A block as large as the largest stage is full recompute, and not
    a separate candidate.

    Returns:
        Rows, and the menu entry of each: ``-1 - N``. [1], shape (candidates,)
    """
    search, limits = workload.search, workload.framework.limits
    there = limits.recompute_blocks and limits.recompute_scope == "plan"
    whole = search.space == "full" and search.recompute is None
    largest = -(-workload.model.layers // (meshes.pp[rows.mesh] * rows.vpp))
    named = [np.full(len(largest), size) for size in named_blocks(workload)]
    steps = [-(-largest * step // 4) for step in QUARTERS] if there and whole else []
    found: list[tuple[Ints, Ints]] = []
    before = np.zeros_like(largest)
    for size in named or steps:
        kept = (size > before) & (size < largest) & ~SPLITS[rows.schedule]
        found.append((np.flatnonzero(kept), CHOSEN - size[kept]))
        before = size
    removed["block of recompute as large as a stage"] += sum(
        len(rows.mesh) - len(at) for at, _ in found if named
    )
    at = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _ in found)])
    entry = np.concatenate([np.zeros(0, np.int64), *(codes for _, codes in found)])
    return rows.take(at), entry


def block_entries(menu: tuple[str, ...]) -> tuple[int, ...]:
    """Entries of a menu that blocks are made of: full, then none."""
    return tuple(menu.index(name) for name in BLOCK_KINDS)


def block_counts(costs: StageCosts) -> Counts:
    """Only split of a candidate with blocks: even, the first layers under full."""
    return layers_in_blocks(costs.runs, costs.stages, costs.block)


def layers_in_blocks(
    runs: tuple[tuple[int, int], ...], stages: int, block: int
) -> Counts:
    """Even split whose stages have so many first layers under full recompute."""
    total = sum(count for _, count in runs)
    layers = np.array(even_layers(total, stages))
    kinds = [kind for kind, _ in runs]
    of_layer = np.repeat(kinds, [count for _, count in runs])
    owner = np.repeat(np.arange(stages), layers)
    place = np.arange(total) - np.repeat(np.cumsum(layers) - layers, layers)
    counts = np.zeros((stages, 1 + max(kinds), 2), dtype=np.int64)
    np.add.at(counts, (owner, of_layer, (place >= block).astype(np.int64)), 1)
    return counts


def block_work(
    table: CostTable, pp: Ints, vpp: Ints, entry: Ints, mesh: Ints
) -> Floats:
    """Least time that blocks add to one micro-batch of the whole model. [ns].

    Take ``S`` stages of ``q`` or ``q + 1`` layers, r of the larger. A block of N
    recomputes ``(S - r) min(N, q) + r min(N, q + 1)`` layers in all. Full recompute
    of a layer takes longer than the cheapest recompute kind. The least difference over
    the kinds of layer counts for every layer.

    Returns:
        Time above the cheapest recompute kinds, 0 without blocks. [ns]
    """
    size = np.maximum(CHOSEN - entry, 0)
    if not size.any():
        return np.zeros(len(entry))
    both = table.forward + table.backward
    full = both[:, table.menu.index(BLOCK_KINDS[0])]
    dearer = (full - both.min(axis=1)).min(axis=0)[mesh]
    few, more = np.divmod(table.pricing.model.layers, pp * vpp)
    layers = (pp * vpp - more) * np.minimum(size, few)
    layers = layers + more * np.minimum(size, few + 1)
    return np.asarray(layers * dearer * 1.0)
