"""One table for several pools: each prices its own stages, the search sees the least.

The columns of a mixed table are, entry by entry, the least time and memory of its
pools, and the largest budget. A lower bound of a step or a footprint on them thus
holds for every assignment of stages to pools. The exact problem of one candidate
holds each pool's own costs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any

import numpy as np

from planner.cost.memory.buffers import buffer_bytes, context_bytes, device_bytes
from planner.cost.memory.communicators import communication_bytes
from planner.cost.meshes import Floats, Ints, Meshes
from planner.cost.pipeline.memory_rows import rank_blocks, spared_blocks
from planner.cost.pipeline.splits import Counts
from planner.cost.pricing import Pricing
from planner.cost.table.table import CostTable, EndColumns, fill_table
from planner.cost.table.units import Unit, nanoseconds
from planner.cost.time.columns import Context
from planner.cost.time.transfers import stage_transfer
from planner.hardware.reading.quantities import IntColumn, Nanoseconds
from planner.schedules.placement import placement
from planner.specs.table import BLOCK, LayerCosts, StageCosts


@dataclass(frozen=True)
class MixedTable(CostTable):
    """Table of the least costs of several pools, with the table of each pool."""

    tables: tuple[CostTable, ...] = ()
    """Tables by hosting pool, in the order in which the pipeline passes them."""
    border: Ints | None = None
    """Time of activations from one pool to the next. [ns], shape (meshes,)"""

    @property
    def each(self) -> tuple[CostTable, ...]:
        """The tables of the hosting pools, in order."""
        return self.tables

    def extra_layers(self, stages: Ints, vpp: Ints) -> Ints:  # noqa: ARG002
        """Most layers above the balanced count in any class of this table.

        Args:
            vpp: Virtual chunks per pipeline rank of every candidate. [1]

        Returns:
            Layers, shape of *stages*. [1]
        """
        return np.full_like(stages, self.pricing.model.layers)

    def stage_costs(
        self,
        row: int,
        *,
        schedule: str,
        vpp: int,
        menu: tuple[int, ...],
        block: int = 0,
        hosting: tuple[int, ...] = (),
    ) -> StageCosts:
        """Cut out the inner problem of one mesh and one assignment of its stages.

        Every transfer between stages is priced as the slowest edge in use. An edge is
        within a pool that hosts two stages or more, or between two pools.

        Args:
            vpp: Virtual chunks per pipeline rank. [1]
            menu: Recompute kinds that layers may choose from. [1]
            block: First layers of each virtual stage under the menu's first kind. [1]
            hosting: Pipeline ranks that each pool hosts, in order. [1]

        Returns:
            The integers that solver, simulator and brute force share.
        """
        known = [
            table.stage_costs(row, schedule=schedule, vpp=vpp, menu=menu, block=block)
            for table in self.tables
        ]
        shared: dict[str, Any] = {
            "p2p": int(self.sends(np.array([row]), hosting)[0]),
            "slowdown": float(self.slowdown[row]),
            "extra_layers": _extra_layers(
                known, hosting, int(self.pricing.search.space == "full")
            ),
        }
        hosts = tuple(replace(costs, **shared) for costs in known)
        return _joined(hosts, hosting)

    def sends(
        self, rows: Ints, hosting: Sequence[int] | Ints
    ) -> IntColumn[Nanoseconds]:
        """Time of every send between ranks, that of the slowest edge in use.

        Args:
            rows: Meshes. [1], shape (candidates,)
            hosting: Pipeline ranks of each pool, of all or of each candidate. [1],
                shape (pools,) or (pools, candidates)

        Returns:
            Time. [ns], shape (candidates,)
        """
        assert self.border is not None
        send = self.border[rows]
        for table, ranks in zip(self.tables, hosting, strict=True):
            inner = np.where(np.asarray(ranks) > 1, table.p2p[rows], 0)
            send = np.maximum(send, inner)
        return send


def _joined(hosts: tuple[StageCosts, ...], hosting: Sequence[int]) -> StageCosts:
    """Problem over all pools: each end on its own pool, of the rest the least."""
    pools = tuple(np.repeat(np.arange(len(hosts)), hosting).tolist())
    first = hosts[0]
    last = placement(first.schedule, first.pp, first.vpp).rank(first.stages - 1)
    return replace(
        first,
        layers=tuple(map(_least_layer, zip(*(h.layers for h in hosts), strict=True))),
        idle=(),
        embedding=hosts[pools[0]].embedding,
        head=hosts[pools[last]].head,
        budget=max(host.budget for host in hosts),
        hosts=hosts,
        pool_of_rank=pools,
    )


def _least_layer(of_pools: tuple[LayerCosts, ...]) -> LayerCosts:
    """Least layer over the pools, number by number."""
    lowest: dict[str, Any] = {}
    for field in fields(LayerCosts):
        values = [getattr(layer, field.name) for layer in of_pools]
        menus = isinstance(values[0], tuple)
        lowest[field.name] = tuple(map(min, *values)) if menus else min(values)
    return LayerCosts(**lowest)


def _extra_layers(
    costs: Sequence[StageCosts], hosting: Sequence[int], free: int
) -> int:
    """Layers above the balanced count that a stage may hold on the best pool.

    Rates ``r_i`` of the pools are by the time of their quickest layer, or by their
    memory. Equal times, or equal filling, put ``L r_i / sum_j n_j v r_j`` layers on a
    stage of pool i. The most of the declared class is the largest of these, rounded
    up, and one more and ``free``. The fewest is one, on stages with an end none.

    Args:
        free: Layers above the balance that the space allows on equal pools. [1]

    Returns:
        Layers above ``ceil(L / stages)``. [1]
    """
    first = costs[0]
    times = [quickest(part) for part in costs]
    product = prod(times)
    most = 0
    for rates in ([product // t for t in times], [max(c.budget, 1) for c in costs]):
        weight = sum(n * r for n, r in zip(hosting, rates, strict=True)) * first.vpp
        most = max(most, -(-first.layer_count * max(rates) // max(weight, 1)))
    balanced = -(-first.layer_count // first.stages)
    return min(max(most, balanced) + 1 + free, first.layer_count) - balanced


def quickest(costs: StageCosts) -> int:
    """Time of forward and backward of the quickest layer on one pool.

    Returns:
        Time, at least one. [ns]
    """
    both = (
        ahead + behind
        for layer in costs.layers
        for ahead, behind in zip(layer.forward, layer.backward, strict=True)
    )
    return max(min(both), 1)


def price_meshes(
    pricing: Pricing, meshes: Meshes, menu: tuple[str, ...], *, timed: bool = True
) -> CostTable:
    """Price every mesh at once, on one pool or on several.

    Args:
        timed: True for times and memory, False for memory alone.

    Returns:
        The table of integers; the table of one pool where it hosts all stages.
    """
    if not pricing.mixed:
        return fill_table(pricing, meshes, menu, timed=timed)
    tables = tuple(
        fill_table(part, own, menu, timed=timed)
        for part, own in pricing.on_parts(meshes)
    )
    lowest: dict[str, Any] = {
        name: _least([getattr(table, name) for table in tables])
        for name in ("forward", "backward", "saved", "transient", "first_gather",
                     "last_scatter", "p2p", "scatter_every")
    }  # fmt: skip
    return MixedTable(
        pricing,
        meshes,
        menu,
        **lowest,
        units=tuple(
            _least_of(Unit, units)
            for units in zip(*(table.units for table in tables), strict=True)
        ),
        embedding=_least_end([table.embedding for table in tables]),
        head=_least_end([table.head for table in tables]),
        budget=np.max([table.budget for table in tables], axis=0),
        slowdown=np.max([table.slowdown for table in tables], axis=0),
        tables=tables,
        border=border_time(pricing, meshes),
    )


def border_time(pricing: Pricing, meshes: Meshes) -> IntColumn[Nanoseconds]:
    """Time to hand activations to a stage on the next pool.

    Each GPU sends, or takes in, its own part of the activations. The NIC share, the
    tiers of the pool and the join limit the rate; the slower side counts. Where tp or
    dp differ a GPU has several peers for its part, whose further latencies are left
    out.
    """
    contexts = [Context.of(part, own) for part, own in pricing.on_parts(meshes)]
    rate = np.min([_way_out(context) for context in contexts], axis=0)
    join = pricing.topology.cluster.spec.join.bandwidth
    rate = rate if join is None else np.minimum(rate, join)
    times = [stage_transfer(context, rate) for context in contexts]
    return nanoseconds(np.max(times, axis=0))


def _way_out(context: Context) -> Floats:
    """Line rate at which the GPUs of one stage leave a pool, or enter it.

    The NIC share, and of every tier a unit's uplinks over its GPUs of that stage::

        min(share, min_i present_i share / (o_i min(block, present_i)))
    """
    topology, block = context.pricing.topology, context.meshes.block
    share = topology.cluster.nic_share
    rate = np.full(len(block), share)
    for tier in topology.cluster.spec.tiers:
        present = min(tier.gpus, topology.gpus)
        uplinks = present * share / tier.oversubscription
        rate = np.minimum(rate, uplinks / np.minimum(block, present))
    return rate


def heaviest_bytes(
    pricing: Pricing, mesh: Meshes, costs: StageCosts, counts: Counts
) -> float:
    """Device memory of the heaviest rank of a split. [B].

    Args:
        counts: Layers by stage, kind and menu entry. [1]
    """
    used = rank_blocks(costs, counts) + spared_blocks(costs, counts)
    ranks = np.array([costs.pool(rank) for rank in range(costs.pp)])
    rooms = []
    for pool, (part, own) in enumerate(pricing.on_parts(mesh)):
        most = int(used[ranks == pool].max()) * BLOCK
        buffers = float(buffer_bytes(part, own)[0])
        fixed = float(communication_bytes(part, own)[0]) + context_bytes(part)
        allocated = (most + buffers) * part.profile.memory_factor
        rooms.append(device_bytes(part, allocated, fixed))
    return max(rooms)


def _least(columns: Sequence[Ints]) -> Ints:
    """Least over the pools, entry by entry."""
    lowest: Ints = np.min(columns, axis=0)
    return lowest


def _least_of(kind: Callable[..., Unit], units: Sequence[Unit]) -> Unit:
    """Least unit over the pools, column by column."""
    names = [field.name for field in fields(Unit)]
    return kind(**{n: _least([getattr(unit, n) for unit in units]) for n in names})


def _least_end(ends: Sequence[EndColumns]) -> EndColumns:
    """Least end over the pools, column by column."""
    names = ("forward", "backward", "saved", "transient")
    return EndColumns(
        **{name: _least([getattr(end, name) for end in ends]) for name in names},
        unit=_least_of(Unit, [end.unit for end in ends]),
    )
