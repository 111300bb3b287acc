"""Paths as linear functions of the layer counts.

Every duration is linear in the number of layers of each kind on each virtual
stage. Any path of the operation graph is thus a linear lower bound on the step, for
every split at once.
"""

from dataclasses import dataclass

import numpy as np

from planner.pipeline.pool_costs import pool_of_stage
from planner.pipeline.splits import (
    Counts,
    edge_times,
    rank_by_stage,
    splits_backward,
)
from planner.schedules.simulator import Path
from planner.specs.table import EndCosts, StageCosts


@dataclass(frozen=True)
class Linear:
    """``constant + sum over (stage, kind, menu) of factors * counts``."""

    constant: int
    factors: Counts
    """Value that each layer adds. Shape (stages, kinds, menu)."""

    def value(self, counts: Counts) -> int:
        """Evaluate at a split.

        Args:
            counts: Layers by stage, kind and menu entry. [1]

        Returns:
            The value, in the unit of the factors.
        """
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
        """One line as columns.

        Args:
            line: The line.

        Returns:
            Columns of length one.
        """
        return cls(np.array([line.constant]), line.factors[None])

    def each(self) -> tuple[Linear, ...]:
        """The lines one by one."""
        constants = self.constants.tolist()
        return tuple(map(Linear, constants, self.factors))


def _end_value(end: EndCosts, weights: Counts) -> Counts:
    """Lengths that one end adds, given how often its slots are on each path."""
    passes = end.forward, end.backward
    terms = (*passes, end.gather, end.scatter, end.optimizer, end.weight)
    value: Counts = weights @ np.array(terms, dtype=np.int64)
    return value


def path_linear(costs: StageCosts, path: Path) -> Linear:
    """Length of a path as a function of the split.

    Args:
        costs: The inner problem.
        path: Any path of the operation graph.

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
        costs: The inner problem.
        counts: Counts of each slot on each path. [1], shape (paths, slots)
        p2p: Transfers on each path. [1], shape (paths,)

    Returns:
        One line a path. [ns], shape (paths,)
    """
    s, copies = costs.stages, costs.copies
    edge = 7 * s * copies
    slots = counts[:, :edge].reshape(-1, 7, copies, s).sum(axis=2)
    optimizers = counts[:, edge : edge + costs.pp]
    updates = optimizers[:, rank_by_stage(costs)].reshape(-1, copies, s).sum(axis=1)
    # W comes on top of B, from which its time was taken
    apart = (slots[:, 2] - slots[:, 1]) * splits_backward(costs)
    factors = _hosted_factors(costs, slots, updates, apart)
    constants = p2p * costs.p2p + optimizers.sum(axis=1) * costs.overhead
    for stage, end in ((0, costs.embedding), (-1, costs.head)):
        passed = [*slots[:, (0, 1, 3, 4), stage].T, updates[:, stage], apart[:, stage]]
        constants = constants + _end_value(end, np.stack(passed, axis=1))
    for slot, times in zip((5, 6), edge_times(costs), strict=True):
        constants = constants + slots[:, slot] @ times
    return Lines(constants, factors)


def _hosted_factors(
    costs: StageCosts, slots: Counts, updates: Counts, apart: Counts
) -> Counts:
    """Length of every path per layer, each stage by its own pool. [ns]."""
    if not costs.hosts:
        return _layer_factors(costs, slots, updates, apart)
    every = np.array([_layer_factors(h, slots, updates, apart) for h in costs.hosts])
    chosen: Counts = every[pool_of_stage(costs), :, np.arange(costs.stages)]
    return np.ascontiguousarray(chosen.swapaxes(0, 1))


def _layer_factors(
    costs: StageCosts, slots: Counts, updates: Counts, apart: Counts
) -> Counts:
    """Length of every path per layer, shape (paths, stages, kinds, menu). [ns]."""
    kinds = costs.layers
    ahead = np.array([kind.forward for kind in kinds], dtype=np.int64)
    behind = np.array([kind.backward for kind in kinds], dtype=np.int64)
    fixed = sum(
        weight[:, :, None] * np.array(terms, dtype=np.int64)
        for weight, terms in (
            (slots[:, 3], [kind.gather for kind in kinds]),
            (slots[:, 4], [kind.scatter for kind in kinds]),
            (updates, [kind.optimizer for kind in kinds]),
            (apart, [kind.weight for kind in kinds]),
        )
    )
    factors: Counts = (
        slots[:, 0, :, None, None] * ahead
        + slots[:, 1, :, None, None] * behind
        + np.asarray(fixed)[..., None]
    )
    return factors
