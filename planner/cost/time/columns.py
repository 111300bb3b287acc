"""Columns that all layer prices share: causes, fabrics, groups, token counts."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from planner.cost import meshes as axes
from planner.cost.memory.activations import expert_tokens
from planner.cost.memory.tokens import sequence_split
from planner.cost.meshes import Floats, Groups, Meshes, Number
from planner.cost.network import collectives as wire
from planner.cost.network.collectives import Fabric
from planner.cost.pricing import Pricing
from planner.cost.rows import Rows, rows_of
from planner.hardware.reading.quantities import Column, Seconds
from planner.models.layers.blocks import LayerKind

CAUSES = ("compute", "tp_comm", "cp_comm", "ep_comm", "dp_comm", "recompute", "other")
"""Causes of exposed time inside a layer, in the words of the estimate."""
WAITS = ("launches", "expert_launches", "offload_copies", "mask_copies")
"""Parts of ``other``, each of which is a wait for the host."""


@dataclass(frozen=True)
class Parts:
    """Time by cause; each a column of shape (meshes,). [s]."""

    by_cause: dict[str, Floats] = field(default_factory=dict)
    waits: dict[str, Floats] = field(default_factory=dict)
    """Parts of ``other``, which holds their sum."""

    def plus(self, cause: str, time: Column[Seconds]) -> "Parts":
        """Add time under one cause.

        Args:
            cause: One of ``CAUSES`` or of ``WAITS``. [text]
        """
        waits = self.waits
        if cause in WAITS:
            waits, cause = _added(waits, cause, time), "other"
        assert cause in CAUSES
        return Parts(_added(self.by_cause, cause, time), waits)

    def joined(self, others: "Parts", times: float) -> "Parts":
        """Add other parts several times.

        Args:
            others: Parts. [s]
        """
        by_cause, waits = self.by_cause, self.waits
        for cause, time in others.by_cause.items():
            by_cause = _added(by_cause, cause, times * time)
        for cause, time in others.waits.items():
            waits = _added(waits, cause, times * time)
        return Parts(by_cause, waits)

    @property
    def total(self) -> Column[Seconds]:
        """Sum over the causes. [s], shape (meshes,)."""
        total: Floats = np.sum(list(self.by_cause.values()), axis=0)
        return total


def _added(times: dict[str, Floats], cause: str, time: Floats) -> dict[str, Floats]:
    return {**times, cause: times.get(cause, 0.0) + time}


@dataclass(frozen=True)
class Context:
    """Columns that every layer kind shares: fabrics, groups, token counts."""

    pricing: Pricing
    meshes: Meshes
    links: Fabric
    tensor: Groups
    ulysses: Groups
    """Context ranks that deal heads out."""
    ring: Groups
    """Context ranks that see each other's keys."""
    expert: Groups
    expert_tensor: Groups
    is_longest: bool = False
    """True where rows are those of the longest micro-batch, which memory holds."""
    known: dict[LayerKind, Any] = field(init=False, default_factory=dict)
    """Work of each layer, which all kinds of recompute share."""

    @classmethod
    def of(cls, pricing: Pricing, meshes: Meshes) -> "Context":
        """Look up groups and rates once for all layer kinds."""
        topology = pricing.topology
        return cls(
            pricing,
            meshes,
            wire.fabric(pricing),
            axes.tensor_groups(topology, meshes),
            axes.ulysses_groups(topology, meshes),
            axes.outer_context_groups(topology, meshes),
            axes.expert_groups(topology, meshes),
            axes.expert_tensor_groups(topology, meshes),
        )

    @cached_property
    def rows(self) -> Rows:
        """Rows that set the time of a micro-batch, or its memory."""
        if self.is_longest:
            return Rows(self.pricing.training.longest_row, self.pricing.training.span)
        return rows_of(self.pricing, self.meshes)

    @property
    def longest(self) -> "Context":
        """Columns of the longest micro-batch of a run."""
        return self if self.is_longest else replace(self, is_longest=True)

    @property
    def local(self) -> Floats:
        """Tokens of a micro-batch before tensor splits. [token]."""
        return self.meshes.micro_batch * self.rows.tokens / self.meshes.cp

    @property
    def routed(self) -> Floats:
        """Tokens that a rank's experts see per copy, on the busiest rank. [token]."""
        return expert_tokens(self.pricing, self.meshes, local=self.local)

    def by_span(self, amount: Callable[[float], float]) -> Number:
        """An amount that depends on how many tokens attend to each other.

        Args:
            amount: The amount at a number of tokens. [any]

        Returns:
            The amount, one number where all micro-batches are alike. [any]
        """
        span = self.rows.span
        if not isinstance(span, np.ndarray):
            return amount(span)
        spans, at = np.unique(span, return_inverse=True)
        return np.array([amount(float(number)) for number in spans])[at]

    @property
    def sigma(self) -> Floats:
        """Share of the tokens outside tensor regions. [1]."""
        return sequence_split(self.meshes)
