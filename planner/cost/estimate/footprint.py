"""Memory of every rank at its peak and at every other moment, by category."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from planner.cost.memory.buffers import (
    buffer_bytes,
    context_bytes,
    device_bytes,
    root_bytes,
)
from planner.cost.memory.cached_bytes import cached_bytes
from planner.cost.memory.communicators import communication_bytes
from planner.cost.memory.memory_moments import (
    BACKWARD,
    LOSS,
    ORDER,
    STEADY,
    Addend,
    Amount,
    Moment,
)
from planner.cost.meshes import Floats
from planner.cost.parameters.rank_parameters import (
    embedding_owned,
    head_owned,
    layer_owned,
)
from planner.cost.parameters.states import States, state_bytes
from planner.cost.pipeline.memory_rows import (
    ACCUMULATED,
    PENDING,
    SAVED,
    MemoryRows,
    passing_rows,
)
from planner.cost.pipeline.splits import Counts, stages_by_rank, stages_of
from planner.cost.pricing import Pricing
from planner.cost.table.table import CostTable
from planner.specs.answer.estimate import MomentMemory, StageMemory
from planner.specs.table import BLOCK, StageCosts

GIB = 2**30
CATEGORIES = ("weights", "gradients", "optimizer", "activations", "transient")
"""Categories that add up to allocated memory. [text]"""
Named = tuple[str, dict[str, float]]
"""A moment and its categories. [B]"""


def stage_memories(
    table: CostTable, costs: StageCosts, counts: Counts
) -> tuple[StageMemory, ...]:
    """Break the peak of every pipeline rank down.

    Returns:
        One entry per pipeline rank. [GiB], shape (pp,)
    """
    if costs.hosts:
        pairs = zip(table.each, costs.hosts, strict=True)
        by_pool = [stage_memories(part, host, counts) for part, host in pairs]
        return tuple(by_pool[costs.pool(rank)][rank] for rank in range(costs.pp))
    states = _states_by_rank(table, costs, counts)
    (passes,) = passing_rows(costs)
    busy: dict[int, list[Named]] = defaultdict(list)
    for rank, named in _busy(passes, costs, counts):
        busy[rank].append(named)
    pricing, meshes = table.pricing, table.meshes
    idle = _idle(table, costs, counts, states)
    around = Beside(
        pricing,
        float(buffer_bytes(pricing, meshes)[0]),
        float(communication_bytes(pricing, meshes)[0]),
        cached_of(table, costs, counts),
    )
    return tuple(
        _rank_memory(around, rank, states, busy[rank], idle[rank])
        for rank in range(costs.pp)
    )


@dataclass(frozen=True)
class Beside:
    """Buffers, communication and cache at every moment of every rank. [B]."""

    pricing: Pricing
    buffers: float
    communication: float
    cached: float | None
    """None where the stack's ratio counts."""


def cached_of(table: CostTable, costs: StageCosts, counts: Counts) -> float | None:
    """Simulated cache of the allocator on a rank.

    Returns:
        Memory; None where the stack's ratio counts. [B]
    """
    used = np.flatnonzero(counts.sum(axis=(0, 1))).tolist()
    kinds = {costs.menu[entry] for entry in used}
    return cached_bytes(table.pricing, table.meshes, kinds)


def _states_by_rank(
    table: CostTable, costs: StageCosts, counts: Counts
) -> dict[str, Floats]:
    """Weights, gradients and optimizer states of every rank. [B], shape (pp,)."""
    pricing, meshes = table.pricing, table.meshes
    per_kind: list[States] = [
        state_bytes(pricing, layer_owned(pricing, kind, meshes), meshes)
        for kind in pricing.kinds
    ]
    ends = [
        state_bytes(pricing, owned(pricing, meshes), meshes)
        for owned in (embedding_owned, head_owned)
    ]
    layers = counts.sum(axis=2)
    totals: dict[str, Floats] = {}
    for name in ("weights", "gradients", "optimizer"):
        by_kind = np.array([getattr(states, name)[0] for states in per_kind])
        by_stage = layers @ by_kind
        by_stage[0] += getattr(ends[0], name)[0]
        by_stage[-1] += getattr(ends[1], name)[0]
        if name == "weights":
            first, last = root_bytes(pricing, meshes)
            by_stage[0] += first[0]
            by_stage[-1] += last[0]
        totals[name] = by_stage[stages_by_rank(costs)].sum(axis=1)
    return totals


def _rank_memory(
    around: Beside,
    rank: int,
    states: dict[str, Floats],
    busy: Sequence[Named],
    idle: Sequence[Named],
) -> StageMemory:
    """Memory of one rank at every moment, and at the fullest that binds. [GiB]."""
    state_parts = {name: float(values[rank]) for name, values in states.items()}
    passes = [(name, state_parts | parts) for name, parts in busy]
    moments = [
        _with_device(around, name, parts)
        for name, parts in _fullest([*passes, *idle], ORDER)
    ]
    binding = (
        memory for memory in moments if around.pricing.search.binds(memory.moment)
    )
    top = max(binding, key=lambda moment: moment.allocated)
    return StageMemory(stage=rank, moments=tuple(moments), **top.model_dump())


def _busy(
    rows: MemoryRows, costs: StageCosts, counts: Counts
) -> Iterator[tuple[int, Named]]:
    """Ranks at the moments of the passes: what is in flight, the unit at work. [B].

    On the head's stage the loss and the layers each have a moment.
    """
    terms, largest = rows.by_term(counts), rows.largest_layer(counts).tolist()
    in_flight = (terms[SAVED] + terms[PENDING]).tolist()
    waiting = terms[ACCUMULATED].tolist()
    at_work = rows.working[:, 0].tolist()
    for row, (rank, at) in enumerate(zip(rows.rank.tolist(), at_work, strict=True)):
        layer = largest[at]
        works = {STEADY: layer if at else max(layer, costs.embedding.transient)}
        if at == costs.stages - 1:
            works[LOSS] = costs.head.transient
        for name, working in works.items():
            activations = float(in_flight[row] * BLOCK)
            transient = float((waiting[row] + working) * BLOCK)
            yield rank, (name, {"activations": activations, "transient": transient})


def _idle(
    table: CostTable, costs: StageCosts, counts: Counts, states: dict[str, Floats]
) -> list[list[Named]]:
    """Idle moments of every rank, by category. [B], shape (pp, moments)."""
    menu = [table.menu.index(name) for name in costs.menu]
    moments = list(filter(_applies, table.moments))
    return [
        [
            (moment.name, _idle_parts(moment, costs, counts, rank, states, menu))
            for moment in moments
        ]
        for rank in range(costs.pp)
    ]


def _applies(moment: Moment) -> bool:
    """Tell if a moment applies: steady and backward only where they hold memory."""
    cells = [cell for row in moment.layers for cell in row]
    units = [*cells, moment.embedding, moment.head]
    is_idle = moment.name not in (STEADY, BACKWARD)
    return is_idle or any(np.any(unit.held) or np.any(unit.largest) for unit in units)


def _idle_parts(
    moment: Moment,
    costs: StageCosts,
    counts: Counts,
    rank: int,
    states: dict[str, Floats],
    menu: Sequence[int],
) -> dict[str, float]:
    """States and addends of one rank's units at an idle moment. [B]."""
    units = list(_units(moment, costs, counts, rank, menu))
    parts = dict.fromkeys(CATEGORIES, 0.0) | {
        k: float(v[rank]) for k, v in states.items()
    }
    for name in CATEGORIES:
        parts[name] += sum(n * _value(getattr(unit, name)) for n, unit in units)
    parts["transient"] += max((_value(unit.largest) for _, unit in units), default=0.0)
    return parts


def _units(
    moment: Moment, costs: StageCosts, counts: Counts, rank: int, menu: Sequence[int]
) -> Iterator[tuple[int, Addend]]:
    """Units of one rank: their number, and the addend of each. [B]."""
    for stage in stages_of(costs, rank):
        for kind, entry in np.argwhere(counts[stage] > 0).tolist():
            yield int(counts[stage, kind, entry]), moment.entry(kind, menu[entry])
        if stage == 0:
            yield 1, moment.embedding
        if stage == costs.stages - 1:
            yield 1, moment.head


def _value(amount: Amount) -> float:
    """The amount on the table's one mesh. [B]."""
    return float(np.asarray(amount).reshape(-1)[0])


def _fullest(moments: Iterable[Named], order: Sequence[str]) -> list[Named]:
    """The fullest moment of every name, in the order of a run."""
    best: dict[str, dict[str, float]] = {}
    for name, parts in moments:
        known = best.get(name)
        if known is None or sum(parts.values()) > sum(known.values()):
            best[name] = parts
    return sorted(best.items(), key=lambda named: order.index(named[0]))


def _with_device(around: Beside, name: str, parts: dict[str, float]) -> MomentMemory:
    """Add buffers, and what the driver sees beside the allocator. [GiB]."""
    pricing, communication = around.pricing, around.communication
    parts = parts | {"transient": parts["transient"] + around.buffers}
    own = pricing.profile.memory_factor
    parts = {category: value * own for category, value in parts.items()}
    context = context_bytes(pricing)
    fixed, allocated = communication + context, sum(parts.values())
    device = device_bytes(pricing, allocated, fixed, cached=around.cached)
    spread = device - allocated - fixed
    return MomentMemory(
        moment=name,
        **{category: value / GIB for category, value in parts.items()},
        communication=communication / GIB,
        fragmentation=spread / GIB,
        context=context / GIB,
    )
