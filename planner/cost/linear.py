"""Paths and moments as linear functions of the layer counts.

Every duration is linear in the number of layers of each kind on each virtual
stage, so any path of the operation graph is a linear lower bound on the step,
for every split at once.
"""

from dataclasses import dataclass

import numpy as np

from planner.cost.pipeline import (
    Counts,
    edge_gather,
    edge_scatter,
    place_of,
    splits_backward,
)
from planner.schedules.inflight import Peak
from planner.schedules.simulator import Path
from planner.specs.table import EndCosts, IdleMoment, StageCosts


@dataclass(frozen=True)
class Linear:
    """``constant + sum over (stage, kind, menu) of factors * counts``."""

    constant: int
    factors: Counts
    """Shape (stages, kinds, menu)."""

    def value(self, counts: Counts) -> int:
        """Evaluate at a split.

        Args:
            counts: Layers by stage, kind and menu entry. [1]

        Returns:
            The value, in the unit of the factors.
        """
        return self.constant + int((self.factors * counts).sum())


def _end_value(end: EndCosts, weights: tuple[int, ...]) -> int:
    """Path length that one end adds, given how often its slots are on the path."""
    passes = end.forward, end.backward
    terms = (*passes, end.gather, end.scatter, end.optimizer, end.weight)
    return sum(w * term for w, term in zip(weights, terms, strict=True))


def path_linear(costs: StageCosts, path: Path) -> Linear:
    """Length of a path as a function of the split.

    Args:
        costs: The inner problem.
        path: Any path of its operation graph.

    Returns:
        The length; at most the step time at every split. [ns]
    """
    s, p = costs.stages, costs.pp
    counts = path.counts
    slots = [counts[i * s : (i + 1) * s] for i in (0, 1, 3, 4)]
    place = place_of(costs)
    slots.append(counts[[7 * s + place.rank(stage) for stage in range(s)]])
    # W comes on top of B, from which its time was taken
    apart = counts[2 * s : 3 * s] - counts[s : 2 * s]
    slots.append(apart * splits_backward(costs))
    factors = np.zeros((s, len(costs.layers), len(costs.menu)), dtype=np.int64)
    for k, layer in enumerate(costs.layers):
        per_layer = (layer.gather, layer.scatter, layer.optimizer, layer.weight)
        fixed = sum(w * term for w, term in zip(slots[2:], per_layer, strict=True))
        ahead, behind = np.array(layer.forward), np.array(layer.backward)
        factors[:, k, :] = (
            np.outer(slots[0], ahead) + np.outer(slots[1], behind)
        ) + np.asarray(fixed)[:, None]
    first = tuple(int(slot[0]) for slot in slots)
    last = tuple(int(slot[-1]) for slot in slots)
    constant = path.p2p * costs.p2p
    constant += int(counts[7 * s : 7 * s + p].sum()) * costs.overhead
    constant += _end_value(costs.embedding, first) + _end_value(costs.head, last)
    for offset, edge in ((5, edge_gather), (6, edge_scatter)):
        for stage in np.flatnonzero(counts[offset * s : (offset + 1) * s]):
            weight = int(counts[offset * s + stage])
            constant += weight * edge(costs, int(stage))
    return Linear(int(constant), factors)


def peak_linear(costs: StageCosts, rank: int, peak: Peak) -> Linear:
    """Memory of one moment of a rank without its transient.

    States of all its chunks, saved activations in flight, and the gradients
    that wait on the chunk at work.

    Args:
        costs: The inner problem.
        rank: Pipeline rank. [1]
        peak: The backward that starts, and what is in flight.

    Returns:
        Memory. [block]
    """
    shape = (costs.stages, len(costs.layers), len(costs.menu))
    factors = np.zeros(shape, dtype=np.int64)
    constant = 0
    for chunk, held in enumerate(peak.counts):
        stage = place_of(costs).stage(rank, chunk)
        working = chunk == peak.chunk
        for k, layer in enumerate(costs.layers):
            states = layer.static + working * layer.accumulated
            factors[stage, k, :] = states + held * np.array(layer.saved)
        for end_stage, end in ((0, costs.embedding), (costs.stages - 1, costs.head)):
            if stage == end_stage:
                constant += end.static + working * end.accumulated + held * end.saved
    return Linear(constant, factors)


def end_transient(costs: StageCosts, stage: int) -> int:
    """Transient of the ends that live on a virtual stage.

    Args:
        costs: The inner problem.
        stage: Virtual stage. [1]

    Returns:
        Memory. [block]
    """
    first = costs.embedding.transient if stage == 0 else 0
    last = costs.head.transient if stage == costs.stages - 1 else 0
    return max(first, last)


def idle_linear(costs: StageCosts, rank: int, moment: IdleMoment) -> Linear:
    """Memory of a rank at an idle moment without what lies beside it.

    Args:
        costs: The inner problem.
        rank: Pipeline rank. [1]
        moment: One of its idle moments.

    Returns:
        Memory. [block]
    """
    shape = (costs.stages, len(costs.layers), len(costs.menu))
    factors = np.zeros(shape, dtype=np.int64)
    constant = 0
    for stage in place_of(costs).of_rank(rank):
        for k, layer in enumerate(costs.layers):
            factors[stage, k, :] = layer.static + np.array(moment.layers[k])
        if stage == 0:
            constant += costs.embedding.static + moment.embedding
        if stage == costs.stages - 1:
            constant += costs.head.static + moment.head
    return Linear(constant, factors)


def head_rank(costs: StageCosts) -> int:
    """Rank of the last virtual stage: the last rank, or the first in a V.

    Args:
        costs: The inner problem.

    Returns:
        Pipeline rank. [1]
    """
    return place_of(costs).rank(costs.stages - 1)


def idle_end_beside(costs: StageCosts, rank: int, moment: IdleMoment) -> int:
    """Largest thing beside a rank at an idle moment that is no layer's.

    Args:
        costs: The inner problem.
        rank: Pipeline rank. [1]
        moment: One of its idle moments.

    Returns:
        Memory. [block]
    """
    first = moment.embedding_beside if rank == 0 else 0
    last = moment.head_beside if rank == head_rank(costs) else 0
    return max(first, last)
