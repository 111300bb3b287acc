"""Memory of every rank at its peak, by category."""

import numpy as np

from planner.cost.meshes import Floats
from planner.cost.owned import embedding_owned, head_owned, layer_owned
from planner.cost.pipeline import (
    Counts,
    StageVectors,
    peak_blocks,
    peak_vectors,
    stage_vectors,
)
from planner.cost.room import (
    buffer_bytes,
    communication_bytes,
    context_bytes,
    device_bytes,
    root_bytes,
)
from planner.cost.states import States, state_bytes
from planner.cost.table import CostTable
from planner.schedules.inflight import Peak
from planner.specs.estimate import StageMemory
from planner.specs.table import BLOCK, StageCosts

GIB = 2**30


def stage_memories(
    table: CostTable, costs: StageCosts, counts: Counts
) -> tuple[StageMemory, ...]:
    """Break the peak of every pipeline rank down.

    Args:
        table: Table of the layout's one mesh.
        costs: Its inner problem.
        counts: Layers by stage, kind and menu entry. [1]

    Returns:
        One entry per pipeline rank. [GiB], shape (pp,)
    """
    vectors = stage_vectors(costs, counts)
    states = _states_by_rank(table, costs, counts)
    moments = peak_vectors(costs.schedule, costs.pp, costs.vpp, costs.micro_batches)
    return tuple(
        _rank_memory(table, costs, vectors, rank, moments[rank], states)
        for rank in range(costs.pp)
    )


def _states_by_rank(
    table: CostTable, costs: StageCosts, counts: Counts
) -> dict[str, Floats]:
    """Weights, gradients and optimizer states of every rank. [B], shape (pp,)."""
    workload, meshes = table.workload, table.meshes
    per_kind: list[States] = [
        state_bytes(workload, layer_owned(workload, kind, meshes), meshes)
        for kind in workload.kinds
    ]
    ends = [
        state_bytes(workload, owned(workload, meshes), meshes)
        for owned in (embedding_owned, head_owned)
    ]
    layers = counts.sum(axis=2)
    totals: dict[str, Floats] = {}
    for name in ("weights", "gradients", "optimizer"):
        each = np.array([getattr(states, name)[0] for states in per_kind])
        by_stage = layers @ each
        by_stage[0] += getattr(ends[0], name)[0]
        by_stage[-1] += getattr(ends[1], name)[0]
        if name == "weights":
            first, last = root_bytes(workload, meshes)
            by_stage[0] += first[0]
            by_stage[-1] += last[0]
        totals[name] = by_stage.reshape(costs.vpp, costs.pp).sum(axis=0)
    return totals


def _rank_memory(
    table: CostTable,
    costs: StageCosts,
    vectors: StageVectors,
    rank: int,
    moments: tuple[Peak, ...],
    states: dict[str, Floats],
) -> StageMemory:
    """Categories of one rank at its fullest moment. [GiB]."""
    workload, meshes = table.workload, table.meshes
    peak = max(moments, key=lambda moment: peak_blocks(costs, vectors, rank, moment))
    at = peak.chunk * costs.pp + rank
    total = peak_blocks(costs, vectors, rank, peak)
    passing = int(vectors.transient[at] + vectors.accumulated[at])
    buffers = float(buffer_bytes(workload, meshes)[0])
    transient = passing * BLOCK + buffers
    activations = float((total - passing) * BLOCK)
    held = {name: float(values[rank]) for name, values in states.items()}
    allocated = sum(held.values()) + activations + transient
    communication = float(communication_bytes(workload, meshes)[0])
    fixed = communication + context_bytes(workload)
    spread = device_bytes(workload, allocated, fixed) - allocated - fixed
    loss = at == costs.stages - 1 and vectors.transient[at] == costs.head.transient
    return StageMemory(
        stage=rank,
        moment="loss backward" if loss else "steady",
        **{name: value / GIB for name, value in held.items()},
        activations=activations / GIB,
        transient=transient / GIB,
        communication=communication / GIB,
        fragmentation=spread / GIB,
        context=context_bytes(workload) / GIB,
    )
