"""Bytes that a node keeps for its GPUs in host memory and on drives."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.cost.estimate.footprint import GIB, stage_memories
from planner.cost.memory.masks import built_bytes
from planner.cost.meshes import Floats, Meshes
from planner.cost.parameters.rank_parameters import (
    Owned,
    embedding_owned,
    head_owned,
    layer_owned,
)
from planner.cost.parameters.states import States, state_bytes
from planner.cost.pipeline.splits import Counts, stages_by_rank
from planner.cost.pricing import Pricing
from planner.cost.table.table import CostTable, fill_table
from planner.hardware.host import staging
from planner.hardware.reading.quantities import Bytes, Column
from planner.specs.answer.estimate import HostMemory, MemoryEstimate
from planner.specs.layouts.layout import Layout, Offload
from planner.specs.table import StageCosts

SINGLE, HALF = 4, 2
"""Bytes of an fp32 and of a 16-bit number. [B]"""


def host_memory(
    table: CostTable, costs: StageCosts, counts: Counts, layout: Layout
) -> HostMemory | None:
    """Memory that the fullest node needs for what its GPUs do not keep.

    The node's ranks add offloaded states, activations at their peak, moments of a
    paged optimizer, pinned buffers before NVMe, and dense masks that loaders make.

    Returns:
        Memory needed and available, or none where all stays on the GPUs. [GiB]

    References:
        Ren et al. 2021, arXiv 2101.06840, section 4: master copy, moments and
        gradients of a shard on its host; Rajbhandari et al. 2021, arXiv 2104.07857.

    Leaves out the operating system, the processes and their data loaders. Leaves out
    that PyTorch rounds pinned allocations up to powers of two.
    """
    pricing = table.pricing
    home = pricing.offload.model_copy(update={"device": "cpu"}) == Offload()
    masks = pricing.profile.loads_masks
    if home and not pricing.training.paged and not masks:
        return None
    memory, drives = _ranks_states(table, costs, counts)
    if pricing.offload.activations:
        memory = memory + _ranks_activations(table, costs, counts)
    memory[[0, -1]] += built_bytes(pricing, table.meshes)
    node = pricing.topology.cluster.node
    holds = _stages_of_ranks(layout)
    return HostMemory(
        needed_gib=_fullest(memory[holds], node.gpus_per_node) / GIB,
        available_gib=_gib(node.host_memory),
        nvme_needed_gib=_fullest(drives[holds], node.gpus_per_node) / GIB,
        nvme_available_gib=_gib(node.nvme_capacity),
    )


def host_assumptions(table: CostTable, memory: MemoryEstimate) -> tuple[str, ...]:
    """List what the host's share of an estimate rests on, in words."""
    pricing, needed = table.pricing, memory.host
    if needed is None:
        return ()
    node = pricing.topology.cluster.node
    notes = []
    if needed.available_gib is None:
        notes.append(
            f"host memory of {node.name} is not known; a node needs "
            f"{needed.needed_gib:,.0f} GiB beside its system and processes"
        )
    if needed.nvme_needed_gib and node.nvme_drives is None:
        notes.append(f"one NVMe drive is assumed in each {node.name}")
    if pricing.training.paged:
        notes.append(
            "paged moments lie in host memory and cross its link twice a step; the GPU "
            "holds one tensor's at a time, after the activations are gone"
        )
    return tuple(notes)


def _gib(size: float | None) -> float | None:
    """Bytes in GiB, where known."""
    return None if size is None else size / GIB


def _fullest(ranks: Floats, gpus_per_node: int) -> float:
    """Sum over the ranks of a node, on the node with most. [B]."""
    missing = -len(ranks) % gpus_per_node
    nodes = np.append(ranks, np.zeros(missing)).reshape(-1, gpus_per_node)
    return float(nodes.sum(axis=1).max())


def _stages_of_ranks(layout: Layout) -> npt.NDArray[np.int64]:
    """Pipeline rank of every rank. [1], shape (ranks,)."""
    ranks = np.arange(layout.gpus)
    outer = layout.order == "tp-cp-ep-dp-pp"
    inside = layout.tp * layout.cp * (layout.dp if outer else 1)
    return ranks // inside % layout.pp


def at_home(pricing: Pricing) -> Pricing:
    """Job with everything on its GPUs."""
    plain = pricing.training.optimizer.removeprefix("paged-")
    training = pricing.training.model_copy(update={"optimizer": plain})
    return replace(pricing, offload=Offload(), training=training)


def _ranks_states(
    table: CostTable, costs: StageCosts, counts: Counts
) -> tuple[Floats, Floats]:
    """States of every pipeline rank in host memory, on drives. [B], shape (pp,)."""
    pricing, meshes = table.pricing, table.meshes
    layers = np.array(
        [_away(pricing, layer_owned(pricing, k, meshes), meshes) for k in pricing.kinds]
    )
    by_stage = counts.sum(axis=2) @ layers
    by_stage[0] += _away(pricing, embedding_owned(pricing, meshes), meshes)
    by_stage[-1] += _away(pricing, head_owned(pricing, meshes), meshes)
    by_rank: Floats = by_stage[stages_by_rank(costs)].sum(axis=1)
    if pricing.offload.device == "nvme":
        by_rank[:, 0] += _buffers(table, costs, counts)
    return by_rank[:, 0], by_rank[:, 1]


def _away(pricing: Pricing, owned: Owned, meshes: Meshes) -> tuple[float, float]:
    """States of a unit that its rank keeps in host memory, and on drives. [B]."""
    home = state_bytes(at_home(pricing), owned, meshes)
    here = state_bytes(pricing, owned, meshes)
    weights, gradients, optimizer = (
        float((getattr(home, name) - getattr(here, name))[0])
        for name in States.__dataclass_fields__
    )
    if pricing.offload.device == "cpu":
        return weights + gradients + optimizer, 0.0
    paged = optimizer if pricing.training.paged else 0.0
    return gradients + paged, weights + optimizer - paged


def _buffers(table: CostTable, costs: StageCosts, counts: Counts) -> Floats:
    """Pinned buffers of every pipeline rank before NVMe. [B], shape (pp,)."""
    pricing, meshes, sizes = table.pricing, table.meshes, staging()
    by_rank = np.array(
        [
            float((o.dense / meshes.dp_shard + o.expert / meshes.expert_shard)[0])
            for o in (layer_owned(pricing, k, meshes) for k in pricing.kinds)
        ]
    )
    shard = (counts.sum(axis=2) @ by_rank)[stages_by_rank(costs)].sum(axis=1)
    total = np.zeros(costs.pp)
    if pricing.offload.optimizer:
        states = np.minimum(shard, sizes.optimizer_parameters)
        total = total + SINGLE * sizes.optimizer_buffers * states
    if pricing.offload.parameters:
        total = total + HALF * sizes.parameter_buffers * sizes.parameters
    return total


def _ranks_activations(
    table: CostTable, costs: StageCosts, counts: Counts
) -> Column[Bytes]:
    """Offloaded activations of every pipeline rank at its peak. [B], shape (pp,)."""
    share = table.pricing.offload.activations
    kept = table.pricing.offload.model_copy(update={"activations": 0.0})
    here = replace(table.pricing, offload=kept)
    full = fill_table(here, table.meshes, table.menu)
    inner = full.stage_costs(
        0, schedule=costs.schedule, vpp=costs.vpp, menu=tuple(range(len(costs.menu)))
    )
    stages = stage_memories(full, inner, counts)
    return share * GIB * np.array([stage.activations for stage in stages])
