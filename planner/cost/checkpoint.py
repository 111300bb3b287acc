"""Sizes of a checkpoint: in total, and of the rank that writes most."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.cost.adapters import adapter_parameters
from planner.cost.layouts import counts_of, recompute_kinds
from planner.cost.meshes import Meshes
from planner.cost.owned import Owned, embedding_owned, head_owned, layer_owned
from planner.cost.states import moment_bytes
from planner.cost.workload import Workload
from planner.specs.layout import Layout
from planner.specs.memory import Checkpoint

GIB = 2.0**30
_NOTHING = np.zeros(1)
_INNER = Owned(_NOTHING, _NOTHING)
_OUTER = Owned(_NOTHING, _NOTHING, matrices=False)


@dataclass(frozen=True)
class Saved:
    """Bytes that a checkpoint holds of one trained parameter. [B]."""

    weights: float
    optimizer: float

    @property
    def total(self) -> float:
        """Both. [B]."""
        return self.weights + self.optimizer


def saved_bytes_per_parameter(workload: Workload, *, inner: bool = True) -> Saved:
    """Bytes that a framework saves of a parameter: its weight, master, moments.

    What it keeps at its highest ZeRO stage, where no second copy is held to compute
    with; gradients are not saved. Megatron-Core 2 + 12, FSDP2 4 + 8.

    Args:
        workload: The job: recipe and optimizer. [-]
        inner: Of a layer; else of embedding and head, which Muon leaves to Adam. [-]

    Returns:
        Memory. [B]

    References:
        Megatron-LM docs/user-guide/features/dist_optimizer.md; PyTorch distributed
        checkpoint of FSDP2's fp32 shards.
    """
    recipe = workload.recipe
    entry = recipe.states[max(recipe.states)]
    moments = moment_bytes(workload, _INNER if inner else _OUTER)
    return Saved(
        weights=entry.weights + entry.sharded_weights,
        optimizer=entry.optimizer + entry.sharded_optimizer + moments,
    )


def checkpoint(workload: Workload, layout: Layout) -> Checkpoint:
    """Size of one checkpoint of a job under a layout.

    Every parameter is saved once: ``sum of P (weight + master + moments)``; of
    frozen models the adapters alone. A rank writes its own part: weights once for
    each shard group's first rank, or divided under ZeRO-3, the optimizer's states
    divided from ZeRO-1 on.

    Args:
        workload: The job. [-]
        layout: A complete layout. [-]

    Returns:
        Sizes. [GiB]

    Leaves out the state of data loaders and of random numbers, and rows by which a
    vocabulary is padded, in the total.
    """
    inner, outer = _parameters(workload)
    each = saved_bytes_per_parameter(workload)
    ends = saved_bytes_per_parameter(workload, inner=False)
    weights = inner * each.weights + outer * ends.weights
    optimizer = inner * each.optimizer + outer * ends.optimizer
    total = weights + optimizer
    return Checkpoint(
        weights_gib=weights / GIB,
        optimizer_gib=optimizer / GIB,
        total_gib=total / GIB,
        per_rank_gib=max(_rank_bytes(workload, layout)) / GIB,
        bytes_per_parameter=total / (inner + outer),
        adapters_only=workload.training.frozen,
    )


def _parameters(workload: Workload) -> tuple[float, float]:
    """Trained parameters inside the layers, and outside them. [1]."""
    model = workload.model
    if workload.training.frozen:
        one = Meshes.of_layout(Layout())
        adapters = (
            n * sum(float(part[0]) for part in adapter_parameters(workload, kind, one))
            for kind, n in model.runs
        )
        return sum(adapters), 0.0
    outer = model.outer_parameters
    return float(model.trained_parameters - outer), float(outer)


def _rank_bytes(workload: Workload, layout: Layout) -> Iterator[float]:
    """Bytes that the first data-parallel rank of every stage writes. [B]."""
    meshes, menu = Meshes.of_layout(layout), recompute_kinds(layout)
    layers = counts_of(workload, layout, menu).sum(axis=2)
    units = [
        _unit_bytes(workload, layer_owned(workload, kind, meshes), layout, inner=True)
        for kind in workload.kinds
    ]
    by_stage = layers @ np.array(units)
    for stage, owned in ((0, embedding_owned), (-1, head_owned)):
        end = owned(workload, meshes)
        by_stage[stage] += _unit_bytes(workload, end, layout, inner=False)
    yield from by_stage.reshape(-1, layout.pp).sum(axis=0).tolist()


def _unit_bytes(
    workload: Workload, owned: Owned, layout: Layout, *, inner: bool
) -> float:
    """Bytes that one rank writes of one unit. [B]."""
    each, zero = saved_bytes_per_parameter(workload, inner=inner), layout.zero_stage
    copies = Meshes.of_layout(layout)
    total = 0.0
    for held, shard in (
        (owned.dense, copies.dp_shard),
        (owned.expert, copies.expert_shard),
    ):
        count, ranks = float(np.asarray(held)[0]), float(shard[0])
        total += count * each.weights / (ranks if zero == 3 else 1.0)
        total += count * each.optimizer / (ranks if zero > 0 else 1.0)
    return total
