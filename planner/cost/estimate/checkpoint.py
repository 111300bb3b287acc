"""Sizes of a checkpoint: in total, and of the rank that writes most."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from planner.cost.estimate.layouts import counts_of, recompute_kinds
from planner.cost.meshes import Meshes
from planner.cost.parameters.rank_parameters import (
    Owned,
    embedding_owned,
    head_owned,
    layer_owned,
)
from planner.cost.parameters.states import (
    held_bytes,
    reference_bytes,
    state_bytes,
    unsaved_bytes,
)
from planner.cost.pricing import Pricing
from planner.specs.answer.memory import Checkpoint
from planner.specs.layouts.layout import Layout, Offload

GIB = 2.0**30


@dataclass(frozen=True)
class Saved:
    """Sizes of some trained parameters in a checkpoint."""

    parameters: float
    """Number of the parameters. [1]"""
    weights: float
    """Bytes as the framework keeps weights, without a copy to compute with. [B]"""
    optimizer: float
    """Master copy and moments. [B]"""

    def __add__(self, other: "Saved") -> "Saved":
        return Saved(
            self.parameters + other.parameters,
            self.weights + other.weights,
            self.optimizer + other.optimizer,
        )

    def __rmul__(self, times: float) -> "Saved":
        return Saved(
            times * self.parameters, times * self.weights, times * self.optimizer
        )

    @property
    def total(self) -> float:
        """Weights and optimizer. [B]."""
        return self.weights + self.optimizer


def saved_bytes(pricing: Pricing, zero_stage: int) -> Saved:
    """Bytes that a framework saves of a model: weights, master copies, moments.

    Trained parameters as one rank alone would hold them at a ZeRO stage, without a
    second copy to compute with. Gradients are not saved, in whatever format. With
    Adam, Megatron-Core saves 2 + 12 bytes a parameter and FSDP2 4 + 8. DDP around a
    model that was loaded in bf16 saves 2 + 4.

    Returns:
        Bytes and parameters; of a frozen model, its adapters alone. [B]

    References:
        Megatron-LM docs/user-guide/features/dist_optimizer.md; PyTorch distributed
        checkpoint of FSDP2's fp32 shards.
    """
    alone = _alone(zero_stage)
    total = _unit(pricing, embedding_owned(pricing, alone), alone)
    total += _unit(pricing, head_owned(pricing, alone), alone)
    for kind, count in pricing.model.runs:
        total += count * _unit(pricing, layer_owned(pricing, kind, alone), alone)
    return total


def _alone(zero_stage: int) -> Meshes:
    """Mesh of one rank with everything, under the rules of a ZeRO stage."""
    return Meshes.of_layout(Layout(zero_stage=zero_stage, grad_accum=2))


def _unit(pricing: Pricing, owned: Owned, alone: Meshes) -> Saved:
    """Bytes that a framework saves of a unit: weights, master copies, moments. [B]."""
    here = replace(pricing, offload=Offload())
    states, unsaved = state_bytes(here, owned, alone), unsaved_bytes(here, alone)
    parameters = np.asarray(owned.dense + owned.expert)
    unsaved_weights = held_bytes(here, owned, alone) + reference_bytes(
        here, owned, alone
    )
    weights = states.weights - unsaved_weights
    weights = weights - parameters * unsaved.weights
    optimizer = states.optimizer - parameters * unsaved.optimizer
    return Saved(*(float(np.asarray(x)[0]) for x in (parameters, weights, optimizer)))


def checkpoint(pricing: Pricing, layout: Layout) -> Checkpoint:
    """Size of one checkpoint of a job under a layout. [GiB].

    Every trained parameter is saved once: ``sum of P (weight + master + moments)``.
    A rank writes its own part. The first rank of each shard group writes weights that
    the framework keeps whole; else every rank writes its shard. Optimizer states are
    written as they are divided, from ZeRO-1 on.

    Leaves out the states of data loaders and random numbers, and the frozen model
    under adapters, which nobody saves again.
    """
    saved = saved_bytes(pricing, layout.zero_stage)
    return Checkpoint(
        weights_gib=saved.weights / GIB,
        optimizer_gib=saved.optimizer / GIB,
        total_gib=saved.total / GIB,
        per_rank_gib=max(_rank_bytes(pricing, layout)) / GIB,
        bytes_per_parameter=saved.total / max(saved.parameters, 1.0),
        adapters_only=pricing.training.frozen,
    )


def _rank_bytes(pricing: Pricing, layout: Layout) -> Iterator[float]:
    """Bytes that the first data-parallel rank of every stage writes. [B]."""
    meshes, menu = Meshes.of_layout(layout), recompute_kinds(layout)
    layers = counts_of(pricing, layout, menu).sum(axis=2)
    units = [
        _written(pricing, layer_owned(pricing, kind, meshes), layout)
        for kind in pricing.kinds
    ]
    by_stage = layers @ np.array(units)
    for stage, owned in ((0, embedding_owned), (-1, head_owned)):
        by_stage[stage] += _written(pricing, owned(pricing, meshes), layout)
    yield from by_stage.reshape(-1, layout.pp).sum(axis=0).tolist()


def _written(pricing: Pricing, owned: Owned, layout: Layout) -> float:
    """Bytes that one rank writes of one unit. [B]."""
    meshes = Meshes.of_layout(layout)
    saved = _unit(pricing, owned, _alone(layout.zero_stage))
    divided = pricing.recipe.states[layout.zero_stage].sharded_weights > 0
    dense, expert = (float(np.asarray(n)[0]) for n in (owned.dense, owned.expert))
    total = 0.0
    for count, shard in ((dense, meshes.dp_shard), (expert, meshes.expert_shard)):
        share, ranks = count / max(dense + expert, 1.0), float(shard[0])
        total += share * saved.weights / (ranks if divided else 1.0)
        total += share * saved.optimizer / (ranks if layout.zero_stage else 1.0)
    return total
