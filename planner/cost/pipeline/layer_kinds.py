"""Layers of every kind on every virtual stage of a split."""

from collections.abc import Sequence

import numpy as np

from planner.cost.pipeline.splits import Counts


def kinds_per_stage(
    runs: Sequence[tuple[int, int]], kinds: int, layers: Sequence[int]
) -> Counts:
    """Layers of every kind on every virtual stage.

    Args:
        runs: (kind, count) in model order. [1]
        layers: Layers of every virtual stage. [1], shape (stages,)

    Returns:
        Counts. [1], shape (stages, kinds)
    """
    of_layer = np.repeat([kind for kind, _ in runs], [count for _, count in runs])
    owner = np.repeat(np.arange(len(layers)), layers)
    counts = np.zeros((len(layers), kinds), dtype=np.int64)
    np.add.at(counts, (owner, of_layer), 1)
    return counts
