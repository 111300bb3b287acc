"""Picks the costs of each stage on the pool of a mixed fleet that hosts it."""

from collections.abc import Sequence
from dataclasses import fields
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from planner.schedules.placement import placement
from planner.specs.table import StageCosts

Ints = npt.NDArray[np.int64]
Columns = TypeVar("Columns")
"""A dataclass of columns of shape (stages,)."""


def pool_of_stage(costs: StageCosts) -> Ints:
    """Pool that hosts each virtual stage, for costs of several pools.

    Returns:
        Entries of ``hosts``. [1], shape (stages,)
    """
    place = placement(costs.schedule, costs.pp, costs.vpp)
    ranks = [place.rank(stage) for stage in range(costs.stages)]
    return np.array(costs.pool_of_rank)[ranks]


def pick_stages(costs: StageCosts, pools: Sequence[Columns]) -> Columns:
    """Pick the columns of every virtual stage on its own pool.

    Returns:
        Columns of the same names. shape (stages,)
    """
    pool, stages = pool_of_stage(costs), np.arange(costs.stages)
    kind = type(pools[0])
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(
        **{
            n: np.array([getattr(columns, n) for columns in pools])[pool, stages]
            for n in names
        }
    )
