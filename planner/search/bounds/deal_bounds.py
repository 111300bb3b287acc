"""Bounds by dealing whole layers out to the ranks, for all candidates at once."""

from dataclasses import replace

import numpy as np

from planner.cost.meshes import Floats, Ints
from planner.cost.reach import Mask
from planner.cost.table.table import CostTable
from planner.search.bounds.columns import Columns, columns_of, most_on_rank
from planner.search.space.schedules import SEARCHED
from planner.search.space.space import Space

SPARE, WINDOW = 2, 5
"""Loads below the mean that are taken as free, and loads that are priced. [1]"""
SLICE = 1 << 22
"""Prices that are held at once. [1]"""
HALVINGS = 26
"""Steps of a search between two numbers: to a hundred-millionth of the larger. [1]"""
ROUNDED_UP = 1 + 1e-12
"""Factor above the rounding of a quotient, so that no whole multiple is lost. [1]"""
PLAIN = SEARCHED.index("1f1b")
"""Schedule of one chunk a rank. [1]"""


def dealt_bound(table: CostTable, space: Space) -> Floats:
    """Lower bound on the step of every candidate, by layers as whole numbers.

    A rank with h layers of one kind starts after a layer of each rank before it but the
    first, and then has m micro-batches alone: ``s_r + m (a_r + h l)``, where the ends
    are on the first and the last rank (in a V both on the first). Every rank offers
    these prices for h = 1, 2, ...; the layers of the kind, L, take L of them. So the
    L-th smallest bounds the step (:func:`planner.search.bounds.rank_load_bounds.
    loaded_bound` does it for one candidate, by more paths). The updates follow, as in
    the first tier. On several pools see :func:`_on_pools`.

    Args:
        table: Priced meshes.
        space: Candidates on them.

    Returns:
        The bound, straggler factor included; 0 where two directions meet. [s],
        shape (candidates,)
    """
    bound = np.zeros(len(space))
    if not len(space):
        return bound
    if len(table.each) > 1:
        return _on_pools(table, space) * table.slowdown[space.mesh] / 1e9
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


def _on_pools(table: CostTable, space: Space) -> Floats:
    """Layers dealt out to ranks on several pools, as many as each can hold. [ns].

    Every rank offers the loads of its pool, up to the layers that fit into the pool's
    memory with the activations that the rank has in flight. Infinite where all ranks
    together hold too few.
    """
    before, loads = pooled_loads(table, space)
    ends = np.array(space.hostings, dtype=np.int64)[space.mesh].cumsum(axis=1)
    declared = columns_of(table, space).most
    columns = [replace(columns_of(part, space), most=declared) for part in table.each]
    bound = np.zeros(len(space))
    for p in np.unique(ends[:, -1]).tolist():
        every = np.flatnonzero(ends[:, -1] == p)
        for at in np.array_split(every, -(-len(every) * p // SLICE) or 1):
            pool = (np.arange(p)[:, None, None] >= ends[at]).sum(axis=2)
            most = np.array([_most(columns, at, r, pool[r]) for r in range(p)])
            each = loads[pool, at]
            bound[at] = smallest(table.workload.model.layers, each, most=most)
    found: Floats = np.floor(np.maximum(before + bound - 1, 0.0))
    return found


def _most(columns: list[Columns], at: Ints, rank: int, pool: Ints) -> Floats:
    """Most layers that a rank can hold on its pool, each as small as any kind. [1]."""
    found = np.zeros(len(at))
    for index, c in enumerate(columns):
        here = np.flatnonzero(pool == index)
        if len(here):
            static = np.min([its for _, its, _ in c.kinds], axis=0)
            saved = np.min([its for *_, its in c.kinds], axis=0)
            found[here] = most_on_rank(c, at[here], rank, static, saved)
    return found


def pooled_loads(table: CostTable, space: Space) -> tuple[Floats, Floats]:
    """Loads that a rank's layers add to a step, by pool, and what is there before.

    Under 1F1B the first micro-batch goes through all p ranks and back. A rank has at
    most p forwards before its first backward, so that afterwards m - 1 backwards and at
    least m - p forwards are left, and the backwards of the ranks before it follow::

        T >= sum_j t_j + h ((m - 1) b + max(m - p, 0) f)

    with h layers of forward f and backward b on the rank. Under any other schedule
    ``T >= h m (f + b)``. A layer is of its cheapest kind.

    Args:
        table: Priced meshes of several pools.
        space: Candidates on them.

    Returns:
        The part that every rank has, shape (candidates,), and that of each layer, shape
        (pools, candidates). [ns]
    """
    plain = (space.schedules == PLAIN) & (space.vpp == 1)
    before = np.zeros(len(space))
    loads = np.full((len(table.each), len(space)), np.inf)
    for kind, count in table.workload.runs:
        both = [layer_times(part, kind, space) for part in table.each]
        before += count * np.min(both, axis=0)
        each = [_load(part, kind, space, plain) for part in table.each]
        loads = np.minimum(loads, each)
    return np.where(plain, before, 0.0), loads


def _load(table: CostTable, kind: int, space: Space, plain: Mask) -> Floats:
    """Load of one layer on the step of its rank. [ns], shape (candidates,)."""
    m = table.meshes.micro_batches[space.mesh]
    fewer = np.maximum(m - table.meshes.pp[space.mesh], 0)
    ahead, behind = (
        each[kind][:, space.mesh] for each in (table.forward, table.backward)
    )
    cost = np.where(plain, m - 1, m) * behind + np.where(plain, fewer, m) * ahead
    return _at_entry(cost, space).astype(np.float64)


def layer_times(table: CostTable, kind: int, space: Space) -> Ints:
    """Forward and backward of a layer of every candidate, at its cheapest.

    Args:
        table: Priced meshes of one pool.
        kind: Kind of layer. [1]
        space: Candidates on them.

    Returns:
        Time of a micro-batch. [ns], shape (candidates,)
    """
    return _at_entry((table.forward[kind] + table.backward[kind])[:, space.mesh], space)


def _at_entry(values: Ints, space: Space) -> Ints:
    """Value under the menu entry of every candidate, the least where it is free."""
    fixed = np.take_along_axis(values, np.maximum(space.menu, 0)[None], axis=0)[0]
    found: Ints = np.where(space.menu < 0, values.min(axis=0), fixed)
    return found


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
