"""From a stage split to durations and step time: the integer objective."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from planner.cost.pipeline.pool_costs import pick_stages
from planner.schedules.builder import Graph
from planner.schedules.graph import pipeline_graph
from planner.schedules.order import SPLIT
from planner.schedules.placement import Placement, placement
from planner.schedules.simulator import makespan
from planner.specs.table import EndCosts, StageCosts

Counts = npt.NDArray[np.int64]
"""Layers by (virtual stage, layer kind, entry of the recompute menu). [1]"""


BY_MENU = ("forward", "backward")
"""Times of a layer that recompute changes. [text]"""
WHOLE = ("gather", "scatter", "optimizer", "weight")
"""Times of a layer that no recompute kind changes. [text]"""


def place_of(costs: StageCosts) -> Placement:
    """Placement of the virtual stages of a mesh's schedule."""
    return placement(costs.schedule, costs.pp, costs.vpp)


def stages_of(costs: StageCosts, rank: int) -> tuple[int, ...]:
    """Virtual stages of one rank, by chunk: no two are one stage of the model.

    Returns:
        Indices in model order. [1], shape (vpp,)
    """
    return tuple(stage % costs.stages for stage in place_of(costs).of_rank(rank))


def stages_by_rank(costs: StageCosts) -> Counts:
    """Virtual stages of every rank, by chunk.

    Returns:
        Indices. [1], shape (pp, vpp)
    """
    return _stages_by_rank(costs.schedule, costs.pp, costs.vpp, costs.stages)


@lru_cache(maxsize=1024)
def _stages_by_rank(schedule: str, pp: int, vpp: int, depth: int) -> Counts:
    """Virtual stages of every rank, cached by shape; not to be written to. [1]."""
    place = placement(schedule, pp, vpp)
    stages = np.array([place.of_rank(rank) for rank in range(pp)]) % depth
    stages.setflags(write=False)
    return stages


def rank_by_stage(costs: StageCosts) -> Counts:
    """Rank of every virtual stage, those of each copy of the model counted.

    Returns:
        Indices. [1], shape (pp * vpp,)
    """
    return _rank_by_stage(costs.schedule, costs.pp, costs.vpp)


@lru_cache(maxsize=1024)
def _rank_by_stage(schedule: str, pp: int, vpp: int) -> Counts:
    """Rank of every virtual stage, cached by shape; not to be written to. [1]."""
    place = placement(schedule, pp, vpp)
    ranks = np.array([place.rank(stage) for stage in range(pp * vpp)])
    ranks.setflags(write=False)
    return ranks


def splits_backward(costs: StageCosts) -> bool:
    """Tell if weight gradients are operations of their own.

    Returns:
        True for the zero-bubble schedules.
    """
    return costs.schedule in SPLIT


@dataclass(frozen=True)
class StageVectors:
    """Times of every virtual stage, linear in the layer counts. [ns], (stages,)."""

    forward: Counts
    backward: Counts
    weight: Counts
    gather: Counts
    scatter: Counts
    optimizer: Counts


def stage_vectors(costs: StageCosts, counts: Counts) -> StageVectors:
    """Sum the times of layers and ends on every virtual stage.

    Returns:
        Times. [ns], each of shape (stages,)
    """
    if costs.hosts:
        return pick_stages(costs, [stage_vectors(h, counts) for h in costs.hosts])
    columns = {
        name: np.array([getattr(layer, name) for layer in costs.layers], dtype=np.int64)
        for name in (*BY_MENU, *WHOLE)
    }
    per_kind = counts.sum(axis=2)
    terms = {name: np.einsum("skm,km->s", counts, columns[name]) for name in BY_MENU}
    terms |= {name: per_kind @ columns[name] for name in WHOLE}
    for stage, end in ((0, costs.embedding), (-1, costs.head)):
        for name, column in terms.items():
            column[stage] += getattr(end, name)
    return StageVectors(**terms)


def graph_of(costs: StageCosts, *, unfolded: bool = False) -> Graph:
    """The operation graph of a mesh's schedule."""
    return pipeline_graph(
        costs.schedule,
        costs.pp,
        costs.vpp,
        costs.micro_batches,
        overlap_gather=costs.overlap_gather,
        overlap_scatter=costs.overlap_scatter,
        scatter_every=costs.scatter_every,
        unfolded=unfolded,
    )


def edge_gather(costs: StageCosts, stage: int) -> int:
    """Gather that a stage's first forward waits for: its first unit's. [ns]."""
    here = costs.on_rank(place_of(costs).rank(stage))
    return _edge(here, stage, here.first_gather, here.embedding, here.head, 0)


def edge_scatter(costs: StageCosts, stage: int) -> int:
    """Reduce-scatter left when a stage's last backward is over. [ns]."""
    here = costs.on_rank(place_of(costs).rank(stage))
    return _edge(here, stage, here.last_scatter, here.embedding, here.head, 1)


def edge_times(costs: StageCosts) -> tuple[Counts, Counts]:
    """First gather and last reduce-scatter of every stage.

    Returns:
        Times. [ns], each of shape (stages,)
    """
    stages = list(range(costs.stages))
    if not costs.hosts and len(stages) > 3:
        # On one pool, all stages between the ends are alike.
        stages[2:-1] = [1] * (len(stages) - 3)
    known = {at: (edge_gather(costs, at), edge_scatter(costs, at)) for at in {*stages}}
    gather, scatter = np.array([known[at] for at in stages], dtype=np.int64).T
    return gather, scatter


def _edge(
    costs: StageCosts,
    stage: int,
    layer: int,
    embedding: EndCosts,
    head: EndCosts,
    which: int,
) -> int:
    """Gather or reduce-scatter of a stage's first or last unit. [ns].

    The embedding is first in and last out. The last stage takes the smaller of a
    layer's and the head's.
    """
    if stage == 0:
        return (embedding.gather, embedding.scatter)[which]
    if stage == costs.stages - 1:
        return min(layer, (head.gather, head.scatter)[which])
    return layer


def durations(costs: StageCosts, vectors: StageVectors) -> list[int]:
    """The vector of durations that the simulator takes.

    Returns:
        Durations in the order of the graph's slots. [ns]
    """
    late = vectors.weight * splits_backward(costs)
    columns = (
        vectors.forward,
        vectors.backward - late,
        late,
        vectors.gather,
        vectors.scatter,
        *edge_times(costs),
    )
    ends = by_rank(costs, vectors.optimizer) + costs.overhead
    tiled = [np.tile(column, costs.copies) for column in columns]
    return [int(value) for value in np.concatenate([*tiled, ends, [0]])]


def by_rank(costs: StageCosts, values: Counts) -> Counts:
    """Sum a column over the virtual stages of every rank.

    Args:
        values: One number per virtual stage. shape (stages,)

    Returns:
        One number per pipeline rank. shape (pp,)
    """
    sums: Counts = values[stages_by_rank(costs)].sum(axis=1)
    return sums


def step_ns(costs: StageCosts, counts: Counts) -> int:
    """Step time of a split before the straggler factor: the simulator's. [ns]."""
    vectors = stage_vectors(costs, counts)
    return makespan(graph_of(costs), durations(costs, vectors), costs.p2p)
