"""Bounds and first splits where stages lie on pools of different speed.

The mean over equal ranks is a weak bound here, as all layers would go to the fast
pool. Weighted by the pools' rates, the mean is nearly the step itself.
"""

import heapq

import numpy as np

from planner.cost.meshes import Floats, Ints
from planner.cost.table.mixed import quickest
from planner.cost.table.table import CostTable
from planner.pipeline.linear import Lines
from planner.pipeline.pool_costs import pool_of_stage
from planner.search.bounds.deal_bounds import layer_times, pooled_loads, smallest
from planner.search.bounds.worst import SAFE, worst_step
from planner.search.space.space import Space
from planner.specs.table import StageCosts

GRAIN = 1 << 12
"""Weights of the pools are rounded to this fraction of the largest. [1]"""


def pooled_bound(table: CostTable, space: Space) -> Floats:
    """Lower bound on the step of every candidate of several pools.

    Each of the n_j ranks of pool j runs its share of m micro-batches alone. So for
    weights with ``sum_j n_j u_j = 1`` the step is at least ``m sum_j u_j (work on pool
    j)``. Each layer, wherever it lies, adds at least ``min_j u_j w_j``. The weights
    are in proportion to the pools' rates, the best choice for a single kind of layer.

    With whole layers see :func:`planner.search.bounds.deal_bounds.pooled_loads`; the
    larger of the two counts.

    Args:
        table: Priced meshes.
        space: Candidates on them.

    Returns:
        The bound, straggler factor included; 0 on a single pool. [s]
    """
    if len(table.each) == 1 or not len(space):
        return np.zeros(len(space))
    hosting = np.array(space.hostings, dtype=np.float64)[space.mesh].T
    before, loads = pooled_loads(table, space)
    dealt = before + smallest(table.workload.model.layers, loads, hosting)
    step = np.floor(np.maximum(_mean(table, space, hosting), dealt)) - 1
    bound: Floats = np.maximum(step, 0.0) * table.slowdown[space.mesh] / 1e9
    return bound


def _mean(table: CostTable, space: Space, hosting: Floats) -> Floats:
    """Work of all ranks, weighted by their pools' rates. [ns]."""
    mesh, entry = space.mesh, np.maximum(space.menu, 0)
    whole = np.array([_model_time(part)[entry, mesh] for part in table.each])
    rates = 1.0 / np.maximum(whole, 1.0)
    weights = rates / (hosting * rates).sum(axis=0)
    least = np.zeros(len(space))
    for kind, count in table.workload.runs:
        both = [layer_times(part, kind, space) for part in table.each]
        least += count * (weights * both).min(axis=0)
    for end in ("embedding", "head"):
        columns = [getattr(part, end) for part in table.each]
        both = [(one.forward + one.backward)[mesh] for one in columns]
        least += (weights * both).min(axis=0)
    summed: Floats = table.meshes.micro_batches[mesh] * least
    return summed


def _model_time(table: CostTable) -> Floats:
    """All layers of the model, once ahead and back. [ns], shape (menu, meshes)."""
    both = table.forward + table.backward
    total: Floats = sum(
        (count * both[kind] for kind, count in table.workload.runs),
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

    Args:
        costs: The inner problem, on several pools.

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
