"""The outer tuples of a space as columns, and the groups that they imply."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from planner.hardware.graph.placement import Levels
from planner.hardware.graph.topology import ClusterTopology
from planner.specs.layouts.axes import ORDERS
from planner.specs.layouts.context import CP_KINDS, PLAIN, inner_degree
from planner.specs.layouts.layout import Layout

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
"""A column: one value for each mesh, as ``Ints`` and ``Column`` are."""
Number = Floats | float
"""A column, or one number for all meshes."""
Rows = npt.NDArray[np.int32]
"""Meshes as rows of their fields. [1], shape (meshes, fields)"""

PP_INSIDE = ORDERS.index("tp-cp-ep-pp-dp")
INNER_DEGREES = np.array([inner_degree(kind, 1) for kind in CP_KINDS])
"""Ranks that deal heads out inside a ring, by kind. [1]"""
ULYSSES = PLAIN.index("ulysses")


@dataclass(frozen=True)
class Meshes:
    """One row per mesh; every column is an integer array of shape (meshes,).

    ``sp`` is 0 or 1; ``cp_kind`` and ``order`` index ``CP_KINDS`` and
    ``ORDERS``; the schedule and its chunks are no part of a mesh.
    """

    tp: Ints
    sp: Ints
    pp: Ints
    cp: Ints
    cp_kind: Ints
    ep: Ints
    etp: Ints
    dp: Ints
    dp_shard: Ints
    zero: Ints
    hpz: Ints
    micro_batch: Ints
    micro_batches: Ints
    order: Ints

    def __len__(self) -> int:
        return len(self.tp)

    def zeros(self) -> Floats:
        """Zero for each mesh."""
        return np.zeros(len(self))

    def take(self, rows: Ints | npt.NDArray[np.bool_]) -> "Meshes":
        """Keep some rows.

        Args:
            rows: Indices or a mask. [1], shape (kept,) or (meshes,)

        Returns:
            The meshes of those rows, in that order.
        """
        return Meshes(*(getattr(self, f.name)[rows] for f in fields(self)))

    @classmethod
    def from_rows(cls, rows: Sequence[tuple[int, ...]] | Rows) -> "Meshes":
        """Build columns from rows in the order of the fields."""
        table = np.array(rows, dtype=np.int64).reshape(-1, len(fields(cls)))
        return cls(*(np.ascontiguousarray(column) for column in table.T))

    @property
    def packed(self) -> Rows:
        """Meshes as rows, in half the memory. [1], shape (meshes, fields)."""
        columns = [getattr(self, f.name) for f in fields(self)]
        return np.stack(columns, axis=1).astype(np.int32)

    @classmethod
    def of_layout(cls, layout: Layout) -> "Meshes":
        """Columns of length one for a given layout."""
        row = (
            layout.tp,
            int(layout.sp),
            layout.pp,
            layout.cp,
            CP_KINDS.index(layout.cp_kind),
            layout.ep,
            layout.etp,
            layout.dp,
            layout.dp_shard,
            layout.zero_stage,
            layout.hpz,
            layout.micro_batch,
            layout.grad_accum,
            ORDERS.index(layout.order),
        )
        return cls.from_rows([row])

    @property
    def ulysses(self) -> Ints:
        """Neighbouring context ranks that deal heads out. [1], shape (meshes,)."""
        is_ulysses = self.cp_kind == ULYSSES
        return np.where(is_ulysses, self.cp, INNER_DEGREES[self.cp_kind])

    @property
    def gpus(self) -> Ints:
        """Ranks, ``tp pp cp dp``. [1], shape (meshes,)."""
        return self.tp * self.pp * self.cp * self.dp

    @property
    def block(self) -> Ints:
        """Ranks of a stage, ``tp cp dp``. [1], shape (meshes,)."""
        return self.tp * self.cp * self.dp

    @property
    def dp_stride(self) -> Ints:
        """Ranks between neighbours of the data axis. [1], shape (meshes,)."""
        inner = self.tp * self.cp
        return np.where(self.order == PP_INSIDE, inner * self.pp, inner)

    @property
    def pp_stride(self) -> Ints:
        """Ranks between neighbouring stages. [1], shape (meshes,)."""
        inner = self.tp * self.cp
        return np.where(self.order == PP_INSIDE, inner, inner * self.dp)

    @property
    def expert_dp(self) -> Ints:
        """Copies of every expert, ``tp cp dp / (etp ep)``. [1], shape (meshes,)."""
        return self.tp * self.cp * self.dp // (self.etp * self.ep)

    @cached_property
    def expert_shard(self) -> Ints:
        """Ranks over which one expert's states are divided. [1], shape (meshes,)."""
        shard = self.dp_shard * self.tp // (self.etp * self.ep)
        return np.clip(shard, 1, self.expert_dp)


@dataclass(frozen=True)
class Groups:
    """Sizes and rates that the communicators of one axis see, one row per mesh."""

    size: Ints
    ranks_per_domain: Ints
    domains: Ints
    intra: npt.NDArray[np.bool_]
    ring_bandwidth: Floats
    all_to_all_bandwidth: Floats
    off_domain: Floats
    inside_share: Floats
    """Ring rate inside a domain over the rate of a group that fills the domain. [1]"""


def _columns(
    topology: ClusterTopology,
    ranks: Ints,
    levels: Ints,
    look_up: Callable[[ClusterTopology, Levels], tuple[float, ...]],
) -> npt.NDArray[np.float64]:
    """Call *look_up* once per distinct row of levels and spread the answers.

    The topology has the mesh's own ranks, the other GPUs being idle.
    """
    if not len(levels):
        return np.zeros((0, 8))
    rows = np.concatenate([ranks[:, None], levels], axis=1)
    if len(rows) == 1:
        return np.array(
            [_answer(topology, rows[0].tolist(), look_up)], dtype=np.float64
        )
    _, first, inverse = np.unique(_keys(rows), return_index=True, return_inverse=True)
    answers = [_answer(topology, row, look_up) for row in rows[first].tolist()]
    return np.array(answers, dtype=np.float64)[inverse]


def _answer(
    topology: ClusterTopology,
    row: list[int],
    look_up: Callable[[ClusterTopology, Levels], tuple[float, ...]],
) -> tuple[float, ...]:
    """Answer for one mesh: its ranks, then size and stride of every level."""
    return look_up(
        topology.using(row[0]), tuple(zip(row[1::2], row[2::2], strict=True))
    )


def _keys(levels: Ints) -> Ints:
    """One number per row, equal for equal rows alone; small enough to go on. [1]."""
    keys = np.zeros(len(levels), dtype=np.int64)
    most = 1
    for column in levels.T:
        width = int(column.max()) + 1
        if most * width > np.iinfo(np.int64).max:
            _, keys = np.unique(keys, return_inverse=True)
            most = len(levels)
        keys, most = keys * width + column, most * width
    return keys


def groups(
    topology: ClusterTopology, meshes: Meshes, *levels: tuple[Ints, Ints]
) -> Groups:
    """Look up the groups of one axis for every mesh.

    Args:
        levels: (size, stride) columns, innermost first. [1], shape (meshes,)
    """

    def view(here: ClusterTopology, key: Levels) -> tuple[float, ...]:
        kept = tuple(level for level in key if level[0] > 1) or ((1, 1),)
        seen = here.group(kept)
        return (
            seen.size,
            seen.ranks_per_domain,
            seen.domains,
            seen.intra,
            seen.ring_bandwidth,
            seen.all_to_all_bandwidth,
            seen.off_domain_fraction,
            seen.scale_up_bandwidth / topology.fabric.full_bandwidth,
        )

    keys = np.stack([column for level in levels for column in level], axis=1)
    table = _columns(topology, _ranks(topology, meshes), keys, view)
    counts = table[:, :3].astype(np.int64)
    return Groups(
        counts[:, 0],
        counts[:, 1],
        counts[:, 2],
        table[:, 3] > 0,
        table[:, 4],
        table[:, 5],
        table[:, 6],
        table[:, 7],
    )


def _ranks(topology: ClusterTopology, meshes: Meshes) -> Ints:
    """Ranks on the cluster, or the pool, whose placement counts. [1]."""
    return meshes.block * topology.hosted(meshes.block, meshes.pp)


def world_groups(topology: ClusterTopology, meshes: Meshes) -> Groups:
    """Groups of all ranks that are on this cluster or pool."""
    ranks = _ranks(topology, meshes)
    return groups(topology, meshes, (ranks, np.ones_like(ranks)))


def stage_groups(topology: ClusterTopology, meshes: Meshes) -> Groups:
    """Groups of ranks at equal places in the stages of this cluster or pool."""
    stages = topology.hosted(meshes.block, meshes.pp)
    return groups(topology, meshes, (stages, meshes.pp_stride))


def tensor_groups(topology: ClusterTopology, meshes: Meshes) -> Groups:
    """Groups of the tensor axis: always innermost."""
    return groups(topology, meshes, (meshes.tp, np.ones_like(meshes.tp)))


def expert_tensor_groups(topology: ClusterTopology, meshes: Meshes) -> Groups:
    """Groups over which one expert is split."""
    return groups(topology, meshes, (meshes.etp, np.ones_like(meshes.etp)))


def context_groups(topology: ClusterTopology, meshes: Meshes) -> Groups:
    """Groups of the context axis: just outside tensor."""
    return groups(topology, meshes, (meshes.cp, meshes.tp))


def ulysses_groups(topology: ClusterTopology, meshes: Meshes) -> Groups:
    """Groups that deal heads out: neighbours on the context axis."""
    return groups(topology, meshes, (meshes.ulysses, meshes.tp))


def outer_context_groups(topology: ClusterTopology, meshes: Meshes) -> Groups:
    """Groups that see each other's keys: what is left of the context axis."""
    inner = meshes.ulysses
    return groups(topology, meshes, (meshes.cp // inner, meshes.tp * inner))


def expert_groups(topology: ClusterTopology, meshes: Meshes) -> Groups:
    """Groups over which the experts are dealt out: just outside expert tensor."""
    return groups(topology, meshes, (meshes.ep, meshes.etp))


def shard_groups(topology: ClusterTopology, meshes: Meshes) -> Groups:
    """Groups over which dense states are divided: context, then data."""
    outer = meshes.dp_shard // meshes.cp
    return groups(topology, meshes, (meshes.cp, meshes.tp), (outer, meshes.dp_stride))


def copy_groups(topology: ClusterTopology, meshes: Meshes) -> Groups:
    """Groups of neighbouring ranks that divide a second copy of the weights."""
    return groups(topology, meshes, (meshes.hpz, meshes.tp))


def replica_groups(topology: ClusterTopology, meshes: Meshes) -> Groups:
    """Groups of equal shards under hybrid sharding: the rest of data."""
    shards = np.maximum(meshes.dp_shard // meshes.cp, 1)
    return groups(topology, meshes, (meshes.dp // shards, meshes.dp_stride * shards))


def expert_data_groups(topology: ClusterTopology, meshes: Meshes) -> Groups:
    """Groups that hold copies of the same experts.

    With the pipeline inside data, ``etp ep = tp cp`` and the copies lie where
    the replicas do.
    """
    inner = meshes.etp * meshes.ep
    outside = (meshes.order == PP_INSIDE) & (meshes.pp > 1)
    stride = np.where(outside, meshes.dp_stride, inner)
    size = np.where(outside, meshes.dp, meshes.expert_dp)
    return groups(topology, meshes, (size, stride))


def stage_bandwidth(
    topology: ClusterTopology, meshes: Meshes
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Line rate between neighbouring stages, and whether it leaves the domain.

    Returns:
        Bandwidth [B/s] and crossing flags, both of shape (meshes,).
    """

    def view(here: ClusterTopology, key: Levels) -> tuple[float, ...]:
        size, stride = key[0]
        seen = here.point_to_point(stride=stride, size=size)
        return seen.bandwidth, seen.crosses_domain

    stages = topology.hosted(meshes.block, meshes.pp)
    keys = np.stack([stages, np.where(stages == 1, 1, meshes.pp_stride)], axis=1)
    table = _columns(topology, _ranks(topology, meshes), keys, view)
    return table[:, 0], table[:, 1] > 0
