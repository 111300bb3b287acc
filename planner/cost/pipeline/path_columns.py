"""Paths of one operation graph as columns, and weighted sums of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from planner.cost.pipeline.splits import Counts
from planner.schedules.simulator import Path

GRAIN = 1 << 14
"""Multipliers of paths are rounded to this fraction of one. [1]"""


class WeightedPath(NamedTuple):
    """Weighted sum of paths of a shape: the weighted mean bounds the step, too."""

    counts: Counts
    """Sum of ``weight * counts``. [1], shape (slots,)"""
    p2p: int
    """Sum of ``weight * p2p``: transfers. [1]"""
    weight: int
    """Sum of the weights. [1]"""

    @classmethod
    def of(cls, paths: Sequence[Path], weights: Sequence[float]) -> "WeightedPath":
        """Add paths up."""
        grains = np.rint(np.array(weights) * GRAIN).astype(np.int64)
        counts = grains @ np.array([path.counts for path in paths])
        p2p = int(grains @ np.array([path.p2p for path in paths]))
        return cls(counts, p2p, int(grains.sum()))


@dataclass(frozen=True)
class PathColumns:
    """Families of one path through every rank of a shape, one after the other."""

    counts: Counts
    """Times that each slot is on the path. [1], shape (paths, slots)"""
    p2p: Counts
    """Transfers on the path. [1], shape (paths,)"""
    pp: int
    """Paths of a family: one per rank. [1]"""

    @classmethod
    def of(cls, families: Sequence[Sequence[Path]]) -> "PathColumns":
        """Stack paths."""
        flat = [path for family in families for path in family]
        return cls(
            np.array([path.counts for path in flat]),
            np.array([path.p2p for path in flat]),
            len(families[0]),
        )

    @property
    def rank(self) -> Counts:
        """Rank that each path goes through. [1], shape (paths,)."""
        return np.arange(len(self.p2p)) % self.pp

    def sums(self) -> "PathColumns":
        """Sum of the paths of each family: their mean bounds the step, too."""
        counts = self.counts.reshape(-1, self.pp, self.counts.shape[1]).sum(axis=1)
        return PathColumns(counts, self.p2p.reshape(-1, self.pp).sum(axis=1), 1)

    def weighted(self) -> list[WeightedPath]:
        """The mean of the paths of each family."""
        sums = self.sums()
        paths = zip(sums.counts, sums.p2p.tolist(), strict=True)
        return [WeightedPath(counts, p2p, self.pp) for counts, p2p in paths]
