"""Lower bounds on the step time, and proofs that a candidate cannot fit.

Three tiers, each proven where it stands: arithmetic on columns for the whole
space, Lagrangian path bounds for one candidate, and the solver.
"""

from dataclasses import dataclass

import numpy as np

from planner.cost.linear import Linear, end_transient, path_linear, peak_linear
from planner.cost.meshes import Floats, Ints
from planner.cost.pipeline import (
    Counts,
    durations,
    graph_of,
    peak_vectors,
    single_menu,
    stage_vectors,
)
from planner.cost.table import CostTable
from planner.schedules.inflight import Peak
from planner.schedules.simulator import Path, rank_paths
from planner.search.space import Space
from planner.specs.layout import even_layers
from planner.specs.table import StageCosts


@dataclass(frozen=True)
class SpaceBounds:
    """First-tier answers for every candidate."""

    step: Floats
    """Lower bound on the step, straggler factor included. [s]"""
    fits: Ints
    """0 where no split can fit the memory, else 1. [1]"""


@dataclass(frozen=True)
class _Columns:
    """Table columns spread over the candidates. Times in ns, memory in blocks."""

    p: Ints
    v: Ints
    m: Ints
    most: Ints
    work: Floats
    """Forward and backward of the whole model for one micro-batch. [ns]"""
    layer: Floats
    """Forward and backward of the cheapest layer. [ns]"""
    saved: Floats
    static: Floats
    transient: Floats
    budget: Floats


def space_bounds(table: CostTable, space: Space) -> SpaceBounds:
    """Bound every candidate with a few array operations.

    Args:
        table: Priced meshes.
        space: Candidates on them.

    Returns:
        Lower bounds on the step and the memory verdict. [s] and [1]
    """
    columns = _columns(table, space)
    nanoseconds = _time_bound(table, space, columns)
    slowdown = table.slowdown[space.mesh]
    return SpaceBounds(nanoseconds * slowdown / 1e9, _may_fit(table, space, columns))


def _columns(table: CostTable, space: Space) -> _Columns:
    mesh, pick = space.mesh, space.menu
    layers = table.workload.model.layers
    counts = np.zeros(len(table.workload.kinds))
    for kind, count in table.workload.runs:
        counts[kind] += count
    free = pick < 0
    entry = np.where(free, 0, pick)

    def cheapest(values: Ints, weight: Floats | None) -> Floats:
        folded = (
            values.min(axis=0)
            if weight is None
            else np.tensordot(weight, values, axes=1)
        )
        tied = folded[entry, mesh]
        return np.where(free, folded.min(axis=0)[mesh], tied).astype(np.float64)

    both = table.forward + table.backward
    ends = table.embedding, table.head
    edge = sum(end.forward + end.backward for end in ends)
    v = space.vpp
    stages = table.meshes.pp[mesh] * v
    return _Columns(
        p=table.meshes.pp[mesh],
        v=v,
        m=table.meshes.micro_batches[mesh],
        most=-(-layers // stages) + table.extra_layers,
        work=cheapest(both, counts) + np.asarray(edge)[mesh],
        layer=cheapest(both, None),
        saved=cheapest(table.saved, None),
        static=np.minimum.reduce([unit.static for unit in table.units])[mesh] * 1.0,
        transient=cheapest(table.transient, None),
        budget=table.budget[mesh] * 1.0,
    )


def _time_bound(table: CostTable, space: Space, c: _Columns) -> Floats:
    """Lower bound on the simulated step. [ns].

    With ``S`` the work of one micro-batch over all stages, cheapest menu entry:

    1. Every rank runs its share of m micro-batches alone, and its optimizer
       after all ranks' work: the largest is at least the mean,
       ``T >= (m S + optimizer) / p``.
    2. 1F1B with m > p: ``T >= (m + p - 1) S / p``, by combining the rows
       ``sum_{j<r} t_j + (m - k_r) t_r + 2 sum_{j>r} t_j`` of all ranks with
       weights that make every coefficient equal (cost model, E.3.2).
    3. A rank starts after the first chunks of the ranks before it and ends
       after their backwards: ``T >= sum_{q<r} t_{q,0} + m t_r``. Averaged over
       r, each rank q >= 1 adds at least ``(p-1-q)/p`` of one cheapest layer,
       since only the ends may hold none.

    The optimizer may be added to 2 and 3 as well: it starts after every rank's
    compute and its largest is at least its mean.
    """
    units = table.units
    optimizer = (table.embedding.unit.optimizer + table.head.unit.optimizer) * 1.0
    for kind, count in table.workload.runs:
        optimizer = optimizer + count * units[kind].optimizer
    tail = optimizer[space.mesh] / c.p
    mean = c.m * c.work / c.p
    fill = np.where(c.p > 2, (c.p - 1) * (c.p - 2) / (2.0 * c.p), 0.0) * c.layer
    plain = (c.v == 1) & (c.m > c.p)
    bubble = np.where(plain, (c.p - 1) * c.work / c.p, fill)
    return np.floor(mean + bubble + tail)


def _may_fit(table: CostTable, space: Space, c: _Columns) -> Ints:
    """0 where the ranks together cannot hold the model's layers.

    At the first backward of rank r, K_r chunk activations are in flight (exact,
    from the order: ``min(m, p - r)`` and ``min(m v, 2(p-r-1) + (v-1)p + 1)``),
    at most ``C_r`` of one chunk. With N layers on the rank, at most ``most`` a
    chunk, the activations are at least ``saved (most K_r - C_r (v most - N))``,
    so ``N <= (budget - transient - saved (most K_r - C_r v most)) /
    (static + saved C_r)``. If the sum of these over the ranks is below L,
    nothing fits. Ends only add memory, so leaving them out keeps this a bound.
    """
    total = np.zeros(len(space))
    for rank in range(int(c.p.max(initial=1))):
        here = np.flatnonzero(c.p > rank)
        total[here] += _most_on_rank(c, here, rank)
    return (total >= table.workload.model.layers).astype(np.int64)


def _most_on_rank(c: _Columns, at: Ints, rank: int) -> Floats:
    """Most layers that a rank can hold. [1]."""
    p, v, m, most = c.p[at], c.v[at], c.m[at], c.most[at]
    deep = np.minimum(m * v, 2 * (p - rank - 1) + (v - 1) * p + 1)
    held = np.where(v > 1, deep, np.minimum(m, p - rank))
    cycles = -(-held // (p * v))
    one_chunk = np.where(v > 1, np.minimum(m, p * cycles), held)
    saved = c.saved[at]
    room = c.budget[at] - c.transient[at]
    room = room - saved * most * (held - one_chunk * v)
    each = np.maximum(c.static[at] + saved * one_chunk, 1.0)
    return np.clip(np.floor(room / each), 0, v * most)


@dataclass(frozen=True)
class Relaxation:
    """Second-tier answer for one candidate."""

    bound: int
    """Lower bound on the simulated step. [ns]"""
    cuts: tuple[Linear, ...]
    """Valid inequalities that gave it. [ns]"""


_PATHS: dict[tuple[object, ...], list[Path]] = {}


def shape_paths(costs: StageCosts) -> list[Path]:
    """One path through every rank for a schedule's shape, found once.

    The durations of the first candidate of a shape choose the paths; any path
    is a bound for every other candidate of that shape.

    Args:
        costs: The inner problem.

    Returns:
        Paths of its operation graph.
    """
    key = (
        costs.schedule, costs.pp, costs.vpp, costs.micro_batches,
        costs.scatter_every, costs.overlap_gather, costs.overlap_scatter,
    )
    if key not in _PATHS:
        if len(_PATHS) > 512:
            _PATHS.clear()
        nominal = even_counts(costs)
        x = durations(costs, stage_vectors(costs, nominal))
        _PATHS[key] = rank_paths(graph_of(costs), x, costs.p2p)
    return _PATHS[key]


def even_counts(costs: StageCosts, entry: int = 0) -> Counts:
    """The even split with one menu entry everywhere.

    Args:
        costs: The inner problem.
        entry: Index into its menu. [1]

    Returns:
        Layers by stage, kind and menu entry. [1]
    """
    layers = even_layers(costs.layer_count, costs.stages)
    one = np.zeros(len(costs.menu), dtype=np.int64)
    one[entry] = 1
    alone = StageCosts(**{**vars(costs), "menu": (costs.menu[entry],)})
    return single_menu(alone, layers) * one


def relax(costs: StageCosts) -> Relaxation:
    """Bound one candidate by paths, minimised over every split.

    Each path is linear in the layer counts, so its least value over a superset
    of the splits is a bound; so is that of the paths' mean, where one path's
    light stages are another's heavy ones. The larger counts.

    Args:
        costs: The inner problem.

    Returns:
        The bound and the path inequalities. [ns]
    """
    cuts = tuple(path_linear(costs, path) for path in shape_paths(costs))
    total = Linear(
        sum(cut.constant for cut in cuts),
        np.sum([cut.factors for cut in cuts], axis=0),
    )
    mean = -(-least(costs, total) // len(cuts))
    return Relaxation(max([mean, *(least(costs, cut) for cut in cuts)]), cuts)


def least(costs: StageCosts, line: Linear) -> int:
    """Least value of a linear function over a superset of the splits.

    Each layer kind is dealt out on its own to the stages where it is cheapest,
    at most ``most_layers`` a stage; with a single kind every stage first takes
    its fewest. The kinds' order is dropped, which only enlarges the set.

    Args:
        costs: The inner problem.
        line: Any linear function of the counts.

    Returns:
        A value that no split goes below.
    """
    best = line.factors.min(axis=2)
    value = line.constant
    lone = len(costs.layers) == 1
    fewest = np.array(
        [costs.fewest_layers(i) if lone else 0 for i in range(costs.stages)]
    )
    totals = np.zeros(len(costs.layers), dtype=np.int64)
    for kind, count in costs.runs:
        totals[kind] += count
    for kind, count in enumerate(totals):
        prices = best[:, kind]
        value += int((fewest * prices).sum())
        left = int(count) - int(fewest.sum())
        for stage in np.argsort(prices, kind="stable"):
            taken = min(left, costs.most_layers - int(fewest[stage]))
            value += taken * int(prices[stage])
            left -= taken
            if left <= 0:
                break
    return value


def cannot_fit(costs: StageCosts) -> bool:
    """Prove that no split fits: the ranks' largest loads sum below the layers.

    A rank's memory depends on its own chunks alone. For each of its moments
    the most layers are reached by filling its cheapest chunks first with the
    cheapest kind; the least over moments bounds the rank, and the ranks
    together must hold the model.

    Args:
        costs: The inner problem.

    Returns:
        True only when nothing can fit.
    """
    table = peak_vectors(costs.schedule, costs.pp, costs.vpp, costs.micro_batches)
    total = 0
    for rank in range(costs.pp):
        loads = [_most_layers(costs, rank, peak) for peak in table[rank]]
        if min(loads) < 0:
            return True
        total += min(loads)
    return total < costs.layer_count


def _most_layers(costs: StageCosts, rank: int, peak: Peak) -> int:
    """Most layers of a rank at one moment; -1 where not even its fewest fit."""
    line = peak_linear(costs, rank, peak)
    stages = np.arange(rank, costs.stages, costs.pp)
    prices = line.factors[stages].min(axis=(1, 2))
    at = int(stages[peak.chunk])
    transient = end_transient(costs, at)
    if costs.fewest_layers(at) > 0:
        least_layer = min(min(layer.transient) for layer in costs.layers)
        transient = max(transient, least_layer)
    left = costs.budget - line.constant - transient
    fewest = np.array([costs.fewest_layers(int(stage)) for stage in stages])
    left -= int((fewest * prices).sum())
    if left < 0:
        return -1
    held = int(fewest.sum())
    for index in np.argsort(prices, kind="stable"):
        room = costs.most_layers - int(fewest[index])
        taken = min(room, left // max(int(prices[index]), 1))
        held += taken
        left -= taken * int(prices[index])
    return held
