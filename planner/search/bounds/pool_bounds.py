"""Bounds and first splits where stages lie on pools of different speed.

The mean over equal ranks is a weak bound here, as all layers would go to the fast
pool. Weighted by the pools' rates, the mean is nearly the step itself.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from planner.cost.meshes import Floats, Ints
from planner.cost.pipeline.linear import Lines
from planner.cost.pipeline.pool_costs import pool_of_stage
from planner.cost.reach import Mask
from planner.cost.table.mixed import MixedTable, quickest
from planner.cost.table.table import CostTable
from planner.search.bounds.columns import (
    Columns,
    at_entry,
    columns_of,
    most_on_rank,
)
from planner.search.bounds.deal_bounds import SLICE, least_sum
from planner.search.bounds.worst import SAFE, worst_step
from planner.search.space.schedules import CHUNKED, PLAIN
from planner.search.space.space import Space
from planner.specs.table import StageCosts

GRAIN = 1 << 12
"""Weights of the pools are rounded to this fraction of the largest. [1]"""


OF_CANDIDATES = ("most", "chunks", "ends", "times", "forward", "once")
"""Columns of :class:`_Work`, whose last axis is that of the candidates. [text]"""


class Trips(NamedTuple):
    """A path that goes through all ranks several times, and then stays on one."""

    whole: Ints
    """Ways through all ranks and back. [1], shape (candidates,)"""
    ahead: Ints
    """Forwards that the first rank has left after the last of them. [1]"""
    behind: Ints
    """Backwards that every rank has left. [1]"""
    later: Mask
    """True where each further rank has one more forward left. [bool]"""
    before: Floats
    """Sends and ends on these ways, and the updates that follow. [ns]"""

    def take(self, at: Ints) -> "Trips":
        """The paths of some candidates."""
        columns = {name: column[at] for name, column in self._asdict().items()}
        return self._replace(**columns)


def pooled_bound(table: CostTable, space: Space) -> Floats:
    """Lower bound on the step of every candidate of several pools, in any order.

    Each of the n_j ranks of pool j runs its share of m micro-batches alone. So for
    weights with ``sum_j n_j u_j = 1`` the step is at least ``m sum_j u_j (work on pool
    j)``. Each layer, wherever it lies, adds at least ``min_j u_j w_j``. The weights
    are in proportion to the pools' rates, the best choice for a single kind of layer.

    With whole layers and with sends see :func:`_trips`; the larger of the two counts.

    Returns:
        The bound, straggler factor included; 0 on a single pool. [s]
    """
    if len(table.each) == 1 or not len(space):
        return np.zeros(len(space))
    hosting = space.hosted().T.astype(np.float64)
    step, work = _mean(table, space, hosting), _Work.of(table, space)
    fewest = np.maximum(work.chunks - work.ends, 0)
    for trips, loads in work.trips:
        dealt = work.dealt(trips, loads, work.times, fewest, copies=hosting)
        step = np.maximum(step, dealt)
    return _seconds(table, space, step)


def dealt_to_pools(table: CostTable, space: Space) -> Floats:
    """Lower bound on the step of every candidate of pools in one order.

    Every rank offers the loads of its pool, up to the layers that fit into the pool's
    memory with the activations that the rank has in flight.

    Returns:
        The bound, straggler factor included; infinite where all ranks together hold
        too few layers, or a rank less than one a chunk. [s], shape (candidates,)
    """
    if not len(space):
        return np.zeros(0)
    last = space.hosted().cumsum(axis=1)
    work, bound = _Work.of(table, space), np.zeros(len(space))
    columns = _by_pool(table, space, work.most)
    for p in np.unique(last[:, -1]).tolist():
        alike = np.flatnonzero(last[:, -1] == p)
        for at in np.array_split(alike, -(-len(alike) * p // SLICE) or 1):
            pool = (np.arange(p)[:, None, None] >= last[at]).sum(axis=2)
            most = np.array([_most(columns, at, r, pool[r]) for r in range(p)])
            bound[at] = work.take(at).on_ranks(pool, most)
    return _seconds(table, space, bound)


def most_on_ranks(table: CostTable, space: Space, pools: Sequence[int]) -> Ints | None:
    """Most layers that every rank can hold, of candidates whose pools lie alike.

    Args:
        table: Priced meshes.
        space: Candidates on them.
        pools: Pool of every rank; none on one pool. [1], shape (ranks,)

    Returns:
        Layers; None on one pool, where memory is looked at one by one. [1], shape
        (candidates, ranks)
    """
    if not pools:
        return None
    columns = _by_pool(table, space, columns_of(table, space).most)
    every = np.arange(len(space))
    held = [_most(columns, every, r, pool + 0 * every) for r, pool in enumerate(pools)]
    most: Ints = np.array(held).astype(np.int64).T
    return most


def _by_pool(table: CostTable, space: Space, most: Ints) -> list[Columns]:
    """Columns of every pool, with the class of all pools together."""
    return [replace(columns_of(part, space), most=most) for part in table.each]


@dataclass(frozen=True)
class _Work:
    """Times of the quickest layers by pool, and paths on which bounds rest."""

    layers: int
    most: Ints
    """Most layers of a virtual stage. [1], shape (candidates,)"""
    chunks: Ints
    """Chunks of a rank. [1], shape (candidates,)"""
    ends: Ints
    """Ends of the model on the first and the last rank. [1], shape (candidates,)"""
    times: Floats
    """Forward and backward of a layer. [ns], shape (pools, candidates)"""
    forward: Floats
    """Forward of a layer. [ns], shape (pools, candidates)"""
    once: Floats
    """All layers once ahead and back, each where it is quickest. [ns]"""
    trips: list[tuple[Trips, Floats]]
    """Paths, and the loads of a layer on each, by pool. [ns]"""

    @classmethod
    def of(cls, table: CostTable, space: Space) -> "_Work":
        """Times and paths of candidates of several pools."""
        c, one = columns_of(table, space), np.ones_like(space.mesh)
        ways = _trips(table, space, c)
        return cls(
            layers=table.pricing.model.layers,
            most=c.most,
            chunks=c.v,
            ends=np.where(c.folded | (c.copies > 1), 2, 1),
            times=_layers(table, space, one, one),
            forward=_layers(table, space, 0 * one, one),
            once=_model_at_best(table, space),
            trips=[(way, _layers(table, space, way.behind, way.ahead)) for way in ways],
        )

    def take(self, at: Ints) -> "_Work":
        """Keep some candidates."""
        own = {name: getattr(self, name)[..., at] for name in OF_CANDIDATES}
        columns = [(way.take(at), loads[:, at]) for way, loads in self.trips]
        return replace(self, **own, trips=columns)

    def on_ranks(self, pool: Ints, most: Floats) -> Floats:
        """Lower bound where the pool of every rank is known, and its memory. [ns].

        Args:
            pool: Pool of every rank. [1], shape (ranks, candidates)
            most: Most layers of every rank. [1], shape (ranks, candidates)
        """
        ranks, at = np.arange(len(pool))[:, None], np.arange(pool.shape[1])
        ends = self.ends * ((ranks == 0) | (ranks == len(pool) - 1))
        fewest = np.maximum(self.chunks - ends, 0)
        least = np.where((most >= fewest).all(axis=0), 0.0, np.inf)
        for trips, loads in self.trips:
            load = loads[pool, at] + ranks * trips.later * self.forward[pool, at]
            dealt = self.dealt(trips, load, self.times[pool, at], fewest, most=most)
            least = np.maximum(least, dealt)
        return least

    def dealt(
        self,
        trips: Trips,
        loads: Floats,
        times: Floats,
        fewest: Ints,
        *,
        copies: "Floats | float" = 1.0,
        most: "Floats | float" = np.inf,
    ) -> Floats:
        """Least of one path over all ways to deal the layers out. [ns]."""
        dealt = least_sum(
            self.layers,
            trips.whole * times,
            loads,
            copies,
            most=most,
            fewest=fewest,
            floor=trips.whole * self.once,
        )
        return trips.before + dealt


def _seconds(table: CostTable, space: Space, step: Floats) -> Floats:
    """Step that is surely reached, with the straggler factor. [s]."""
    found: Floats = np.floor(np.maximum(step - 1, 0.0))
    return found * table.slowdown[space.mesh] / 1e9


def _trips(table: CostTable, space: Space, c: Columns) -> list[Trips]:
    """Paths on which bounds of a candidate rest, whatever its split.

    Rank 0 has p forwards before its first backward under 1F1B, so that micro-batches 0,
    p, 2p, ... can go through all ranks and back one after the other, K of them. A rank
    r that the path stays on has ``m - 1 - (K - 1) p`` backwards left then, and ``m - K
    p + r`` forwards; the backwards of the ranks before it follow::

        T >= K (sum_j t_j + 2 (v p - 1) send) + h (behind b + ahead f)

    with h layers of forward f and backward b on the rank. Of chunks, rank 0 has two
    groups of p micro-batches ahead of the first backward of its first chunk. So every
    ``2 p``-th micro-batch goes through all ranks in turn, and ``m - (2 K - 1) p``
    backwards and ``m - 2 K p`` forwards of all chunks are left.

    K is 0, when a rank has m of both and no more is known; 1; or as many as there are.
    """
    assert isinstance(table, MixedTable)
    send = table.sends(space.mesh, space.hosted().T)
    ends = _ends(table, space)
    plain = (space.schedules == PLAIN) & (c.v == 1)
    every = np.where(plain, c.p, 2 * c.p)
    known = plain | (space.schedules == CHUNKED)
    hops, found = 2 * (c.v * c.p - 1) * send + ends, []
    for whole in (0 * c.m, known * 1, known * -(-c.m // every)):
        left = np.where(plain, c.m - 1 - (whole - 1) * c.p, c.m - (2 * whole - 1) * c.p)
        ahead = np.where(whole > 0, np.maximum(c.m - whole * every, 0), c.m)
        behind = np.where(whole > 0, np.maximum(left, 0), c.m)
        later = plain & (whole > 0) & (c.m >= whole * every)
        found.append(Trips(whole, ahead, behind, later, whole * hops + c.tail))
    return found


def _ends(table: CostTable, space: Space) -> Ints:
    """Embedding and head once ahead and back, where they are quickest. [ns]."""
    both = [end.forward + end.backward for end in (table.embedding, table.head)]
    found: Ints = np.sum(both, axis=0)[space.mesh]
    return found


def _layers(table: CostTable, space: Space, behind: Ints, ahead: Ints) -> Floats:
    """Time of so many backwards and forwards of a layer of the quickest kind. [ns].

    shape (pools, candidates).
    """
    found = []
    for part in table.each:
        times = behind * part.backward[:, :, space.mesh]
        times = times + ahead * part.forward[:, :, space.mesh]
        found.append(np.min([at_entry(kind, space) for kind in times], axis=0))
    return np.array(found, dtype=np.float64)


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


def _mean(table: CostTable, space: Space, hosting: Floats) -> Floats:
    """Work of all ranks, weighted by their pools' rates. [ns]."""
    mesh, entry = space.mesh, np.maximum(space.menu, 0)
    whole = np.array([_model_time(part)[entry, mesh] for part in table.each])
    rates = 1.0 / np.maximum(whole, 1.0)
    weights = rates / (hosting * rates).sum(axis=0)
    least = np.zeros(len(space))
    for kind, count in table.pricing.runs:
        both = [layer_times(part, kind, space) for part in table.each]
        least += count * (weights * both).min(axis=0)
    for end in ("embedding", "head"):
        columns = [getattr(part, end) for part in table.each]
        both = [(one.forward + one.backward)[mesh] for one in columns]
        least += (weights * both).min(axis=0)
    summed: Floats = table.meshes.micro_batches[mesh] * least
    return summed


def layer_times(table: CostTable, kind: int, space: Space) -> Ints:
    """Forward and backward of a layer of every candidate, at its cheapest.

    Returns:
        Time of a micro-batch. [ns], shape (candidates,)
    """
    return at_entry((table.forward[kind] + table.backward[kind])[:, space.mesh], space)


def _model_at_best(table: CostTable, space: Space) -> Floats:
    """All layers of the model once ahead and back, each where it is quickest. [ns]."""
    total = np.zeros(len(space))
    for kind, count in table.pricing.runs:
        total += count * np.min(
            [layer_times(part, kind, space) for part in table.each], axis=0
        )
    return total


def _model_time(table: CostTable) -> Floats:
    """All layers of the model, once ahead and back. [ns], shape (menu, meshes)."""
    both = table.forward + table.backward
    total: Floats = sum(
        (count * both[kind] for kind, count in table.pricing.runs),
        np.zeros(both.shape[1:]),
    )
    return total


def weighted(costs: StageCosts, lines: Lines, ranks: Ints) -> tuple[Lines, int]:
    """The paths through all ranks as one, weighted by their pools' rates.

    A weighted mean of paths is at most the longest, whatever the weights.

    Args:
        costs: The inner problem, on several pools.
        lines: Paths, as many through every rank.
        ranks: Rank that each path goes through. [1], shape (lines,)

    Returns:
        Sums of the weighted paths by family, and the sum of the weights. [ns] and [1]
    """
    times = np.array([quickest(host) for host in costs.hosts])
    grain = min(GRAIN, SAFE // (costs.pp * worst_step(costs)))
    share = np.maximum(grain * times.min() // times, 1)
    of_rank = share[list(costs.pool_of_rank)]
    each = of_rank[ranks]
    shape = (-1, costs.pp)
    constants = (lines.constants * each).reshape(shape).sum(axis=1)
    factors = lines.factors * each[:, None, None, None]
    whole = factors.reshape(*shape, *factors.shape[1:]).sum(axis=1)
    return Lines(constants, whole), int(of_rank.sum())


def balanced_layers(costs: StageCosts) -> list[int]:
    """Layers of every stage that take about the same time on each pool.

    Layers go one by one to the stage that is then done first, within the declared
    class. Of equal stages the first takes the layer.

    Returns:
        Layers. [1], shape (stages,)
    """
    layers = list(costs.fewest)
    times = [quickest(host) for host in costs.hosts]
    of_stage = [times[pool] for pool in pool_of_stage(costs).tolist()]
    pairs = enumerate(zip(layers, of_stage, strict=True))
    queue = [((n + 1) * time, stage) for stage, (n, time) in pairs]
    heapq.heapify(queue)
    for _ in range(costs.layer_count - sum(layers)):
        _, stage = heapq.heappop(queue)
        layers[stage] += 1
        if layers[stage] < costs.most_layers:
            heapq.heappush(queue, ((layers[stage] + 1) * of_stage[stage], stage))
    return layers
