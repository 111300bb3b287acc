"""Ranks on the levels of the cluster: the groups of every axis, and a picture."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.document.blocks import Gpu, Node, Rack
from planner.hardware.graph.topology import ClusterTopology
from planner.specs.layouts.axes import MESH
from planner.specs.layouts.layout import Layout

Ints = NDArray[np.int64]
MOST_NODES = 48
"""Nodes of the picture. [1]"""
_HUES = (255.0, 55.0)
"""Hues of the first and of the last pipeline rank. [degree]"""


@dataclass(frozen=True)
class Ranks:
    """The ranks of a layout on one pool, with the index of each on every axis.

    Attributes:
        layout: Layout with the degrees of the pool. [-]
        stages: Pipeline ranks that the pool hosts. [1]
        topology: The pool's part of the cluster, used by these ranks. [-]
        name: Name of the pool; empty where there is one kind of node. [text]
    """

    layout: Layout
    stages: tuple[int, ...]
    topology: ClusterTopology
    name: str = ""

    @property
    def count(self) -> int:
        """GPUs of the pool that hold ranks. [1]."""
        its = self.layout
        return its.tp * its.cp * its.dp * len(self.stages)

    def coordinates(self) -> dict[str, Ints]:
        """Index of every rank on every axis. [1], shape (ranks,) each."""
        its, stages = self.layout, len(self.stages)
        outer = (("dp", its.dp), ("pp", stages))
        if its.order.endswith("dp-pp"):
            outer = (outer[1], outer[0])
        shape = (*outer, ("cp", its.cp), ("tp", its.tp))
        grid = np.indices([size for _, size in shape]).reshape(len(shape), -1)
        return {
            name: axis.astype(np.int64)
            for (name, _), axis in zip(shape, grid, strict=True)
        }


def hosted(workload: Workload, layout: Layout) -> tuple[Ranks, ...]:
    """The ranks of a layout, on each pool that hosts any."""
    job = Pricing.of(workload, layout)
    if not layout.pools:
        places = [Ranks(layout, tuple(range(layout.pp)), job.topology)]
    else:
        places = [
            Ranks(layout.on_pool(pool), pool.stages, part.topology, pool.pool)
            for pool, part in zip(layout.pools, job.parts, strict=True)
        ]
    return tuple(
        Ranks(p.layout, p.stages, p.topology.using(p.count), p.name) for p in places
    )


def level_names(ranks: Ranks) -> tuple[str, ...]:
    """Names of the levels of a cluster, innermost first."""
    cluster = ranks.topology.cluster
    node = cluster.node
    whole = node.scale_up_domain == node.gpus_per_node
    domain = "node" if whole else "scale-up domain"
    return (domain, *(tier.name for tier in cluster.spec.tiers))


def reaches(ranks: Ranks) -> list[tuple[str, int, tuple[int, ...]]]:
    """Number of units of each level that the widest group of every axis touches.

    Returns:
        Axis, ranks of a group, units by level; 1 where groups stay inside one unit.
    """
    levels = len(level_names(ranks))
    units = [
        ranks.topology.fabric.unit_of(level, np.arange(ranks.count))
        for level in range(levels)
    ]
    found = []
    for name, size, group in _groups(ranks):
        touched = tuple(_widest(group, unit) for unit in units)
        found.append((name, size, touched))
    return found


def _groups(ranks: Ranks) -> Iterator[tuple[str, int, Ints]]:
    """Every axis of more than one rank, with size and the group of each rank."""
    its, at = ranks.layout, ranks.coordinates()
    outer = max(its.dp_shard // its.cp, 1)
    every = np.arange(ranks.count)
    inner = its.etp * its.ep
    axes = (
        ("tensor", its.tp, _key(at["pp"], at["dp"], at["cp"])),
        ("context", its.cp, _key(at["pp"], at["dp"], at["tp"])),
        ("expert", its.ep, every // inner * its.etp + every % its.etp),
        ("pipeline", len(ranks.stages), _key(at["dp"], at["cp"], at["tp"])),
        ("sharded states", its.cp * outer, _key(at["pp"], at["dp"] // outer, at["tp"])),
        ("data", its.dp, _key(at["pp"], at["cp"], at["tp"])),
    )
    yield from (axis for axis in axes if axis[1] > 1)


def _key(*columns: Ints) -> Ints:
    """One number for each row, equal for equal rows alone."""
    key = np.zeros_like(columns[0])
    for column in columns:
        key = key * (int(column.max()) + 1) + column
    return key


def _widest(group: Ints, unit: Ints) -> int:
    """Most units that one group touches."""
    width = int(unit.max()) + 1
    pairs = np.unique(group * width + unit)
    return int(np.bincount(np.unique(pairs // width, return_inverse=True)[1]).max())


def picture(ranks: Ranks, most: int = MOST_NODES) -> tuple[tuple[Rack, ...], int]:
    """The nodes in which the first pipeline replica lies.

    Returns:
        Racks with the drawn nodes, and number of the replica's nodes left out. [1]
    """
    at = ranks.coordinates()
    first = at["dp"] == 0
    fabric = ranks.topology.fabric
    every = np.arange(ranks.count)
    domain = fabric.unit_of(0, every)
    above = fabric.unit_of(1, every) if fabric.tiers else np.zeros_like(every)
    wanted = np.unique(domain[first])
    shown = wanted[:most]
    racks: dict[int, list[Node]] = {}
    for unit in shown.tolist():
        members = np.flatnonzero(domain == unit)
        node = _node(ranks, unit, members, at)
        racks.setdefault(int(above[members[0]]), []).append(node)
    names = level_names(ranks)
    tier = names[1] if len(names) > 1 else "cluster"
    drawn = tuple(Rack(f"{tier} {k}", tuple(nodes)) for k, nodes in racks.items())
    return drawn, len(wanted) - len(shown)


def _node(ranks: Ranks, unit: int, members: Ints, at: dict[str, Ints]) -> Node:
    gpus = tuple(_gpu(ranks, int(rank), at) for rank in members)
    wide = min(8, len(gpus)) if len(gpus) <= 32 else 12
    return Node(f"{level_names(ranks)[0]} {unit}", wide, gpus)


def _gpu(ranks: Ranks, rank: int, at: dict[str, Ints]) -> Gpu:
    stage = ranks.stages[int(at["pp"][rank])]
    pp = max(ranks.layout.pp, max(ranks.stages) + 1)
    start, end = _HUES
    hue = start + (end - start) * stage / max(pp - 1, 1)
    within = [axis.name for axis in MESH if axis.name != "pp"]
    place = ", ".join(f"{axis} {int(at[axis][rank])}" for axis in within)
    title = f"rank {rank}: pp {stage}, {place}"
    return Gpu(stage, bool(at["dp"][rank] == 0), round(hue), title)


def shares(ranks: Ranks) -> list[str]:
    """Groups of the layout inside and across the levels, in words."""
    names = level_names(ranks)
    found = reaches(ranks)
    if not found:
        return ["The layout has one rank: nothing is exchanged."]
    lines = []
    for level, name in enumerate(names):
        inside = [axis for axis, _, units in found if units[level] == 1]
        before = [axis for axis, _, units in found if level and units[level - 1] == 1]
        new = [axis for axis in inside if axis not in before]
        if new:
            lines.append(f"Inside one {name}: {_and(new)} groups.")
    beyond = [axis for axis, _, units in found if units[-1] > 1]
    if beyond:
        lines.append(f"Across {_plural(names[-1])}: {_and(beyond)} groups.")
    return lines


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _plural(name: str) -> str:
    return f"{name}s"
