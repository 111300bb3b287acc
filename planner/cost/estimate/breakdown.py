"""Breakdown of the step time: exposed time of the busiest rank by cause."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.cost.parameters.data_groups import DataGroups
from planner.cost.parameters.rank_parameters import (
    embedding_owned,
    head_owned,
    layer_owned,
)
from planner.cost.parameters.states import optimizer_time
from planner.cost.pipeline.splits import (
    Counts,
    durations,
    graph_of,
    stage_vectors,
    stages_of,
)
from planner.cost.table.kernel_time import KERNELS
from planner.cost.table.table import CostTable, layer_parts
from planner.cost.table.units import nanoseconds
from planner.cost.time.columns import Context, Parts
from planner.cost.time.ends import embedding_end, head_end
from planner.cost.time.transfers import sharded_parts
from planner.schedules.simulator import makespan
from planner.schedules.slots import Slots
from planner.specs.answer.estimate import TimeBreakdown
from planner.specs.table import StageCosts

Layers = dict[tuple[int, int], tuple[Parts, Parts]]
"""Forward and backward of one layer by kind and menu entry. [s]"""
Ends = list[tuple[int, tuple[Parts, Parts]]]
"""Stage of the embedding and of the head, with forward and backward. [s]"""


@dataclass(frozen=True)
class RankWork:
    """Time of the forwards and backwards of one pipeline rank. [ns]."""

    by_cause: dict[str, float]
    waits: dict[str, float]
    """Parts of ``other``."""

    @property
    def total(self) -> float:
        """Sum over the causes. [ns]."""
        return sum(self.by_cause.values())

    @property
    def named(self) -> dict[str, float]:
        """Time by cause, the parts of ``other`` in its place. [ns]."""
        causes = {name: t for name, t in self.by_cause.items() if name != "other"}
        return causes | self.waits


Work = Sequence[RankWork]
"""Time of the forwards and backwards of every pipeline rank. [ns]"""


def kernel_share(
    table: CostTable, costs: StageCosts, work: Work, step_s: float
) -> float:
    """Share of the time of all GPUs in kernels of forward and backward.

    Args:
        work: Time of every rank by cause. [ns]
        step_s: The step. [s]

    Returns:
        Time in kernels, recompute among it, over the step; ranks weigh by their GPUs.
        [1]
    """
    gpus = [
        int(table.each[costs.pool(rank)].meshes.block[0]) for rank in range(costs.pp)
    ]
    busy = [sum(rank.by_cause.get(cause, 0.0) for cause in KERNELS) for rank in work]
    # Ranks come pool by pool, as their pools do.
    spent = sum(time * count for time, count in zip(busy, gpus, strict=True))
    return own_factor(table) * spent / 1e9 / (sum(gpus) * step_s)


def time_breakdown(
    table: CostTable, costs: StageCosts, counts: Counts, work: Work
) -> tuple[TimeBreakdown, dict[str, float]]:
    """Split the step of one layout by cause.

    The busiest rank's own work is known by cause. Transfers between stages add the
    step less the step with free transfers. Data parallelism outside the layers adds
    the step less the step without it, with the compute that it slows down. The rest
    of the rank's time is bubble. Without a pipeline the rest is compute that rounding
    to whole nanoseconds left.

    Args:
        counts: Layers by stage, kind and menu entry. [1]
        work: Time of every rank by cause. [ns]

    Returns:
        Times that add up to the step, and those that add up to ``other``. [s]
    """
    busiest = max(work, key=lambda rank: rank.total)
    causes = defaultdict(float, busiest.by_cause)
    around = times_around(table, costs, counts)
    causes["optimizer"] += around.update
    causes["dp_comm"] += around.contention
    causes["other"] += around.overhead
    causes["pp_comm"] += around.transfers
    causes["dp_comm"] += around.collectives
    rest = around.step - sum(causes.values())
    causes["bubble" if costs.pp > 1 else "compute"] += rest
    factor = own_factor(table)
    seconds = {cause: factor * time / 1e9 for cause, time in causes.items()}
    straggler = around.step * (costs.slowdown - factor) / 1e9
    waits = {**busiest.waits, "step_overhead": float(around.overhead)}
    others = {name: factor * time / 1e9 for name, time in waits.items() if time}
    return TimeBreakdown(**seconds, straggler=straggler), others


@dataclass(frozen=True)
class Around:
    """Times of a step around the passes of its busiest rank. [ns]."""

    step: int
    """The simulated step, without stragglers."""
    update: float
    """Optimizer step of the rank that takes longest for it."""
    contention: float
    """Compute that collectives beside it slow down, in that rank's optimizer step."""
    overhead: int
    transfers: int
    """The step less the step with free transfers between stages."""
    collectives: int
    """The step with free transfers less that with free gathers and scatters, too."""
    updating: int
    """The rank that takes longest for its optimizer step. [1]"""


def times_around(table: CostTable, costs: StageCosts, counts: Counts) -> Around:
    """Times of a step beside the forwards and backwards of its ranks. [ns]."""
    graph = graph_of(costs)
    x = durations(costs, stage_vectors(costs, counts))
    step = makespan(graph, x, costs.p2p)
    without_p2p = makespan(graph, x, 0)
    alone = makespan(graph, _without_data_parallel(costs, x), 0)
    slots = Slots(costs.pp, costs.vpp)
    last = max(range(costs.pp), key=lambda rank: x[slots.opt(rank)])
    part = table.each[costs.pool(last)]
    update = _update_ns(part, counts, list(stages_of(costs, last)))
    return Around(
        step=step,
        update=update,
        contention=x[slots.opt(last)] - update - costs.overhead,
        overhead=costs.overhead,
        transfers=step - without_p2p,
        collectives=without_p2p - alone,
        updating=last,
    )


def own_factor(table: CostTable) -> float:
    """Factor on the step that the user's own runs gave, the largest of several pools.

    Returns:
        1 without a calibration. [1]
    """
    return max(part.pricing.profile.step_factor for part in table.each)


def _update_ns(table: CostTable, counts: Counts, stages: list[int]) -> float:
    """Optimizer step of one rank without the contention of its collectives. [ns]."""
    pricing, meshes = table.pricing, table.meshes
    layers = counts[stages].sum(axis=(0, 2))
    units = [
        (layer_owned(pricing, k, meshes), n)
        for k, n in zip(pricing.kinds, layers, strict=True)
    ]
    if 0 in stages:
        units.append((embedding_owned(pricing, meshes), 1))
    if len(counts) - 1 in stages:
        units.append((head_owned(pricing, meshes), 1))
    return sum(
        int(count) * float(nanoseconds(optimizer_time(pricing, own, meshes))[0])
        for own, count in units
    )


def _without_data_parallel(costs: StageCosts, x: Sequence[int]) -> list[int]:
    """Durations with free gathers and scatters. [ns]."""
    slots = Slots(costs.pp, costs.vpp)
    bare = list(x)
    for stage in range(slots.stages):
        for slot in (slots.gather, slots.scatter, slots.first, slots.last):
            bare[slot(stage)] = 0
    return bare


def work_by_rank(table: CostTable, costs: StageCosts, counts: Counts) -> list[RankWork]:
    """Time of the forwards and backwards of every pipeline rank, by cause.

    Returns:
        Time of all micro-batches by cause. [ns], shape (pp,)
    """
    ranks: list[RankWork] = []
    for pool, part in enumerate(table.each):
        context = Context.of(part.pricing, part.meshes)
        data = DataGroups.of(part.pricing, part.meshes, context.links)
        layers = layer_passes(data, context, costs, counts)
        ends = end_passes(data, context, costs)
        here = (rank for rank in range(costs.pp) if costs.pool(rank) == pool)
        ranks += [_rank_causes(costs, counts, layers, ends, rank) for rank in here]
    return ranks


def layer_passes(
    data: DataGroups, context: Context, costs: StageCosts, counts: Counts
) -> Layers:
    """Time of one layer of every kind and menu entry that the split has. [s]."""
    pricing, meshes = data.pricing, data.meshes
    owned = [layer_owned(pricing, layer, meshes) for layer in pricing.kinds]
    return {
        (kind, entry): layer_parts(
            context, data, pricing.kinds[kind], owned[kind], costs.menu[entry]
        )
        for kind, entry in np.argwhere(counts.any(axis=0)).tolist()
    }


def end_passes(data: DataGroups, context: Context, costs: StageCosts) -> Ends:
    """Stage and time of the embedding and of the head.

    Returns:
        Stages [1], and forward and backward. [s]
    """
    pricing, meshes = data.pricing, data.meshes
    embedding, head = embedding_end(context), head_end(context)
    owned = embedding_owned(pricing, meshes), head_owned(pricing, meshes)
    parts = [
        sharded_parts(data, own, end.forward, end.backward)
        for own, end in zip(owned, (embedding, head), strict=True)
    ]
    return list(zip((0, costs.stages - 1), parts, strict=True))


def _rank_causes(
    costs: StageCosts, counts: Counts, layers: Layers, ends: Ends, rank: int
) -> RankWork:
    """Time of all micro-batches of one rank, by cause. [ns]."""
    work = RankWork(defaultdict(float), defaultdict(float))
    stages = list(stages_of(costs, rank))
    rank_layers = counts[stages].sum(axis=0)
    for (kind, entry), passes in layers.items():
        for parts in passes if rank_layers[kind, entry] else ():
            _add(work, parts, int(rank_layers[kind, entry]) * costs.passes)
    for stage, passes in ends:
        for parts in passes if stage in stages else ():
            _add(work, parts, costs.passes)
    return work


def _add(work: RankWork, parts: Parts, times: int) -> None:
    pairs = ((work.by_cause, parts.by_cause), (work.waits, parts.waits))
    for causes, units in pairs:
        for cause, seconds in units.items():
            causes[cause] += times * float(seconds[0]) * 1e9
