"""Bounds by dealing whole layers out to the ranks, for all candidates at once."""

import numpy as np

from planner.cost.meshes import Floats, Ints
from planner.cost.table.table import CostTable
from planner.search.bounds.columns import Columns, columns_of
from planner.search.space.space import Space

SPARE, WINDOW = 2, 5
"""Loads below the mean that are taken as free, and loads that are priced. [1]"""
SLICE = 1 << 22
"""Prices that are held at once. [1]"""


def dealt_bound(table: CostTable, space: Space) -> Floats:
    """Lower bound on the step of every candidate, by layers as whole numbers.

    A rank with h layers of one kind starts after a layer of each rank before it but the
    first, and then has m micro-batches alone: ``s_r + m (a_r + h l)``, where the ends
    are on the first and the last rank (in a V both on the first). Every rank offers
    these prices for h = 1, 2, ...; the layers of the kind, L, take L of them. So the
    L-th smallest bounds the step (:func:`planner.search.bounds.rank_load_bounds.
    loaded_bound` does it for one candidate, by more paths). The updates follow, as in
    the first tier.

    Args:
        table: Priced meshes.
        space: Candidates on them.

    Returns:
        The bound, straggler factor included; 0 where two directions meet, and on
        several pools. [s], shape (candidates,)
    """
    bound = np.zeros(len(space))
    if len(table.each) > 1 or not len(space):
        return bound
    c = columns_of(table, space)
    for p in np.unique(c.p).tolist():
        at = np.flatnonzero((c.p == p) & (c.copies == 1))
        for part in np.array_split(at, -(-len(at) * p * WINDOW // SLICE) or 1):
            bound[part] = _dealt(c, part, p) if len(part) else 0.0
    floor = np.floor(np.maximum(bound + c.tail - 1, 0.0))
    found: Floats = np.where(c.copies == 1, floor, 0.0)
    return found * table.slowdown[space.mesh] / 1e9


def _dealt(c: Columns, at: Ints, p: int) -> Floats:
    """Bounds of candidates of p ranks, without the updates. [ns]."""
    least = np.zeros(len(at))
    for layers, each in c.times:
        price = c.m[at] * each[at]
        base = max(layers // p - SPARE, 0)
        starts = _starts(c, at, p)[:, :, None]
        loads = base + np.arange(1, WINDOW + 2)
        prices = starts + loads * price[:, None, None]
        beyond = prices[:, :, -1].min(axis=1)
        offered = prices[:, :, :-1].reshape(len(at), -1)
        left = layers - p * base - 1
        if 0 <= left < offered.shape[1]:
            beyond = np.minimum(np.partition(offered, left, axis=1)[:, left], beyond)
        least = np.maximum(least, beyond * (left >= 0))
    return least


def _starts(c: Columns, at: Ints, p: int) -> Floats:
    """Fill before each rank, and the ends on it. [ns], shape (candidates, p)."""
    ahead = np.maximum(np.arange(p) - 1, 0) * c.layer[at][:, None]
    starts: Floats = ahead.astype(np.float64)
    starts[:, 0] += c.m[at] * c.embedding[at]
    last = np.where(c.folded[at], 0, p - 1)
    starts[np.arange(len(at)), last] += c.m[at] * c.head[at]
    return starts
