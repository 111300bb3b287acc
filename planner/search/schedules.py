"""Schedules of every mesh of a space, and the chunks that each may have."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from planner.cost.meshes import Ints, Meshes
from planner.cost.workload import Workload

SEARCHED = ("1f1b", "interleaved", "gpipe")
"""Schedules that a space may hold, in the order of the tie-break. [text]

Of the others none runs in these frameworks as they are priced: the zero-bubble
schedules split the backward, which PyTorch refuses under torch.compile and
Megatron-Core does not have.
"""
PLAIN, CHUNKED, AT_ONCE = range(len(SEARCHED))


class Rows(NamedTuple):
    """Meshes, each as often as it has schedules and chunks."""

    mesh: Ints
    """Index of the mesh. [1], shape (rows,)"""
    vpp: Ints
    """Chunks per rank. [1], shape (rows,)"""
    schedule: Ints
    """Entry of ``SEARCHED``. [1], shape (rows,)"""


def schedule_rows(
    workload: Workload, meshes: Meshes, removed: Counter[str], *, full: bool
) -> Rows:
    """1F1B on every mesh, interleaving with all its chunks, GPipe on request.

    GPipe is in the full space, and where the user names it, on meshes with a
    pipeline and two micro-batches or more: on others it is 1F1B. It holds all
    micro-batches at once and computes as long as 1F1B, so that it is only ever
    faster by the transfers that 1F1B waits for.

    Args:
        workload: The job.
        meshes: Meshes of the space.
        removed: Counts by rule, to which those of the rules here are added.
        full: The whole space.

    Returns:
        One row for each mesh, schedule and number of chunks, in mesh order.
    """
    search = workload.search
    plain = search.allows_text("schedule", "1f1b") and search.allows("vpp", 1)
    removed["limit:vpp or schedule"] += len(meshes) * (1 - plain)
    chunks = {
        int(pp): _chunk_counts(workload, int(pp), removed, full=full)
        for pp in np.unique(meshes.pp)
    }
    first = [(1, PLAIN)] if plain else []
    whole = _interleaves(workload, meshes)
    at_once = _at_once(workload, meshes, full=full)
    lists = [
        first + [(1, AT_ONCE)] * once + [(v, CHUNKED) for v in chunks[pp] if deep]
        for pp, deep, once in zip(meshes.pp.tolist(), whole, at_once, strict=True)
    ]
    rows = np.repeat(np.arange(len(meshes)), [len(each) for each in lists])
    flat = np.array([row for each in lists for row in each], dtype=np.int64)
    return Rows(rows, *flat.reshape(-1, 2).T)


def _interleaves(workload: Workload, meshes: Meshes) -> list[bool]:
    """Meshes whose micro-batches come in whole groups of the pipeline's ranks."""
    legal = (meshes.pp > 1) & (meshes.micro_batches % meshes.pp == 0)
    legal &= "interleaved" in workload.framework.limits.schedules
    legal &= workload.search.allows_text("schedule", "interleaved")
    return [bool(one) for one in legal]


def _at_once(workload: Workload, meshes: Meshes, *, full: bool) -> list[bool]:
    """Meshes on which GPipe is in the space and another schedule than 1F1B."""
    search = workload.search
    wanted = full or search.schedule is not None
    wanted &= search.allows_text("schedule", "gpipe") and search.allows("vpp", 1)
    wanted &= "gpipe" in workload.framework.limits.schedules
    return [bool(one) for one in wanted & (meshes.pp > 1) & (meshes.micro_batches > 1)]


def _chunk_counts(
    workload: Workload, pp: int, removed: Counter[str], *, full: bool
) -> list[int]:
    """Chunks above one; in the default space those that split nearly evenly.

    The default space keeps a count whose largest stage leaves fewer empty
    places than there are ranks: ``p v ceil(L / (p v)) - L < p``.
    """
    layers = workload.model.layers
    counts = []
    for vpp in range(2, (layers + 2) // pp + 1):
        stages = pp * vpp
        empty = stages * -(-layers // stages) - layers
        if empty >= pp and not full:
            removed["vpp that splits the layers unevenly"] += 1
        elif workload.search.allows("vpp", vpp):
            counts.append(vpp)
        else:
            removed["limit:vpp"] += 1
    return counts
