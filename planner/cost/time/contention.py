"""Compute lost to collectives that run beside it."""

import numpy as np

from planner.cost.meshes import Floats
from planner.cost.parameters.data_groups import DataGroups
from planner.cost.parameters.quantised import gather_width
from planner.cost.parameters.rank_parameters import Owned
from planner.cost.pricing import Pricing
from planner.hardware.reading.quantities import Bytes, Column, Seconds

BUSY_RATE = 150e9
"""Rate of a rank's collective from which it takes all the compute it can. [B/s]

Source: FSDP1 on nodes of 8 at 50 and 100 Gb/s a GPU (fms-fsdp in
``benchmarks/accuracy/rows``), which this number was fitted to; over NVLink and at
200 Gb/s a GPU eight ranks move 200 to 400 GB/s, and take all.
"""


def lost_share(pricing: Pricing, sent: Column[Bytes], moved: Column[Seconds]) -> Floats:
    """Compute lost per second of collectives that run beside it.

    ``kappa min(1, B / (T v))``: B bytes in T seconds keep the multiprocessors of a
    collective busy where they leave at the rate v at least. A slower link gets fewer
    channels, and fewer bytes pass through the memory.
    """
    full = BUSY_RATE * np.maximum(moved, np.finfo(float).tiny)
    share: Floats = pricing.profile.overlap_contention * np.minimum(sent, full) / full
    return share


def contention(
    data: DataGroups,
    owned: Owned,
    moved: Column[Seconds],
    *,
    gathers: float | Floats = 1.0,
    reduces: float | Floats = 1.0,
) -> Floats:
    """Compute lost per second of a unit's collectives that run beside it."""
    pricing = data.pricing
    width = gather_width(pricing, linears=owned.matrices)
    trained = owned.dense + owned.expert
    parameters = trained + owned.frozen + owned.frozen_expert
    reduced = pricing.recipe.gradient_bytes * trained
    sent = gathers * width * parameters + reduces * reduced
    return lost_share(pricing, sent, moved)
