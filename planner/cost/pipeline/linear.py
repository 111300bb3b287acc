"""Paths as linear functions of the layer counts.

Every duration is linear in the number of layers of each kind on each virtual
stage. Any path of the operation graph is thus a linear lower bound on the step, for
every split at once.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from planner.cost.pipeline.pool_costs import pool_of_stage
from planner.cost.pipeline.splits import (
    Counts,
    edge_times,
    rank_by_stage,
    splits_backward,
)
from planner.schedules.simulator import Path
from planner.specs.table import StageCosts


@dataclass(frozen=True)
class Linear:
    """``constant + sum over (stage, kind, menu) of factors * counts``."""

    constant: int
    factors: Counts
    """Value that each layer adds. Shape (stages, kinds, menu)."""

    def value(self, counts: Counts) -> int:
        """Evaluate at a split."""
        return self.constant + int((self.factors * counts).sum())


@dataclass(frozen=True)
class Lines:
    """Several linear functions of the layer counts, as columns."""

    constants: Counts
    """Values without layers. Shape (lines,)."""
    factors: Counts
    """Values that each layer adds. Shape (lines, stages, kinds, menu)."""

    @classmethod
    def of(cls, line: Linear) -> "Lines":
        """One line as columns."""
        return cls(np.array([line.constant]), line.factors[None])

    def each(self) -> tuple[Linear, ...]:
        """The lines one by one."""
        constants = self.constants.tolist()
        return tuple(map(Linear, constants, self.factors))


class LayerTimes(NamedTuple):
    """Times of layers, of several problems with two more axes in front. [ns]."""

    forward: Counts
    """By kind and menu entry, as the backward; the others by kind. [ns]"""
    backward: Counts
    gather: Counts
    scatter: Counts
    optimizer: Counts
    weight: Counts

    @classmethod
    def of(cls, costs: StageCosts) -> "LayerTimes":
        """The times of one problem.

        Returns:
            Arrays of shape (kinds, menu) and (kinds,).
        """
        kinds = costs.layers
        return cls(
            *(
                np.array([getattr(kind, name) for kind in kinds], dtype=np.int64)
                for name in cls._fields
            )
        )


class StepTimes(NamedTuple):
    """All times that lengths of paths are made of, of one problem or of several.

    Of several problems of one shape each array has the problems in front.
    """

    layers: LayerTimes
    embedding: Counts
    """Forward, backward, gather, scatter, optimizer and weight gradients. [ns]"""
    head: Counts
    edges: tuple[Counts, Counts]
    """First gather and last reduce-scatter by stage. [ns]"""
    p2p: Counts | int
    """Transfer of an activation. [ns]"""
    overhead: int
    """Host work of a step. [ns]"""

    @classmethod
    def of(cls, costs: StageCosts) -> "StepTimes":
        """The times of one problem."""
        embedding, head = (
            np.array([getattr(end, name) for name in LayerTimes._fields])
            for end in (costs.embedding, costs.head)
        )
        layers, edges = LayerTimes.of(costs), edge_times(costs)
        return cls(layers, embedding, head, edges, costs.p2p, costs.overhead)


def _end_value(end: Counts, weights: Counts) -> Counts:
    """Lengths that one end adds, given how often its slots are on each path."""
    value: Counts = (weights * end).sum(axis=1)
    return value


def path_linear(costs: StageCosts, path: Path) -> Linear:
    """Length of a path as a function of the split.

    Returns:
        The length; at most the step time at every split. [ns]
    """
    (line,) = path_lines(costs, path.counts[None], np.array([path.p2p])).each()
    return line


def path_lines(costs: StageCosts, counts: Counts, p2p: Counts) -> Lines:
    """Lengths of several paths as functions of the split, in one go.

    A length is linear in the counts of the slots on the path. The sum of some paths
    is thus the line of the sum of their counts.

    Args:
        counts: Counts of each slot on each path. [1], shape (paths, slots)
        p2p: Transfers on each path. [1], shape (paths,)

    Returns:
        One line a path. [ns], shape (paths,)
    """
    return lines_at(costs, _times_of(costs), counts, p2p)


@lru_cache(maxsize=64)
def _times_of(costs: StageCosts) -> StepTimes:
    """Times of one problem, those of layers by stage where pools differ. [ns]."""
    times = StepTimes.of(costs)
    if not costs.hosts:
        return times
    pools, pool_times = pool_of_stage(costs), map(LayerTimes.of, costs.hosts)
    layers = (np.array(column)[pools] for column in zip(*pool_times, strict=True))
    return times._replace(layers=LayerTimes(*layers))


def lines_at(costs: StageCosts, times: StepTimes, counts: Counts, p2p: Counts) -> Lines:
    """Lengths of paths at given times: several paths at one's, or one at several.

    Args:
        costs: An inner problem of the shape, whose own times do not count.
        times: Times of one problem, or of several on one pool.
        counts: Counts of each slot on each path. [1], shape (paths, slots)
        p2p: Transfers on each path. [1], shape (paths,)

    Returns:
        One line a path, or a problem. [ns]
    """
    passes = Passes.of(costs, counts)
    slots, updates = passes.slots, passes.updates
    constants = p2p * times.p2p + passes.optimizers.sum(axis=1) * times.overhead
    for stage, end in ((0, times.embedding), (-1, times.head)):
        passed = [
            *slots[:, (0, 1, 3, 4), stage].T,
            updates[:, stage],
            passes.apart[:, stage],
        ]
        constants = constants + _end_value(end, np.stack(passed, axis=1))
    for slot, edge in zip((5, 6), times.edges, strict=True):
        constants = constants + (slots[:, slot] * edge).sum(axis=1)
    return Lines(constants, passes.factors(times.layers))


class Passes(NamedTuple):
    """Times that paths pass the operations of every stage. [1], shape (paths, ...)."""

    slots: Counts
    """Of each of F to LAST. [1], shape (paths, 7, stages)"""
    optimizers: Counts
    """Of each rank. [1], shape (paths, pp)"""
    updates: Counts
    """Optimizers of the stage's ranks. [1], shape (paths, stages)"""
    apart: Counts
    """Weight gradients on top of backwards, from which their time was taken."""

    @classmethod
    def of(cls, costs: StageCosts, counts: Counts) -> "Passes":
        """Count what paths pass.

        Args:
            counts: Counts of each slot on each path. [1], shape (paths, slots)
        """
        s, copies = costs.stages, costs.copies
        edge = 7 * s * copies
        slots = counts[:, :edge].reshape(-1, 7, copies, s).sum(axis=2)
        optimizers = counts[:, edge : edge + costs.pp]
        of_stage = optimizers[:, rank_by_stage(costs)].reshape(-1, copies, s)
        apart = (slots[:, 2] - slots[:, 1]) * splits_backward(costs)
        return cls(slots, optimizers, of_stage.sum(axis=1), apart)

    def factors(self, times: LayerTimes) -> Counts:
        """Length per layer.

        Args:
            times: Times of layers. [ns]

        Returns:
            Lengths. [ns], shape (lines, stages, kinds, menu)
        """
        fixed = sum(
            weight[:, :, None] * pool_time
            for weight, pool_time in (
                (self.slots[:, 3], times.gather),
                (self.slots[:, 4], times.scatter),
                (self.updates, times.optimizer),
                (self.apart, times.weight),
            )
        )
        factors: Counts = (
            self.slots[:, 0, :, None, None] * times.forward
            + self.slots[:, 1, :, None, None] * times.backward
            + np.asarray(fixed)[..., None]
        )
        return factors
