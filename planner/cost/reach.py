"""Layers that can lie on each virtual stage, from the declared class alone."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from planner.specs.table import StageCosts

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Reach:
    """A superset of the splits of one class, kind by kind."""

    totals: Ints
    """Layers of each kind. [1], shape (kinds,)"""
    mask: Mask
    """True where some split puts the kind on the stage. shape (stages, kinds)"""
    low: Ints
    """Fewest layers of a kind where no other reaches. [1], shape (stages, kinds)"""
    places: Ints
    """Most layers above the fewest. [1], shape (stages, kinds)"""


def reach_of(costs: StageCosts) -> Reach:
    """Layers that the declared class lets each stage hold.

    Before stage i lie at least ``sum of fewest`` and at most ``min(i most,
    L - sum of fewest from i on)`` layers, and layers stay in order. Layer x
    on stage i is thus at least the first number of i, and below the second of i + 1.
    """
    return _reach(costs.runs, costs.fewest, costs.most_layers)


@lru_cache(maxsize=1024)
def _reach(runs: tuple[tuple[int, int], ...], low: tuple[int, ...], most: int) -> Reach:
    layers = sum(count for _, count in runs)
    stages = np.arange(len(low))
    fewest = np.concatenate([[0], np.cumsum(low)])
    earliest = fewest[:-1]
    latest = np.minimum((stages + 1) * most, layers - (fewest[-1] - fewest[1:]))
    kinds = 1 + max(kind for kind, _ in runs)
    mask = np.zeros((len(low), kinds), dtype=bool)
    totals = np.zeros(kinds, dtype=np.int64)
    start = 0
    for kind, count in runs:
        mask[:, kind] |= (earliest < start + count) & (latest > start)
        totals[kind] += count
        start += count
    alone = mask & (mask.sum(axis=1) == 1)[:, None]
    floor = np.where(alone, np.array(low)[:, None], 0)
    return Reach(totals, mask, floor, np.where(mask, most, 0) - floor)
