"""Time that kernels run, by which a step's energy differs from its length."""

from dataclasses import dataclass

import numpy as np

from planner.cost.meshes import Floats, Meshes
from planner.cost.parameters.data_groups import DataGroups
from planner.cost.parameters.rank_parameters import (
    embedding_owned,
    head_owned,
    layer_owned,
)
from planner.cost.pricing import Pricing
from planner.cost.table.table import layer_parts
from planner.cost.time.columns import Context, Parts
from planner.cost.time.ends import embedding_end, head_end
from planner.cost.time.transfers import sharded_parts
from planner.hardware.reading.quantities import Column, Seconds

KERNELS = ("compute", "recompute")
"""Causes of a step in which a GPU computes; in all others it waits. [text]"""


@dataclass(frozen=True)
class KernelTime:
    """Kernels of one micro-batch, forward and backward. [s]."""

    layers: Floats
    """One layer, shape (kinds, menu, meshes)."""
    ends: Floats
    """Embedding and head, shape (meshes,)."""

    @classmethod
    def of(
        cls, pricing: Pricing, meshes: Meshes, menu: tuple[str, ...]
    ) -> "KernelTime":
        """Price the kernels of every mesh, the user's own factor included.

        Returns:
            Time by layer kind and menu entry, and of the ends. [s]
        """
        context = Context.of(pricing, meshes)
        data = DataGroups.of(pricing, meshes, context.links)
        own = pricing.profile.step_factor
        layers = [
            [
                own * kernels(*layer_parts(context, data, kind, owned, name))
                for name in menu
            ]
            for kind in pricing.kinds
            for owned in (layer_owned(pricing, kind, meshes),)
        ]
        ends = [
            own * kernels(*sharded_parts(data, owned, end.forward, end.backward))
            for owned, end in (
                (embedding_owned(pricing, meshes), embedding_end(context)),
                (head_owned(pricing, meshes), head_end(context)),
            )
        ]
        return cls(np.array(layers), np.sum(ends, axis=0))


def kernels(*passes: Parts) -> Column[Seconds]:
    """Time in kernels of some passes.

    Args:
        passes: Time by cause. [s], shape (meshes,)
    """
    times = [
        pass_parts.by_cause[c]
        for pass_parts in passes
        for c in KERNELS
        if c in pass_parts.by_cause
    ]
    total: Floats = np.sum(times, axis=0)
    return total
