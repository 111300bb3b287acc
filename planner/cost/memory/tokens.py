"""Tokens of a rank's micro-batch, and the share outside tensor-parallel regions."""

import numpy as np

from planner.cost.meshes import Floats, Meshes
from planner.cost.workload import Workload


def tokens(workload: Workload, meshes: Meshes) -> Floats:
    """Tokens of the longest micro-batch of a rank before tensor splits, ``b s / c``.

    Returns:
        Tokens. [token], shape (meshes,)
    """
    return meshes.micro_batch * workload.training.longest_row / meshes.cp


def sequence_split(meshes: Meshes) -> Floats:
    """Share of the tokens outside tensor-parallel regions: 1/t with sp, else 1."""
    return np.where(meshes.sp > 0, 1.0 / meshes.tp, 1.0)
