"""Durations of many splits at once: linear in the layer counts."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.cost.pipeline.splits import (
    Counts,
    durations,
    stage_vectors,
    stages_by_rank,
)
from planner.specs.table import StageCosts

Points = npt.NDArray[np.float64] | Counts
"""Layers by case, stage, kind and menu entry; whole or not. [1]"""


@dataclass(frozen=True)
class DurationLines:
    """``x = fixed + sum over (kind, menu) of slopes * layers of the slot's stage``.

    The slot of an optimizer takes the layers of all its rank's stages: a layer costs
    as much on each.
    """

    costs: StageCosts
    fixed: Counts
    """Durations of empty stages. [ns], shape (slots,)"""
    slopes: Counts
    """Durations that one layer adds. [ns], shape (kinds, menu, slots)"""

    @classmethod
    def of(cls, costs: StageCosts) -> "DurationLines":
        """Read the lines off splits of no layer, and of a layer on every stage."""
        kinds, menu = len(costs.layers), len(costs.menu)
        none = np.zeros((costs.stages, kinds, menu), dtype=np.int64)
        fixed = _durations(costs, none)
        slopes = np.zeros((kinds, menu, len(fixed)), dtype=np.int64)
        for kind, entry in np.ndindex(kinds, menu):
            unit = none.copy()
            unit[:, kind, entry] = 1
            slopes[kind, entry] = _durations(costs, unit) - fixed
        slopes[:, :, 7 * costs.stages * costs.copies :] //= costs.vpp
        return cls(costs, fixed, slopes)

    def at(self, points: Points) -> Counts:
        """Durations at several splits, exactly ``durations`` at whole layer counts.

        Args:
            points: Layers, whole or not. [1], shape (cases, stages, kinds, menu)

        Returns:
            Durations, rounded to whole ns. [ns], shape (slots, cases)
        """
        by_stage = np.tile(points, (1, 7 * self.costs.copies, 1, 1))
        by_rank = points[:, stages_by_rank(self.costs)].sum(axis=2)
        nothing = np.zeros_like(points[:, :1])
        layers = np.concatenate([by_stage, by_rank, nothing], axis=1)
        assert layers.shape[1] == len(self.fixed)
        x = np.einsum("cskm,kms->sc", layers, self.slopes)
        rounded: Counts = np.rint(x).astype(np.int64) if x.dtype == float else x
        return rounded + self.fixed[:, None]


def _durations(costs: StageCosts, counts: Counts) -> Counts:
    return np.array(durations(costs, stage_vectors(costs, counts)), dtype=np.int64)
