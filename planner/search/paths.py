"""Paths through the ranks of a schedule: what the bounds are made of."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.cost.pipeline import (
    Counts,
    durations,
    graph_of,
    place_of,
    splits_backward,
    stage_vectors,
)
from planner.schedules.simulator import Path, rank_paths
from planner.schedules.slots import Slots
from planner.search.kinds import kinds_per_stage
from planner.specs.layout import even_layers
from planner.specs.table import StageCosts


@dataclass(frozen=True)
class PathColumns:
    """Families of one path through every rank of a shape, one after the other."""

    counts: Counts
    """How often each slot is on the path. [1], shape (paths, slots)"""
    p2p: Counts
    """Transfers on the path. [1], shape (paths,)"""
    pp: int
    """Paths of a family: ranks. [1]"""

    @classmethod
    def of(cls, families: Sequence[Sequence[Path]]) -> "PathColumns":
        """Stack paths.

        Args:
            families: Lists of one path through every rank.

        Returns:
            The same as columns.
        """
        flat = [path for family in families for path in family]
        return cls(
            np.array([path.counts for path in flat]),
            np.array([path.p2p for path in flat]),
            len(families[0]),
        )

    @property
    def rank(self) -> Counts:
        """The rank that each path goes through. [1], shape (paths,)."""
        return np.arange(len(self.p2p)) % self.pp

    def sums(self) -> "PathColumns":
        """All paths of a family as one: their mean bounds the step, too."""
        counts = self.counts.reshape(-1, self.pp, self.counts.shape[1]).sum(axis=1)
        return PathColumns(counts, self.p2p.reshape(-1, self.pp).sum(axis=1), 1)


class ShapePaths:
    """Paths through every rank of a schedule's shape, found once per search.

    Three families: all the work of the rank, between the first forward that
    reaches it and the last backward that leaves it; the longest path with equal
    stages and free transfers; and with the durations of the shape's first
    candidate, where it also meets transfers and collectives. Any path is a
    bound for every candidate of the shape.
    """

    def __init__(self) -> None:
        self.known: dict[tuple[object, ...], PathColumns] = {}
        self.work: dict[tuple[object, ...], PathColumns] = {}

    def of_work(self, costs: StageCosts) -> PathColumns:
        """The first family, which takes no graph.

        Args:
            costs: The inner problem.

        Returns:
            One path through every rank.
        """
        key = (costs.schedule, costs.pp, costs.vpp, costs.micro_batches)
        if key not in self.work:
            self.work[key] = PathColumns.of([_work_family(costs)])
        return self.work[key]

    def of(self, costs: StageCosts) -> PathColumns:
        """Paths of a candidate's operation graph.

        Args:
            costs: The inner problem.

        Returns:
            One path through every rank, by family.
        """
        key = (
            costs.schedule,
            costs.pp,
            costs.vpp,
            costs.micro_batches,
            costs.scatter_every,
            costs.overlap_gather,
            costs.overlap_scatter,
        )
        if key not in self.known:
            self.known[key] = PathColumns.of(_families(costs))
        return self.known[key]


def _families(costs: StageCosts) -> list[list[Path]]:
    """Find the three families of a shape."""
    slots, graph = Slots(costs.pp, costs.vpp), graph_of(costs)
    equal, split = [0] * slots.n_slots, int(splits_backward(costs))
    for stage in range(costs.stages):
        equal[slots.f(stage)], equal[slots.b(stage)] = 1, 2 - split
        equal[slots.w(stage)] = split
    x = durations(costs, stage_vectors(costs, even_counts(costs)))
    return [
        _work_family(costs),
        rank_paths(graph, equal, 0),
        rank_paths(graph, x, costs.p2p),
    ]


def _work_family(costs: StageCosts) -> list[Path]:
    return [work_path(costs, rank) for rank in range(costs.pp)]


def work_path(costs: StageCosts, rank: int) -> Path:
    """Path that reaches a rank, stays for all its operations, and drains.

    ``sum_{q<r} f_q,0 + m sum_j (f_r,j + b_r,j + w_r,j) + sum_{q<r} b_q,0 +
    optimizer``: the rank's stream starts with the first micro-batch's chunk 0 and
    ends with the backward of the last one's. Where the backward is split it ends
    with a weight gradient, after which nothing drains.

    Args:
        costs: The inner problem.
        rank: Pipeline rank. [1]

    Returns:
        A path of the operation graph.
    """
    slots = Slots(costs.pp, costs.vpp)
    counts = np.zeros(slots.n_slots, dtype=np.int64)
    split = splits_backward(costs)
    for before in range(rank):
        counts[slots.f(before)], counts[slots.b(before)] = 1, 1 - split
    for stage in place_of(costs).of_rank(rank):
        counts[[slots.f(stage), slots.b(stage)]] = costs.micro_batches
        counts[slots.w(stage)] = costs.micro_batches * split
    counts[slots.opt(rank)] = 1
    return Path(counts, (2 - split) * rank)


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
    return kinds_per_stage(costs.runs, len(costs.layers), layers)[:, :, None] * one


def in_class(costs: StageCosts, counts: Counts) -> bool:
    """Whether a split lies in the declared class of layer counts.

    Args:
        costs: The inner problem.
        counts: Layers by stage, kind and menu entry. [1]

    Returns:
        True when every stage has between its fewest and the most layers.
    """
    layers = counts.sum(axis=(1, 2))
    return bool((layers >= costs.fewest).all() and (layers <= costs.most_layers).all())
