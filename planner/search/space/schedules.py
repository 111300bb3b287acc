"""Schedules of every mesh of a space, and the chunks that each may have."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from planner.cost.meshes import Ints, Meshes
from planner.cost.pricing import Pricing
from planner.cost.reach import Mask
from planner.cost.time.transfers import scatter_every
from planner.cost.workload import Workload
from planner.schedules.fold import folds
from planner.schedules.order import MOST_OPERATIONS, SPLIT, operation_count
from planner.schedules.placement import V_SHAPED

NO_RECOMPUTE = "none"
"""Kind under which a layer keeps everything for its backward. [text]"""
SEARCHED = ("1f1b", "interleaved", "gpipe", *SPLIT)
"""Schedules that a space may hold, in the order of the tie-break. [text]"""
PLAIN, CHUNKED, AT_ONCE = range(3)
ON_REQUEST = SEARCHED[AT_ONCE:]
"""Schedules of the full space, and of others where the user names them. [text]"""
SPLITS = np.array([name in SPLIT for name in SEARCHED])
"""True for schedules whose backward is two operations. [bool]"""
FOLDS = np.array([name in V_SHAPED for name in SEARCHED])
"""True for schedules whose chunks lie in a V. [bool]"""
COPIES = np.array([2 if name == "dualpipe" else 1 for name in SEARCHED])
"""Copies of the model that the ranks hold, by schedule. [1]"""


class Rows(NamedTuple):
    """Meshes, each as often as it has schedules and chunks."""

    mesh: Ints
    """Index of the mesh. [1], shape (rows,)"""
    vpp: Ints
    """Chunks per rank. [1], shape (rows,)"""
    schedule: Ints
    """Entry of ``SEARCHED``. [1], shape (rows,)"""

    def take(self, rows: Ints) -> "Rows":
        """Keep some rows."""
        return Rows(self.mesh[rows], self.vpp[rows], self.schedule[rows])


Chunks = dict[int, list[int]]
"""Numbers of chunks above one that a rank may have, by pipeline ranks. [1]"""


def schedule_rows(
    pricing: Pricing,
    meshes: Meshes,
    removed: Counter[str],
    *,
    full: bool,
    chunks: Chunks | None = None,
) -> Rows:
    """1F1B on every mesh, interleaving with all chunks, the others on request.

    The full space has every schedule that the framework runs. Other spaces have the
    schedules of ``ON_REQUEST`` that the user names. Each is on the meshes where the
    schedule exists and differs from 1F1B. GPipe holds all micro-batches at once and
    computes as long as 1F1B. So GPipe gains only the transfers that 1F1B waits for.

    Args:
        pricing: The job.
        meshes: Meshes of the space.
        removed: Counts by rule, to which the counts of the rules here are added.
        full: True for the full space.
        chunks: Result of :func:`chunk_counts`, where already counted.
    """
    search = pricing.search
    plain = search.allows_text("schedule", "1f1b") and search.allows("vpp", 1)
    removed["limit:vpp or schedule"] += 0 if plain else len(meshes)
    if chunks is None:
        chunks = chunk_counts(pricing, meshes.pp, removed, full=full)
    pairs = [(SEARCHED.index(name), _chunks_of(name)) for name in ON_REQUEST]
    there = [_on_request(pricing, meshes, name, full=full) for name in ON_REQUEST]
    kinds = np.stack([meshes.pp, _interleaves(pricing, meshes), *there], axis=1)
    kinds, kind = np.unique(kinds, axis=0, return_inverse=True)
    lists = [
        ([(1, PLAIN)] if plain else [])
        + [(v, name) for (name, v), one in zip(pairs, others, strict=True) if one]
        + [(v, CHUNKED) for v in chunks[pp] if whole]
        for pp, whole, *others in kinds.tolist()
    ]
    rows, places = _spread(kind.ravel(), [len(each) for each in lists])
    flat = np.array([row for each in lists for row in each], dtype=np.int64)
    found = Rows(rows, *flat.reshape(-1, 2)[places].T)
    short = np.flatnonzero(_simulated(pricing, meshes, found))
    rule = "a step too long to simulate, in which nothing repeats"
    removed[rule] += len(rows) - len(short)
    return found.take(short) if len(short) < len(rows) else found


def _spread(kind: Ints, sizes: list[int]) -> tuple[Ints, Ints]:
    """Every row as often as its kind has entries, and the place of each entry. [1]."""
    each = np.array([0, *sizes])
    rows = np.repeat(np.arange(len(kind)), each[kind + 1])
    before = np.cumsum(each[kind + 1]) - each[kind + 1]
    return rows, np.cumsum(each)[kind][rows] + np.arange(len(rows)) - before[rows]


def _simulated(pricing: Pricing, meshes: Meshes, rows: Rows) -> Mask:
    """True where a step is short, or has a short step that stands for it."""
    pp, m = meshes.pp[rows.mesh], meshes.micro_batches[rows.mesh]
    short: Mask = operation_count(pp, rows.vpp, m) <= MOST_OPERATIONS
    every = scatter_every(pricing, meshes)[rows.mesh]
    for row in np.flatnonzero(~short).tolist():
        name, groups = SEARCHED[rows.schedule[row]], int(every[row])
        shape = (name, int(pp[row]), int(rows.vpp[row]), int(m[row]))
        short[row] = folds(*shape, groups if groups < m[row] else None)
    return short


def menu_rows(
    workload: Workload,
    rows: Rows,
    menu: tuple[str, ...],
    removed: Counter[str],
    *,
    tied: bool,
) -> tuple[Rows, Ints]:
    """Every schedule with every recompute kind that it may run with.

    Returns:
        Rows, each as often as it has entries; and the entry of the menu, -1 where
        layers choose. [1], shape (candidates,)
    """
    entries = np.arange(len(menu)) if tied else np.array([-1])
    each = np.repeat(np.arange(len(rows.mesh)), len(entries))
    entry = np.tile(entries, len(rows.mesh))
    if workload.framework.limits.recomputes_split:
        return rows.take(each), entry
    bare = menu.index(NO_RECOMPUTE) if NO_RECOMPUTE in menu else len(menu)
    split = SPLITS[rows.schedule[each]]
    entry = np.where(split & (entry < 0), bare, entry)
    kept = ~split | ((entry == bare) & (bare < len(menu)))
    rule = "recompute where the backward is split"
    removed[rule] += int(len(kept) - kept.sum())
    return rows.take(each[kept]), entry[kept]


def _interleaves(workload: Workload, meshes: Meshes) -> Mask:
    """True where interleaving is allowed and micro-batches come in groups of pp."""
    legal: Mask = (meshes.pp > 1) & (meshes.micro_batches % meshes.pp == 0)
    legal &= "interleaved" in workload.framework.limits.schedules
    legal &= workload.search.allows_text("schedule", "interleaved")
    return legal


def _chunks_of(schedule: str) -> int:
    """Chunks of a rank under a schedule of the full space. [1]."""
    return 2 if schedule in V_SHAPED else 1


def _on_request(pricing: Pricing, meshes: Meshes, name: str, *, full: bool) -> Mask:
    """True on the meshes on which a schedule is in the space."""
    search, limits = pricing.search, pricing.framework.limits
    chunks = _chunks_of(name)
    wanted = full or search.schedule is not None
    wanted &= search.allows_text("schedule", name) and search.allows("vpp", chunks)
    # DualPipe holds every stage twice: both copies cost the same on one pool alone.
    wanted &= not (pricing.mixed and name == "dualpipe")
    there: Mask = wanted & (name in limits.schedules) & _exists(pricing, meshes, name)
    return there


def _exists(workload: Workload, meshes: Meshes, name: str) -> Mask:
    """True where a schedule is legal, and another than 1F1B.

    A V has two virtual stages a rank. Of all stages only the first and the last may
    hold no layer. DualPipe has one stage a rank, from either end.
    """
    pp, m = meshes.pp, meshes.micro_batches
    several = (pp > 1) & ((m > 1) | (name != "gpipe"))
    if name == "dualpipe":
        paired: Mask = several & (pp % 2 == 0) & (m % 2 == 0) & (m >= 2 * pp)
        return paired
    if name in V_SHAPED:
        several = several & (2 * pp <= workload.model.layers + 2)
    there: Mask = several & ((m >= 2 * pp) | (name != "dualpipe-v"))
    return there


def chunk_counts(
    workload: Workload, pp: Ints, removed: Counter[str], *, full: bool
) -> Chunks:
    """Numbers of chunks above one that a rank may have.

    Args:
        workload: The job.
        pp: Pipeline ranks; numbers may repeat. [1]
        removed: Counts by rule, to which the counts of the rules here are added.
        full: True for the full space.
    """
    return {
        int(ranks): _chunk_counts(workload, int(ranks), removed, full=full)
        for ranks in np.unique(pp)
    }


def _chunk_counts(
    workload: Workload, pp: int, removed: Counter[str], *, full: bool
) -> list[int]:
    """Numbers of chunks above one; the default space keeps nearly even splits.

    The default space keeps a number of chunks that leaves fewer empty places than
    there are ranks: ``p v ceil(L / (p v)) - L < p``.
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
