"""Terms of the memory of the fullest rank, by category and kind of layer."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.cost.estimate.estimate import GIB, memory_estimate
from planner.cost.estimate.pricing import Priced
from planner.cost.memory.buffers import root_bytes
from planner.cost.parameters.rank_parameters import (
    Owned,
    embedding_owned,
    head_owned,
    layer_owned,
)
from planner.cost.parameters.states import state_bytes
from planner.cost.pipeline.splits import stages_of
from planner.cost.table.table import CostTable
from planner.cost.why.activations import activation_terms
from planner.cost.why.facts import in_force
from planner.cost.why.terms import Term
from planner.specs.answer.estimate import StageMemory

STATES = ("weights", "gradients", "optimizer")
"""Categories that are parameters times bytes. [text]"""
PARTS = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer_states": "optimizer states",
    "activations": "activations",
    "transient": "transient memory of the unit at work, and buffers",
    "communication": "communicators",
    "fragmentation": "cache of the allocator beside the tensors",
    "context": "CUDA context and workspaces",
}
"""Part of the memory, by the name that is asked for, to its title. [text]"""
FORMULAS = {
    "activations": "micro-batches in flight x bytes that their layers keep",
    "transient": "largest unit at work + gradients that wait + buffers",
    "communication": "buffers of each communicator, or communicator_gb for each",
    "fragmentation": "reserved - allocated: a simulated cache, or "
    "allocated / fragmentation, up to the capacity",
    "context": "context_gb",
}
"""Part that is a leaf to its formula. [text]"""
SWITCHES = {
    "activations": ("norm_input_bytes", "activation_bytes", "gathered_inputs"),
    "communication": ("communicator_gb",),
    "fragmentation": ("fragmentation", "allocator", "reserved_factor", "packing"),
    "context": ("context_gb",),
}
"""Part to the constants of the stack that move it. [text]"""


@dataclass(frozen=True)
class MemoryTerms:
    """Terms of the device memory of the fullest rank of one priced layout."""

    priced: Priced

    @property
    def whole(self) -> Term:
        """Memory of the fullest rank, by category. [GiB]."""
        rank = self._fullest
        title = (
            f"memory of pipeline rank {rank.stage} of {self.priced.costs.pp}, "
            f"fullest at: {rank.moment}"
        )
        return Term.of_parts("memory", title, [self.part(name) for name in PARTS])

    def part(self, name: str) -> Term:
        """One category of the memory.

        Args:
            name: A key of ``PARTS``. [text]

        Returns:
            The category. [GiB]
        """
        field = name.removesuffix("_states")
        value = float(getattr(self._fullest, field))
        if field in STATES:
            return self._states(name, field, value)
        pricing = self._table.pricing
        if field == "activations":
            parts = activation_terms(self.priced, self._fullest.stage, value)
            if parts:
                return Term.of_parts(name, PARTS[name], parts)
        return Term(
            name=name,
            title=PARTS[name],
            value=value,
            unit="GiB",
            formula=FORMULAS[field],
            stack=in_force(pricing, *SWITCHES.get(field, ()), "memory_factor"),
        )

    @cached_property
    def _fullest(self) -> StageMemory:
        """The rank whose device memory is the answer."""
        memory = memory_estimate(self.priced)
        peak = memory.peak_device_gib.value
        return min(memory.stages, key=lambda stage: abs(stage.device - peak))

    @property
    def _table(self) -> CostTable:
        return self.priced.table.each[self.priced.costs.pool(self._fullest.stage)]

    def _states(self, name: str, field: str, value: float) -> Term:
        """Parameters times bytes of every kind of layer and end. [GiB]."""
        parts = list(self._units(field))
        rest = value - sum(part.value for part in parts)
        if abs(rest) > 1e-12 * value:
            working = Term(
                name="moment",
                title=f"held beside the states at: {self._fullest.moment}",
                value=rest,
                unit="GiB",
                formula="memory at this moment - states of the units",
            )
            parts.append(working)
        return Term.of_parts(name, PARTS[name], parts)

    def _units(self, field: str) -> Iterator[Term]:
        """States of the rank's layers and ends. [GiB]."""
        pricing, meshes = self._table.pricing, self._table.meshes
        costs, stages = (
            self.priced.costs,
            stages_of(self.priced.costs, self._fullest.stage),
        )
        layers = self.priced.counts[list(stages)].sum(axis=(0, 2))
        for kind, count in zip(pricing.kinds, layers.tolist(), strict=True):
            owned = layer_owned(pricing, kind, meshes)
            yield self._held(f"{count} {kind.name} layers", field, owned).times(count)
        root = root_bytes(pricing, meshes) if field == "weights" else (np.zeros(1),) * 2
        ends = (
            ("embedding", 0, embedding_owned),
            ("head", costs.stages - 1, head_owned),
        )
        for (title, stage, owner), copies in zip(ends, root, strict=True):
            if stage in stages:
                yield self._held(title, field, owner(pricing, meshes))
                yield self._whole(title, float(copies[0]))

    def _held(self, title: str, field: str, owned: Owned) -> Term:
        """One category of the states of one unit. [GiB]."""
        pricing, meshes = self._table.pricing, self._table.meshes
        size = float(getattr(state_bytes(pricing, owned, meshes), field)[0])
        classes = (owned.dense, owned.expert, owned.frozen, owned.frozen_expert)
        parameters = sum(float(np.ravel(row)[0]) for row in classes)
        factor = pricing.profile.memory_factor
        return Term(
            name=title,
            title=title,
            value=size * factor / GIB,
            unit="GiB",
            formula="parameters * bytes * memory_factor / 2**30",
            numbers={
                "parameters": parameters,
                "bytes": size / parameters if parameters else 0.0,
                "memory_factor": factor,
            },
        )

    def _whole(self, title: str, size: float) -> Term:
        """A table that ZeRO-3 leaves whole from forward to backward. [GiB]."""
        factor = self._table.pricing.profile.memory_factor
        return Term(
            name=f"{title}_whole",
            title=f"{title}, left whole from forward to backward",
            value=size * factor / GIB,
            unit="GiB",
            formula="bytes * memory_factor / 2**30",
            numbers={"bytes": size, "memory_factor": factor},
        )
