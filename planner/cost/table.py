"""Fills the one table: integer costs of every mesh, layer kind and recompute kind."""

from dataclasses import dataclass

import numpy as np

from planner.cost import collectives as wire
from planner.cost import meshes as axes
from planner.cost.activations import (
    saved_bytes,
    sequence_split,
    tokens,
    transient_bytes,
)
from planner.cost.ends import End, embedding_end, head_end
from planner.cost.kernels import ELEMENT
from planner.cost.layers import Context, Parts, layer_time
from planner.cost.meshes import Floats, Ints, Meshes
from planner.cost.room import budget_bytes
from planner.cost.states import (
    DataGroups,
    Owned,
    embedding_owned,
    gather_time,
    head_owned,
    layer_owned,
    optimizer_time,
    scatter_time,
    state_bytes,
)
from planner.cost.workload import Workload
from planner.models.blocks import LayerKind
from planner.specs.table import BLOCK, EndCosts, LayerCosts, StageCosts

NANO = 1e9
ACCUMULATOR = 4
"""Bytes of one gradient that waits, whole, for its reduce-scatter. [B]"""


@dataclass(frozen=True)
class Unit:
    """Data-parallel and state costs of one unit, shape (meshes,). ns and blocks."""

    static: Ints
    accumulated: Ints
    gather: Ints
    scatter: Ints
    optimizer: Ints


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

    workload: Workload
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

    def __len__(self) -> int:
        return len(self.meshes)

    @property
    def extra_layers(self) -> int:
        """Layers above the balanced count that the declared class allows. [1]."""
        return 1 if self.workload.search.space == "full" else 0

    def stage_costs(
        self, row: int, *, schedule: str, vpp: int, menu: tuple[int, ...]
    ) -> StageCosts:
        """Cut out the inner problem of one mesh.

        Args:
            row: Index of the mesh. [1]
            schedule: Name of a schedule. [text]
            vpp: Virtual chunks per pipeline rank. [1]
            menu: Recompute kinds that layers may choose from. [1]

        Returns:
            The integers that solver, simulator and brute force share.
        """
        profile = self.workload.profile
        return StageCosts(
            schedule=schedule,
            pp=int(self.meshes.pp[row]),
            vpp=vpp,
            micro_batches=int(self.meshes.micro_batches[row]),
            runs=self.workload.runs,
            menu=tuple(self.menu[index] for index in menu),
            layers=tuple(
                self._layer(kind, row, menu) for kind in range(len(self.workload.kinds))
            ),
            embedding=_end_costs(self.embedding, row),
            head=_end_costs(self.head, row),
            first_gather=int(self.first_gather[row]),
            last_scatter=int(self.last_scatter[row]),
            p2p=int(self.p2p[row]),
            scatter_every=int(self.scatter_every[row]),
            overlap_gather=profile.overlap_param_gather,
            overlap_scatter=profile.overlap_grad_reduce,
            budget=int(self.budget[row]),
            slowdown=float(self.slowdown[row]),
            extra_layers=self.extra_layers,
        )

    def _layer(self, kind: int, row: int, menu: tuple[int, ...]) -> LayerCosts:
        unit = self.units[kind]

        def picked(column: Ints) -> tuple[int, ...]:
            return tuple(int(column[kind, entry, row]) for entry in menu)

        return LayerCosts(
            forward=picked(self.forward),
            backward=picked(self.backward),
            saved=picked(self.saved),
            transient=picked(self.transient),
            static=int(unit.static[row]),
            accumulated=int(unit.accumulated[row]),
            gather=int(unit.gather[row]),
            scatter=int(unit.scatter[row]),
            optimizer=int(unit.optimizer[row]),
        )


def _end_costs(end: EndColumns, row: int) -> EndCosts:
    return EndCosts(
        forward=int(end.forward[row]),
        backward=int(end.backward[row]),
        saved=int(end.saved[row]),
        transient=int(end.transient[row]),
        static=int(end.unit.static[row]),
        accumulated=int(end.unit.accumulated[row]),
        gather=int(end.unit.gather[row]),
        scatter=int(end.unit.scatter[row]),
        optimizer=int(end.unit.optimizer[row]),
    )


def nanoseconds(time: Floats) -> Ints:
    """Round times to whole nanoseconds, once.

    Args:
        time: Times. [s]

    Returns:
        Times. [ns]
    """
    return np.rint(time * NANO).astype(np.int64)


def blocks(size: Floats) -> Ints:
    """Round sizes up to whole allocator blocks, once.

    Args:
        size: Sizes. [B]

    Returns:
        Sizes. [block]
    """
    return np.ceil(size / BLOCK).astype(np.int64)


def fill_table(workload: Workload, meshes: Meshes, menu: tuple[str, ...]) -> CostTable:
    """Price every mesh at once.

    Args:
        workload: The job.
        meshes: The outer tuples of the space.
        menu: Recompute kinds to price. [text]

    Returns:
        The table of integers.
    """
    context = Context.of(workload, meshes)
    data = DataGroups.of(workload, meshes, context.links)
    owned = [layer_owned(kind, meshes) for kind in workload.kinds]
    cells = [
        [_layer_cell(context, data, layer, own, name) for name in menu]
        for layer, own in zip(workload.kinds, owned, strict=True)
    ]

    def column(index: int) -> Ints:
        return np.array([[cell[index] for cell in row] for row in cells])

    first, last = edge_transfers(data, owned)
    return CostTable(
        workload,
        meshes,
        menu,
        forward=column(0),
        backward=column(1),
        saved=column(2),
        transient=column(3),
        units=tuple(_unit(data, own) for own in owned),
        embedding=_end(data, embedding_end(context), embedding_owned(workload, meshes)),
        head=_end(data, head_end(context), head_owned(workload, meshes)),
        first_gather=nanoseconds(first),
        last_scatter=nanoseconds(last),
        p2p=nanoseconds(stage_transfer(context)),
        budget=np.floor(budget_bytes(workload, meshes) / BLOCK).astype(np.int64),
        scatter_every=scatter_every(workload, meshes),
        slowdown=straggler_factor(workload, meshes),
    )


def _layer_cell(
    context: Context, data: DataGroups, layer: LayerKind, owned: Owned, name: str
) -> tuple[Ints, Ints, Ints, Ints]:
    """Forward, backward [ns], saved and transient [block] of one table cell."""
    workload, meshes = context.workload, context.meshes
    kind = workload.recipe.kinds[name]
    forward, backward = layer_parts(context, data, layer, owned, name)
    return (
        nanoseconds(forward.total),
        nanoseconds(backward.total),
        blocks(saved_bytes(workload, layer, kind, meshes)),
        blocks(transient_bytes(workload, layer, kind, meshes)),
    )


def layer_parts(
    context: Context, data: DataGroups, layer: LayerKind, owned: Owned, name: str
) -> tuple[Parts, Parts]:
    """Time of a layer by cause, parameter gathers of ZeRO-3 included.

    Under ZeRO-3 a layer's gather runs beside the layer before it, so the excess
    over its own time shows, and the overlap slows compute by the contention
    factor: ``max(0, t_AG - f) + kappa min(t_AG, f)``; in the backward the
    reduce-scatter joins.

    Args:
        context: Shared columns.
        data: Data-parallel groups.
        layer: Kind of layer.
        owned: Its parameters on a rank.
        name: Recompute kind. [text]

    Returns:
        Forward and backward, by cause. [s], shape (meshes,)
    """
    workload = context.workload
    forward, backward = layer_time(context, layer, workload.recipe.kinds[name])
    sharded = context.meshes.zero == 3
    if not sharded.any():
        return forward, backward
    gather, scatter = gather_time(data, owned), scatter_time(data, owned)
    kappa = workload.profile.overlap_contention

    def shown(moved: Floats, beside: Floats) -> Floats:
        exposed = np.maximum(moved - beside, 0.0) + kappa * np.minimum(moved, beside)
        return np.where(sharded, exposed, 0.0)

    return (
        forward.plus("dp_comm", shown(gather, forward.total)),
        backward.plus("dp_comm", shown(gather + scatter, backward.total)),
    )


def _unit(data: DataGroups, owned: Owned) -> Unit:
    """Round one unit's states and data-parallel times."""
    workload, meshes = data.workload, data.meshes
    waiting = (meshes.zero == 2) & workload.recipe.accumulates_unsharded
    gather, scatter = unit_transfers(data, owned)
    return Unit(
        static=blocks(state_bytes(workload, owned, meshes).total),
        accumulated=blocks(
            np.where(waiting, ACCUMULATOR * (owned.dense + owned.expert), 0.0)
        ),
        gather=nanoseconds(gather),
        scatter=nanoseconds(scatter),
        optimizer=nanoseconds(
            optimizer_time(workload, owned, meshes)
            + contention_time(data, gather, scatter)
        ),
    )


def unit_transfers(data: DataGroups, owned: Owned) -> tuple[Floats, Floats]:
    """Per-step gather and reduce-scatter of one unit outside the layers.

    ZeRO-0 gathers nothing; ZeRO-3 does both inside its layers.

    Args:
        data: Groups and rates.
        owned: Parameters of the unit on a rank.

    Returns:
        Gather and scatter. [s], shape (meshes,)
    """
    zero = data.meshes.zero
    gather = np.where((zero == 1) | (zero == 2), gather_time(data, owned), 0.0)
    return gather, np.where(zero < 3, scatter_time(data, owned), 0.0)


def contention_time(data: DataGroups, gather: Floats, scatter: Floats) -> Floats:
    """Compute lost to collectives that run beside it, once per step.

    Args:
        data: Groups and rates.
        gather: Gather of the unit. [s], shape (meshes,)
        scatter: One reduce-scatter of the unit. [s], shape (meshes,)

    Returns:
        Time. [s], shape (meshes,)
    """
    profile = data.workload.profile
    groups = -(-data.meshes.micro_batches // scatter_every(data.workload, data.meshes))
    beside = gather * profile.overlap_param_gather
    beside = beside + groups * scatter * profile.overlap_grad_reduce
    return profile.overlap_contention * beside


def edge_transfers(data: DataGroups, owned: list[Owned]) -> tuple[Floats, Floats]:
    """Gather before the first forward and scatter after the last backward.

    Args:
        data: Groups and rates.
        owned: Parameters of each layer kind on a rank.

    Returns:
        One layer's gather and scatter, the smallest kind's. [s], shape (meshes,)
    """
    zero = data.meshes.zero
    gathers = np.minimum.reduce([gather_time(data, own) for own in owned])
    scatters = np.minimum.reduce([scatter_time(data, own) for own in owned])
    return np.where(zero > 0, gathers, 0.0), scatters


def _end(data: DataGroups, end: End, owned: Owned) -> EndColumns:
    """Round one end's costs."""
    return EndColumns(
        forward=nanoseconds(end.forward.total),
        backward=nanoseconds(end.backward.total),
        saved=blocks(end.saved),
        transient=blocks(end.transient),
        unit=_unit(data, owned),
    )


def scatter_every(workload: Workload, meshes: Meshes) -> Ints:
    """Micro-batches per gradient reduce-scatter.

    All of them, unless the framework keeps gradients sharded between: then one
    group of p.

    Args:
        workload: The job.
        meshes: Any meshes.

    Returns:
        Micro-batches. [1], shape (meshes,)
    """
    grouped = workload.recipe.gradients_reduced_per_group & (meshes.zero == 2)
    every = np.where(grouped, meshes.pp, meshes.micro_batches)
    return np.minimum(every, meshes.micro_batches)


def stage_transfer(context: Context) -> Floats:
    """Time to hand one micro-batch's activations to the next stage.

    ``2 h tau sigma`` bytes; the tensor ranks send side by side.

    Args:
        context: Shared columns.

    Returns:
        Time, zero without a pipeline. [s], shape (meshes,)
    """
    workload, meshes = context.workload, context.meshes
    rate, crosses = axes.stage_bandwidth(workload.topology, meshes)
    rows = tokens(workload, meshes) * sequence_split(meshes)
    message = ELEMENT * workload.model.hidden * rows
    time = wire.send_time(context.links, message, rate, crosses)
    return np.where(meshes.pp > 1, time, 0.0)


def straggler_factor(workload: Workload, meshes: Meshes) -> Floats:
    """Slowest of n replicas over their mean: ``1 + sigma sqrt(2 ln n)``.

    Replicas that wait for each other: the data axis, at most one per node.

    Args:
        workload: The job.
        meshes: Any meshes.

    Returns:
        Factor on the step. [1], shape (meshes,)
    """
    nodes = max(workload.gpus // workload.topology.cluster.node.gpus_per_node, 1)
    replicas = np.clip(meshes.dp, 1, nodes)
    spread = np.sqrt(2.0 * np.log(replicas))
    return 1.0 + workload.profile.straggler * spread
