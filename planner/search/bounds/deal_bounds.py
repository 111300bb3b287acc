"""Bounds by dealing whole layers out to the ranks, for all candidates at once."""

import numpy as np

from planner.cost.meshes import Floats, Ints
from planner.cost.table.table import CostTable
from planner.search.bounds.columns import ROUNDED_UP, Columns, columns_of
from planner.search.space.space import Space

SPARE, WINDOW = 2, 5
"""Loads below the mean that are taken as free, and loads that are priced. [1]"""
SLICE = 1 << 22
"""Prices that are held at once. [1]"""
CELLS, WIDER = 18, 1.04
"""Ranges into which largest loads are cut, and the ratio of one to the next. [1]"""
HALVINGS = 26
"""Steps of a search between two numbers: to a hundred-millionth of the larger. [1]"""


def dealt_bound(table: CostTable, space: Space) -> Floats:
    """Lower bound on the step of every candidate, by layers as whole numbers.

    A rank with h layers of one kind starts after a layer of each rank before it but the
    first, and then has m micro-batches alone: ``s_r + m (a_r + h l)``, where the ends
    are on the first and the last rank (in a V both on the first). Every rank offers
    these prices for h = 1, 2, ...; the layers of the kind, L, take L of them. So the
    L-th smallest bounds the step (:func:`planner.search.bounds.rank_load_bounds.
    loaded_bound` does it for one candidate, by more paths). The updates follow, as in
    the first tier. On several pools see
    :func:`planner.search.bounds.pool_bounds.dealt_to_pools`.

    Returns:
        The bound, straggler factor included; 0 where two directions meet. [s],
        shape (candidates,)
    """
    bound = np.zeros(len(space))
    if not len(space):
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


def smallest(
    count: int,
    each: Floats,
    copies: "Floats | float" = 1.0,
    most: "Floats | float" = np.inf,
) -> Floats:
    """Bound the count-th smallest multiple of some numbers from below.

    Args:
        count: Multiples that are taken. [1]
        each: The numbers. [ns], shape (numbers, candidates)
        copies: Times that each number offers its multiples. [1]
        most: Multiples that it offers. [1]

    Returns:
        A bound, less by at most a share of 2 to the minus ``HALVINGS`` of *count* times
        the largest number; inf where too few are offered. [ns], shape (candidates,)
    """
    some = np.maximum(each, 1.0)
    low, high = np.zeros(each.shape[1]), count * some.max(axis=0)
    offered = np.broadcast_to(np.minimum(most, count) * copies, some.shape)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        offers = np.minimum(np.floor(middle / some * ROUNDED_UP), most) * copies
        few = offers.sum(axis=0) < count
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    return np.where(offered.sum(axis=0) >= count, low, np.inf)


def least_sum(
    count: int,
    times: Floats,
    loads: Floats,
    copies: "Floats | float" = 1.0,
    most: "Floats | float" = np.inf,
    fewest: "Ints | int" = 0,
    floor: "Floats | float" = 0.0,
) -> Floats:
    """Bound the least of ``sum_r h_r times_r + max_r h_r loads_r`` from below.

    If the largest load is between two limits, no number takes more than the upper one
    allows. So the sum is at least that of the layers dealt to the numbers with the
    least times first, and the largest load at least the lower limit.

    Loads below 1 ns count as 1 ns, by which no largest load grows by more than *count*:
    so much is taken off again.

    Args:
        count: Sum of the whole numbers h. [1]
        times: Times of every number. [ns], shape (numbers, candidates)
        loads: Loads of every number. [ns], shape (numbers, candidates)
        copies: Ranks that each number stands for. [1]
        most: Most of each rank. [1]
        fewest: Fewest of each rank. [1]
        floor: Sums are no less than this. [ns]

    Returns:
        A bound; inf where the ranks hold too few. [ns], shape (candidates,)
    """
    over = count * (loads < 1.0).any(axis=0)
    low = np.maximum(smallest(count, loads, copies, most), (fewest * loads).max(axis=0))
    order = np.argsort(times, axis=0)
    columns = (times, np.maximum(loads, 1.0), copies, np.minimum(most, count), fewest)
    times, loads, copies, most, given = (
        np.take_along_axis(np.broadcast_to(each, order.shape), order, axis=0)
        for each in columns
    )
    count = count - (given * copies).sum(axis=0)
    base = (given * copies * times).sum(axis=0)
    least = np.full(times.shape[1], np.inf)
    for cell in range(CELLS):
        high = low * WIDER if cell < CELLS - 1 else np.inf
        held = np.minimum(np.floor(high / loads * ROUNDED_UP), most)
        held = np.maximum(held - given, 0) * copies
        before = held.cumsum(axis=0) - held
        taken = np.clip(count - before, 0, held)
        sums = np.maximum(base + (taken * times).sum(axis=0), floor)
        least = np.minimum(least, low + sums)
        low = high
    return np.maximum(least - over, 0.0)
