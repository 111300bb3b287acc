"""Price of every layer and end of a plan, one by one, in whole ns and blocks."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.cost import meshes as axes
from planner.cost.kernels import ELEMENT
from planner.cost.memory.activations import saved_bytes, transient_bytes
from planner.cost.memory.buffers import head_buffers, root_bytes, working_bytes
from planner.cost.meshes import Floats, Meshes
from planner.cost.network.collectives import all_gather_time, send_time
from planner.cost.parameters.data_groups import (
    DataGroups,
    gather_time,
    regather_time,
    scatter_time,
)
from planner.cost.parameters.rank_parameters import (
    Owned,
    embedding_owned,
    head_owned,
    layer_owned,
)
from planner.cost.parameters.states import optimizer_time, state_bytes
from planner.cost.pricing import Pricing
from planner.cost.reference import reference_passes
from planner.cost.time.columns import Context
from planner.cost.time.contention import contention
from planner.cost.time.ends import End, embedding_end, head_end
from planner.cost.time.gradients import layer_pending_bytes, layer_weight_time
from planner.cost.time.layers import layer_time
from planner.cost.time.transfers import BESIDE, buffer_copies
from planner.cost.workload import Workload
from planner.models.layers.blocks import LayerKind
from planner.schedules.placement import placement
from planner.specs.layouts.layout import Layout
from planner.verify.idle import Idle
from planner.verify.price import Price, blocks, nanoseconds, one
from planner.verify.recompute import stage_kinds


@dataclass(frozen=True)
class Prices:
    """A plan with the price of every layer, end and transfer."""

    pricing: Pricing
    layout: Layout
    context: Context
    data: DataGroups
    known: dict[tuple[LayerKind, str], Price] = field(default_factory=dict)
    parts: "tuple[Prices, ...]" = ()
    """Prices on each of several pools, as if that pool hosted all stages."""

    @classmethod
    def of(cls, workload: Workload, layout: Layout) -> "Prices":
        """Look up the groups of a layout; prices follow as they are asked for.

        Returns:
            Prices of that layout. [ns] and [block]
        """
        pricing = Pricing.of(workload, layout)
        if pricing.mixed:
            pairs = zip(pricing.parts, layout.pools, strict=True)
            parts = tuple(cls.of(part, layout.on_pool(pool)) for part, pool in pairs)
            first = parts[0]
            return cls(pricing, layout, first.context, first.data, parts=parts)
        context = Context.of(pricing, Meshes.of_layout(layout))
        data = DataGroups.of(pricing, context.meshes, context.links)
        return cls(pricing, layout, context, data)

    def on(self, rank: int) -> "Prices":
        """Prices on the pool that hosts a pipeline rank."""
        for part, pool in zip(self.parts, self.layout.pools, strict=False):
            if rank in pool.stages:
                return part
        return self

    def at(self, stage: int) -> "Prices":
        """Prices on the pool that hosts a virtual stage."""
        layout = self.layout
        place = placement(layout.schedule, layout.pp, layout.vpp)
        return self.on(place.rank(stage))

    @property
    def meshes(self) -> Meshes:
        """Mesh of the layout, in columns of length one."""
        return self.context.meshes

    @cached_property
    def stages(self) -> tuple[tuple[Price, ...], ...]:
        """Prices of the layers and ends of every virtual stage, in model order."""
        kinds = iter([k for k, n in self.pricing.model.runs for _ in range(n)])
        held = [
            [self.at(i).layer(next(kinds), name) for name in stage_kinds(stage)]
            for i, stage in enumerate(self.layout.stages)
        ]
        held[0].insert(0, self.at(0).embedding)
        held[-1].append(self.at(len(held) - 1).head)
        return tuple(map(tuple, held))

    @cached_property
    def embedding(self) -> Price:
        """Price of the embedding, on the first virtual stage."""
        owned = embedding_owned(self.pricing, self.meshes)
        price = self._end(embedding_end(self.context), owned)
        root = one(root_bytes(self.pricing, self.meshes)[0])
        idle = price.idle.at_end(self.pricing, self.meshes, 0, root)
        return replace(price, static=price.static + blocks(root), idle=idle)

    @cached_property
    def head(self) -> Price:
        """Price of norm, head, loss and MTP modules, on the last virtual stage."""
        owned = head_owned(self.pricing, self.meshes)
        price = self._end(head_end(self.context), owned)
        root = one(root_bytes(self.pricing, self.meshes)[1])
        ahead = blocks(one(head_buffers(self.pricing, self.meshes)))
        return replace(
            price,
            static=price.static + blocks(root),
            transient=price.transient + ahead,
            idle=price.idle.at_end(self.pricing, self.meshes, 1, root),
        )

    def layer(self, kind: LayerKind, recompute: str) -> Price:
        """Price of one layer.

        Returns:
            Price, computed once per kind and recompute. [ns] and [block]
        """
        if (kind, recompute) not in self.known:
            self.known[kind, recompute] = self._layer(kind, recompute)
        return self.known[kind, recompute]

    def _layer(self, kind: LayerKind, recompute: str) -> Price:
        rule = self.pricing.recipe.kind(recompute)
        passes = layer_time(self.context, kind, rule)
        owned = layer_owned(self.pricing, kind, self.meshes)
        forward, backward = (one(parts.total) for parts in passes)
        if self.layout.zero_stage == 3:
            forward, backward = self._sharded(forward, backward, owned)
        forward *= reference_passes(self.pricing)
        saved = saved_bytes(self.pricing, kind, rule, self.meshes)
        own = transient_bytes(self.pricing, kind, rule, self.meshes)
        beside = working_bytes(self.pricing, owned, self.meshes, saved, own)
        price = self._price(forward, backward, saved, beside, owned)
        return self._split(
            price,
            layer_weight_time(self.context, kind),
            layer_pending_bytes(self.context, kind),
        )

    def _end(self, end: End, owned: Owned) -> Price:
        forward, backward = one(end.forward.total), one(end.backward.total)
        if self.layout.zero_stage == 3:
            forward, backward = self._sharded(forward, backward, owned)
        forward *= reference_passes(self.pricing)
        price = self._price(forward, backward, end.saved, end.transient, owned)
        return self._split(price, end.weight, end.pending)

    def _split(self, price: Price, weight: Floats, pending: Floats) -> Price:
        """Add the time of the weight gradient, and the memory that waits for it."""
        return replace(
            price, weight=nanoseconds(one(weight)), pending=blocks(one(pending))
        )

    def _price(
        self,
        forward: float,
        backward: float,
        saved: Floats,
        transient: Floats,
        owned: Owned,
    ) -> Price:
        """Price of a unit with its states; every number is rounded once."""
        gather, scatter = self._transfers(owned)
        states = state_bytes(self.pricing, owned, self.meshes).total
        return Price(
            forward=nanoseconds(forward),
            backward=nanoseconds(backward),
            saved=blocks(one(saved)),
            transient=blocks(one(transient)),
            static=blocks(one(states)),
            accumulated=blocks(self._waiting_bytes(owned)),
            gather=nanoseconds(gather),
            scatter=nanoseconds(scatter),
            optimizer=nanoseconds(self._optimizer(owned, gather, scatter))
            + nanoseconds(self._with_copy(owned)),
            idle=Idle.of(self.pricing, owned, self.meshes),
        )

    def _sharded(
        self, forward: float, backward: float, owned: Owned
    ) -> tuple[float, float]:
        """Forward and backward under ZeRO-3, with the collectives beside them. [s].

        Compute f and transfer g overlap: ``max(f, g) + kappa min(f, g)``. Copies out
        of and into the buffer of a collective are added, and what runs alone.
        """
        gathered = gather_time(self.data, owned)
        first, later = one(gathered), one(regather_time(self.data, owned, gathered))
        passes, scatter = float(owned.passes_back), one(scatter_time(self.data, owned))
        again = passes * later
        takes = (self.pricing.takes(name, self.meshes).item() for name in BESIDE)
        gathers, reduces = map(float, takes)
        there, back = map(one, buffer_copies(self.data, owned))
        alone = (1 - gathers) * again + (1 - reduces) * scatter

        def beside(own: float, moved: float, read: float, reduced: float) -> float:
            time = self._array(moved)
            kappa = contention(self.data, owned, time, gathers=read, reduces=reduced)
            return max(own, moved) + one(kappa) * min(own, moved)

        def ahead(moved: float) -> float:
            own = beside(forward, gathers * moved, gathers, 0.0)
            return own + (1 - gathers) * moved

        # The first micro-batch of a step gathers from all ranks, others from a copy.
        accum = self.layout.grad_accum
        mean = ahead(later) + (ahead(first) - ahead(later)) / accum
        both = gathers * again + reduces * scatter
        behind = beside(backward, both, gathers * passes, reduces)
        return mean + there, behind + alone + back

    def _transfers(self, owned: Owned) -> tuple[float, float]:
        """All-gather and reduce-scatter outside the passes; ZeRO-0 gathers nothing."""
        zero = self.layout.zero_stage
        gather = one(gather_time(self.data, owned)) if zero in (1, 2) else 0.0
        scatter = one(scatter_time(self.data, owned)) if zero < 3 else 0.0
        return gather, scatter

    def _waiting_bytes(self, owned: Owned) -> float:
        """Unsharded gradients of a unit, held until the reduce-scatter. [B]."""
        recipe, zero = self.pricing.recipe, self.layout.zero_stage
        waits = recipe.accumulates_unsharded and zero in recipe.accumulates_at
        if not waits or (zero == 3 and self.layout.grad_accum == 1):
            return 0.0
        return recipe.accumulator_bytes * one(owned.dense + owned.expert)

    def _optimizer(self, owned: Owned, gather: float, scatter: float) -> float:
        """Update of a unit, and compute lost to the unit's collectives. [s]."""
        profile = self.pricing.profile
        lost = one(optimizer_time(self.pricing, owned, self.meshes))
        if profile.overlap_param_gather:
            share = contention(self.data, owned, self._array(gather), reduces=0.0)
            lost += one(share) * gather
        if profile.overlap_grad_reduce:
            share = contention(self.data, owned, self._array(scatter), gathers=0.0)
            groups = -(-self.layout.grad_accum // self.scatter_every)
            lost += one(share) * groups * scatter
        return lost

    def _array(self, seconds: float) -> Floats:
        """Time as the column of the plan's one mesh. [s], shape (1,)."""
        return np.full(len(self.meshes), seconds)

    def _with_copy(self, owned: Owned) -> float:
        """Time to send reduced gradients to the other copy of a stage. [s]."""
        if self.layout.schedule != "dualpipe" or not owned.dense + owned.expert:
            return 0.0
        dense, expert = one(owned.dense), one(owned.expert)
        if self.layout.zero_stage:
            dense /= self.layout.dp_shard
            expert /= self.meshes.expert_shard.item()
        size = self.pricing.recipe.gradient_bytes * (dense + expert)
        rate, crosses = axes.stage_bandwidth(self.pricing.topology, self.meshes)
        return one(send_time(self.context.links, rate * 0 + size, rate, crosses))

    @property
    def scatter_every(self) -> int:
        """Micro-batches per gradient reduce-scatter: all, or a group of pp. [1]."""
        grouped = self.pricing.recipe.gradients_reduced_per_group
        if grouped and self.layout.zero_stage == 2:
            return min(self.layout.pp, self.layout.grad_accum)
        return self.layout.grad_accum

    def edges(self, stage: int) -> tuple[int, int]:
        """Gather before a stage's first forward, scatter after the last backward.

        The first stage waits for the embedding, others for the quickest kind of
        layer. On the last stage the head is an upper limit.

        Returns:
            Gather and scatter. [ns]
        """
        if self.parts:
            return self.at(stage).edges(stage)
        if stage == 0:
            return self.embedding.gather, self.embedding.scatter
        first, last = self._quickest
        if stage < len(self.layout.stages) - 1:
            return first, last
        return min(first, self.head.gather), min(last, self.head.scatter)

    @cached_property
    def _quickest(self) -> tuple[int, int]:
        """Gather and scatter of the quickest kind of layer. [ns]."""
        owned = [
            layer_owned(self.pricing, kind, self.meshes) for kind in self.pricing.kinds
        ]
        first = min(nanoseconds(one(gather_time(self.data, own))) for own in owned)
        last = min(nanoseconds(one(scatter_time(self.data, own))) for own in owned)
        return first if self.layout.zero_stage > 0 else 0, last

    @property
    def p2p(self) -> int:
        """Time of a micro-batch's activations to the next stage. [ns].

        The activations are 2 h b s / c [/ t] bytes. Without sequence parallelism every
        rank holds all of them. Where the stack scatters, each rank then sends a t-th,
        and the ranks of the next stage gather the rest.
        """
        layout = self.layout
        if layout.pp == 1:
            return 0
        if self.parts:
            return self._slowest_edge()
        rate, crosses = axes.stage_bandwidth(self.pricing.topology, self.meshes)
        return self.sent(rate, crosses)

    def _slowest_edge(self) -> int:
        """Longest transfer between stages, in a pool or to the next pool. [ns]."""
        join = self.pricing.topology.cluster.spec.join.bandwidth or math.inf
        rate = np.array([min(join, *(part.way_out for part in self.parts))])
        borders = [part.sent(rate, np.array([True])) for part in self.parts]
        pools = zip(self.parts, self.layout.pools, strict=True)
        inner = [part.p2p for part, pool in pools if len(pool.stages) > 1]
        return max(*borders, *inner)

    @property
    def way_out(self) -> float:
        """Line rate of one GPU of a stage that sends out of this pool. [B/s].

        All GPUs of the stage send at once. GPUs in one unit of a tier share the
        uplinks of the unit.
        """
        topology, layout = self.pricing.topology, self.layout
        share, stage = topology.cluster.nic_share, layout.tp * layout.cp * layout.dp
        rates = [share]
        for tier in topology.cluster.spec.tiers:
            here = min(tier.gpus, topology.gpus)
            rates.append(here * share / tier.oversubscription / min(stage, here))
        return min(rates)

    def sent(self, rate: Floats, crosses: npt.NDArray[np.bool_]) -> int:
        """Time to send one micro-batch's activations at a line rate.

        Args:
            rate: Rate of every pair while all pairs send. [B/s], shape (1,)
            crosses: True where a pair lies in two domains. shape (1,)

        Returns:
            Time. [ns]
        """
        layout = self.layout
        tokens = one(self.context.local)
        whole = rate * 0 + ELEMENT * self.pricing.model.stream_width * tokens
        scatters = self.pricing.profile.stage_scatter and layout.tp > 1
        share = whole / (layout.tp if layout.sp or scatters else 1)
        sent = one(send_time(self.context.links, share, rate, crosses))
        if scatters and not layout.sp:
            groups = self.context.tensor
            sent += one(all_gather_time(self.context.links, whole, groups))
        return nanoseconds(sent)

    @property
    def overhead(self) -> int:
        """Host time of a step that overlaps no compute. [ns]."""
        return nanoseconds(self.pricing.profile.step_overhead)

    @property
    def slowdown(self) -> float:
        """Straggler factor 1 + sigma sqrt(2 ln n), times the factor of own runs. [1].

        With n the number of nodes.
        """
        if self.parts:
            return max(part.slowdown for part in self.parts)
        node = self.pricing.topology.cluster.node.gpus_per_node
        spread = math.sqrt(2 * math.log(max(1, self.layout.gpus // node)))
        profile = self.pricing.profile
        return profile.step_factor * (1 + profile.straggler * spread)
