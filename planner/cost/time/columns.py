"""Columns that all layer prices share: causes, fabrics, groups, token counts."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from planner.cost import meshes as axes
from planner.cost.memory.activations import sequence_split, tokens
from planner.cost.meshes import Floats, Groups, Meshes
from planner.cost.network import collectives as wire
from planner.cost.network.collectives import Fabric
from planner.cost.pricing import Pricing
from planner.models.layers.blocks import LayerKind

CAUSES = ("compute", "tp_comm", "cp_comm", "ep_comm", "dp_comm", "recompute", "other")
"""Causes of exposed time inside a layer, in the words of the estimate."""


@dataclass(frozen=True)
class Parts:
    """Time by cause; each a column of shape (meshes,). [s]."""

    by_cause: dict[str, Floats] = field(default_factory=dict)

    def plus(self, cause: str, time: Floats) -> "Parts":
        """Add time under one cause.

        Args:
            cause: One of ``CAUSES``. [text]
            time: Exposed time. [s], shape (meshes,)

        Returns:
            New parts.
        """
        assert cause in CAUSES
        return Parts({**self.by_cause, cause: self.by_cause.get(cause, 0.0) + time})

    @property
    def total(self) -> Floats:
        """Sum over the causes. [s], shape (meshes,)."""
        total: Floats = np.sum(list(self.by_cause.values()), axis=0)
        return total


@dataclass(frozen=True)
class Context:
    """Columns that every layer kind shares: fabrics, groups, token counts."""

    workload: Pricing
    meshes: Meshes
    links: Fabric
    tensor: Groups
    ulysses: Groups
    """Context ranks that deal heads out."""
    ring: Groups
    """Context ranks that see each other's keys."""
    expert: Groups
    expert_tensor: Groups
    known: dict[LayerKind, Any] = field(init=False, default_factory=dict)
    """Work of each layer, which all kinds of recompute share."""

    @classmethod
    def of(cls, workload: Pricing, meshes: Meshes) -> "Context":
        """Look up groups and rates once for all layer kinds.

        Args:
            workload: The job.
            meshes: Any meshes.

        Returns:
            The shared context.
        """
        topology = workload.topology
        return cls(
            workload,
            meshes,
            wire.fabric(workload),
            axes.tensor_groups(topology, meshes),
            axes.ulysses_groups(topology, meshes),
            axes.outer_context_groups(topology, meshes),
            axes.expert_groups(topology, meshes),
            axes.expert_tensor_groups(topology, meshes),
        )

    @property
    def local(self) -> Floats:
        """Tokens of a micro-batch before tensor splits. [token]."""
        return tokens(self.workload, self.meshes)

    @property
    def sigma(self) -> Floats:
        """Share of the tokens outside tensor regions. [1]."""
        return sequence_split(self.meshes)
