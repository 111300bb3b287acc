"""Fills the one table: integer costs of every mesh, layer kind and recompute kind."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from planner.cost.memory.activations import saved_bytes, transient_bytes
from planner.cost.memory.buffers import (
    budget_bytes,
    head_buffers,
    root_bytes,
    working_bytes,
)
from planner.cost.memory.memory_moments import Held, IdleColumns, Moment, moments_of
from planner.cost.meshes import Floats, Ints, Meshes
from planner.cost.parameters.data_groups import DataGroups
from planner.cost.parameters.rank_parameters import (
    Owned,
    embedding_owned,
    head_owned,
    layer_owned,
)
from planner.cost.pricing import Pricing
from planner.cost.reference import with_reference
from planner.cost.table.units import NANO, Unit, blocks, nanoseconds, unit_costs
from planner.cost.time.columns import Context, Parts
from planner.cost.time.ends import End, embedding_end, head_end
from planner.cost.time.gradients import layer_pending_bytes, layer_weight_time
from planner.cost.time.layers import layer_time
from planner.cost.time.transfers import (
    edge_transfers,
    scatter_every,
    sharded_parts,
    stage_transfer,
    straggler_factor,
)
from planner.models.layers.blocks import LayerKind
from planner.schedules.placement import placement
from planner.specs.frameworks.switches import Mask
from planner.specs.table import BLOCK, EndCosts, IdleMoment, LayerCosts, StageCosts

UNEVEN_FROM = 4
"""Layers of the largest even stage from which the default space has one more. [1]"""

Key = tuple[int, tuple[int, ...], int]
"""Mesh, entries of the menu, copies of the model. [1]"""
Cut = tuple[tuple[LayerCosts, ...], EndCosts, EndCosts, tuple[IdleMoment, ...]]
"""Costs of the layers by kind, of the embedding and of the head; idle moments."""


@dataclass(frozen=True)
class EndColumns:
    """Costs of the embedding or the head, shape (meshes,). ns and blocks."""

    forward: Ints
    backward: Ints
    saved: Ints
    transient: Ints
    unit: Unit


@dataclass(frozen=True)
class CostTable:
    """Integer costs of every mesh. Times in ns, memory in blocks of 512 B.

    Layer columns have the shape (kinds, menu, meshes), all others (meshes,).
    """

    pricing: Pricing
    meshes: Meshes
    menu: tuple[str, ...]
    forward: Ints
    backward: Ints
    saved: Ints
    transient: Ints
    units: tuple[Unit, ...]
    embedding: EndColumns
    head: EndColumns
    first_gather: Ints
    last_scatter: Ints
    p2p: Ints
    budget: Ints
    scatter_every: Ints
    slowdown: Floats
    moments: tuple[Moment, ...] = ()
    """Idle moments by category. [B]"""
    idle: tuple[IdleColumns, ...] = ()
    """Idle moments in whole blocks. [block]"""
    known: dict[Key, Cut] = field(init=False, default_factory=dict)
    """Costs by mesh, menu and copies of the model, which many schedules share."""

    def __len__(self) -> int:
        return len(self.meshes)

    @property
    def each(self) -> tuple["CostTable", ...]:
        """Tables of the pools that host stages: this table where there is one pool."""
        return (self,)

    def extra_layers(self, stages: Ints, vpp: Ints) -> Ints:
        """Layers above the balanced count that the declared class allows.

        The full space has a layer more on every stage. The default space has it where
        a rank has one stage, of ``UNEVEN_FROM`` layers at least where stages are even.
        There it unloads the rank with most micro-batches in flight, and makes the
        longest stage at most a quarter longer.

        Args:
            vpp: Virtual chunks per pipeline rank of every candidate. [1]

        Returns:
            Layers, shape of *stages*. [1]
        """
        if self.pricing.search.space == "full":
            return np.ones_like(stages)
        even = -(-self.pricing.model.layers // stages)
        alone = (stages > 1) & (vpp == 1)
        longer: Ints = (alone & (even >= UNEVEN_FROM)).astype(np.int64)
        return longer

    @property
    def overhead(self) -> int:
        """Host work of a step that hides behind nothing. [ns]."""
        return round(self.pricing.profile.step_overhead * NANO)

    def stage_costs(
        self,
        row: int,
        *,
        schedule: str,
        vpp: int,
        menu: tuple[int, ...],
        block: int = 0,
        hosting: tuple[int, ...] = (),  # noqa: ARG002  # of a table of several pools
    ) -> StageCosts:
        """Cut out the inner problem of one mesh.

        Args:
            vpp: Virtual chunks per pipeline rank. [1]
            menu: Recompute kinds that layers may choose from. [1]
            hosting: Pipeline ranks that each of several pools hosts. [1]
            block: First layers of every virtual stage under the menu's first kind;
                0 where split and kinds are free. [1]

        Returns:
            The integers that solver, simulator and brute force share.
        """
        pp = int(self.meshes.pp[row])
        copies = 2 if placement(schedule, pp, vpp).both_ways else 1
        layers, embedding, head, idle = self._cut(row, menu, copies)
        stages = np.array(pp * vpp // copies)
        return StageCosts(
            schedule=schedule,
            pp=pp,
            vpp=vpp,
            micro_batches=int(self.meshes.micro_batches[row]),
            runs=self.pricing.runs,
            menu=tuple(self.menu[index] for index in menu),
            layers=layers,
            embedding=embedding,
            head=head,
            first_gather=int(self.first_gather[row]),
            last_scatter=int(self.last_scatter[row]),
            p2p=int(self.p2p[row]),
            scatter_every=int(self.scatter_every[row]),
            overlap_gather=bool(self.overlaps[0][row]),
            overlap_scatter=bool(self.overlaps[1][row]),
            budget=int(self.budget[row]),
            slowdown=float(self.slowdown[row]),
            overhead=self.overhead,
            extra_layers=int(self.extra_layers(stages, np.array(vpp))),
            idle=idle,
            copies=copies,
            block=block,
        )

    def _cut(self, row: int, menu: tuple[int, ...], copies: int) -> Cut:
        """Costs of one mesh that no schedule changes, cut out once."""
        key = row, menu, copies
        if key not in self.known:
            kinds = range(len(self.pricing.kinds))
            self.known[key] = (
                tuple(self._layer(kind, row, menu, copies) for kind in kinds),
                _end_costs(self.embedding, row, copies),
                _end_costs(self.head, row, copies),
                tuple(columns.at(row, menu) for columns in self.idle),
            )
        return self.known[key]

    @cached_property
    def overlaps(self) -> tuple[Mask, Mask]:
        """Tell where gathers, reduce-scatters run beside compute. shape (meshes,)."""
        gathers = self.pricing.takes("overlap_param_gather", self.meshes)
        return gathers, self.pricing.takes("overlap_grad_reduce", self.meshes)

    def _layer(
        self, kind: int, row: int, menu: tuple[int, ...], copies: int
    ) -> LayerCosts:
        def picked(column: Ints) -> tuple[int, ...]:
            return tuple(int(column[kind, entry, row]) for entry in menu)

        return LayerCosts(
            forward=picked(self.forward),
            backward=picked(self.backward),
            saved=picked(self.saved),
            transient=picked(self.transient),
            **self.units[kind].at(row, copies),
        )


def _end_costs(end: EndColumns, row: int, copies: int) -> EndCosts:
    return EndCosts(
        forward=int(end.forward[row]),
        backward=int(end.backward[row]),
        saved=int(end.saved[row]),
        transient=int(end.transient[row]),
        **end.unit.at(row, copies),
    )


def fill_table(
    pricing: Pricing, meshes: Meshes, menu: tuple[str, ...], *, timed: bool = True
) -> CostTable:
    """Price every mesh at once.

    Args:
        timed: True where times are wanted. Without, layers and transfers take no
            time, which is a third of the work, and memory does not change.
    """
    context, binds = Context.of(pricing, meshes), pricing.search.binds
    data = replace(DataGroups.of(pricing, meshes, context.links), timed=timed)
    owned = [layer_owned(pricing, kind, meshes) for kind in pricing.kinds]
    cells = [
        [_layer_cell(context, data, layer, own, name) for name in menu]
        for layer, own in zip(pricing.kinds, owned, strict=True)
    ]

    def column(index: int) -> Ints:
        return np.array([[cell[index] for cell in row] for row in cells])

    saved, transient = column(2), column(3)
    ends = _ends(context, data)
    first, last = edge_transfers(data, owned) if timed else _no_times(data)
    moments = _moments(context, owned, (saved, transient), ends)
    return CostTable(
        pricing,
        meshes,
        menu,
        forward=column(0),
        backward=column(1),
        saved=saved,
        transient=transient,
        units=tuple(
            unit_costs(
                data,
                own,
                layer_weight_time(context, layer),
                layer_pending_bytes(context, layer),
            )
            for layer, own in zip(pricing.kinds, owned, strict=True)
        ),
        embedding=ends[0],
        head=ends[1],
        first_gather=nanoseconds(first),
        last_scatter=nanoseconds(last),
        p2p=nanoseconds(stage_transfer(context)),
        budget=np.floor(budget_bytes(pricing, meshes) / BLOCK).astype(np.int64),
        scatter_every=scatter_every(pricing, meshes),
        slowdown=pricing.profile.step_factor * straggler_factor(pricing, meshes),
        moments=moments,
        idle=tuple(
            IdleColumns.of(at, meshes) for at in moments if timed and binds(at.name)
        ),
    )


def _ends(context: Context, data: DataGroups) -> tuple[EndColumns, EndColumns]:
    """Embedding and head, with what ZeRO-3 keeps whole of them."""
    pricing, meshes = context.pricing, context.meshes
    first, last = root_bytes(pricing, meshes)
    embedding = _end(data, embedding_end(context), embedding_owned(pricing, meshes))
    head = _end(data, head_end(context), head_owned(pricing, meshes))
    return (
        _with_root(embedding, first, meshes.zeros()),
        _with_root(head, last, head_buffers(pricing, meshes)),
    )


def _moments(
    context: Context,
    owned: list[Owned],
    layers: tuple[Ints, Ints],
    ends: tuple[EndColumns, EndColumns],
) -> tuple[Moment, ...]:
    """Idle moments of what the table already has in whole blocks."""
    pricing, meshes = context.pricing, context.meshes
    units = [
        Held.of(pricing, own, meshes, saved, transient)
        for own, saved, transient in zip(owned, *layers, strict=True)
    ]
    embedding, head = (
        Held.of(pricing, own(pricing, meshes), meshes, [end.saved], [end.transient])
        for own, end in zip((embedding_owned, head_owned), ends, strict=True)
    )
    return moments_of(pricing, meshes, units, embedding, head)


def _layer_cell(
    context: Context, data: DataGroups, layer: LayerKind, owned: Owned, name: str
) -> tuple[Ints, Ints, Ints, Ints]:
    """Forward, backward [ns], saved and transient [block] of one table cell."""
    pricing, meshes = context.pricing, context.meshes
    kind = pricing.recipe.kind(name)
    forward, backward = _layer_times(context, data, layer, owned, name)
    saved = saved_bytes(pricing, layer, kind, meshes)
    own = transient_bytes(pricing, layer, kind, meshes)
    return (
        nanoseconds(forward),
        nanoseconds(backward),
        blocks(saved),
        blocks(working_bytes(pricing, owned, meshes, saved, own)),
    )


def _no_times(data: DataGroups) -> tuple[Floats, Floats]:
    """Two columns of a table that is filled for its memory alone. [s]."""
    return data.meshes.zeros(), data.meshes.zeros()


def _layer_times(
    context: Context, data: DataGroups, layer: LayerKind, owned: Owned, name: str
) -> tuple[Floats, Floats]:
    """Forward and backward of a layer, where times are wanted. [s]."""
    if not data.timed:
        return _no_times(data)
    forward, backward = layer_parts(context, data, layer, owned, name)
    return forward.total, backward.total


def layer_parts(
    context: Context, data: DataGroups, layer: LayerKind, owned: Owned, name: str
) -> tuple[Parts, Parts]:
    """Time of a layer by cause, parameter gathers of ZeRO-3 included.

    Under ZeRO-3 a layer's gather runs beside the layer before it. The excess over the
    layer's own time shows, and the overlap slows compute by the contention factor:
    ``max(0, t_AG - f) + kappa min(t_AG, f)``. In the backward the reduce-scatter joins.

    Returns:
        Forward and backward, by cause. [s], shape (meshes,)
    """
    kind = context.pricing.recipe.kind(name)
    passes = layer_time(context, layer, kind)
    forward, backward = sharded_parts(data, owned, *passes)
    return with_reference(context.pricing, forward), backward


def _end(data: DataGroups, end: End, owned: Owned) -> EndColumns:
    """Round one end's costs."""
    forward, backward = _end_times(data, end, owned)
    return EndColumns(
        forward=nanoseconds(forward),
        backward=nanoseconds(backward),
        saved=blocks(end.saved),
        transient=blocks(end.transient),
        unit=unit_costs(data, owned, end.weight, end.pending),
    )


def _end_times(data: DataGroups, end: End, owned: Owned) -> tuple[Floats, Floats]:
    """Forward and backward of an end, where times are wanted. [s]."""
    if not data.timed:
        return _no_times(data)
    forward, backward = sharded_parts(data, owned, end.forward, end.backward)
    return with_reference(data.pricing, forward).total, backward.total


def _with_root(end: EndColumns, root: Floats, ahead: Floats) -> EndColumns:
    """Add to an end what ZeRO-3 keeps whole of it, always and in its own backward."""
    transient: Ints = end.transient + blocks(ahead)
    static: Ints = end.unit.static + blocks(root)
    return replace(end, transient=transient, unit=replace(end.unit, static=static))
