"""The cluster as an explicit graph, and the bandwidth of traffic routed through it.

`ClusterTopology.group` and `.point_to_point` answer from `placement`. `.bottleneck`
routes every flow over the shortest path of the graph and counts the load on each
direction of each link. Tests hold the two answers against each other.

Each node of the graph is a tuple:

- ("gpu", r): GPU r.
- ("nvswitch", d): the switch of scale-up domain d. A mesh has none, but an edge between
  each two GPUs of a domain.
- ("bus", d): the bus of domain d.
- ("host-memory", d): host memory beyond the bus, where copies are staged.
- ("nic", r): the part of the node's NICs that GPU r has.
- (tier name, k): unit k of a tier.
- ("core", 0): the core above the last tier.

Every edge has `capacity`, one direction. [B/s]
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby, pairwise, permutations, product
from math import isfinite
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from planner.hardware.catalog import Cluster
from planner.hardware.graph.fabric import fabric_of
from planner.hardware.graph.placement import (
    GroupView,
    Levels,
    PointToPointView,
    check_levels,
    group_view,
    point_to_point_view,
)

if TYPE_CHECKING:
    import networkx as nx

Pattern = Literal["ring", "all-to-all", "point-to-point"]
"""Traffic that a group makes."""

Vertex = tuple[str, int]
"""A node of the graph: kind and number."""

Flow = tuple[int, int, float]
"""Source rank, target rank, bytes per byte of the pattern's rate. [1]"""

CORE: Vertex = ("core", 0)


class ClusterTopology:
    """Places of ranks in a cluster, and the bandwidth that they see.

    Attributes:
        cluster: The resolved cluster. [-]
        fabric: Numbers of the cluster that decide bandwidths. [-]
        shared: True for one of several pools that a pipeline passes through. [-]
    """

    def __init__(
        self, cluster: Cluster, gpus: int | None = None, *, shared: bool = False
    ) -> None:
        self.cluster = cluster
        self.fabric = fabric_of(cluster, gpus)
        self.shared = shared
        self._parts: dict[int, ClusterTopology] = {}

    @property
    def gpus(self) -> int:
        """GPUs [1] that hold ranks."""
        return self.fabric.gpus

    def using(self, gpus: int) -> "ClusterTopology":
        """Topology of the cluster with ranks on its first GPUs in service alone."""
        if gpus > self.cluster.gpus:
            raise ValueError(
                f"{gpus} ranks on {self.cluster.gpus} GPUs in service of "
                f"{self.cluster.spec.name}",
            )
        if gpus == self.gpus:
            return self
        if gpus not in self._parts:
            self._parts[gpus] = ClusterTopology(self.cluster, gpus)
        return self._parts[gpus]

    def hosted(
        self, block: NDArray[np.int64], stages: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Pipeline stages whose ranks decide the bandwidth of groups here.

        Without sharing these are all stages of the pipeline. A pool that shares a
        pipeline counts as many stages as it holds, whatever part of them it hosts.
        """
        if not self.shared:
            return stages
        return np.maximum(self.gpus // block, 1)

    def group(self, levels: Levels) -> GroupView:
        """Spans and bandwidths of the groups of an axis while all of them talk.

        Raises:
            ValueError: The levels do not nest, or do not tile the cluster.
        """
        return group_view(self.fabric, levels)

    def point_to_point(self, stride: int, size: int) -> PointToPointView:
        """Bandwidth from rank r to r + stride while all such pairs send.

        Raises:
            ValueError: The groups do not tile the cluster.
        """
        return point_to_point_view(self.fabric, stride, size)

    def graph(self) -> "nx.Graph[Vertex]":
        """The cluster as a graph: GPUs, NVSwitches, NICs, tier units, core.

        Returns:
            Graph with `capacity` on each edge, one direction. [B/s]
        """
        import networkx as nx  # noqa: PLC0415  # what prices needs no graph

        graph: nx.Graph[Vertex] = nx.Graph()
        self._join_domains(graph)
        for r in range(self.gpus):
            leaf = self._above(r, 0)
            graph.add_edge(("gpu", r), ("nic", r), capacity=self.fabric.nic_share)
            graph.add_edge(("nic", r), leaf, capacity=self.fabric.nic_share)
        for i, tier in enumerate(self.cluster.spec.tiers):
            first = 0
            for unit, present in enumerate(self.fabric.ranks_of(i + 1).tolist()):
                rate = present * self.fabric.nic_share / tier.oversubscription
                above = self._above(first, i + 1)
                graph.add_edge((tier.name, unit), above, capacity=rate)
                first += present
        return graph

    def _join_domains(self, graph: "nx.Graph[Vertex]") -> None:
        """Add the switch, mesh or bus that joins the GPUs of each domain."""
        fabric = self.fabric
        joint = "bus" if self.cluster.scale_up.topology == "bus" else "nvswitch"
        for r in range(self.gpus):
            d = self._domain(r)
            if fabric.mesh_link is None:
                graph.add_edge(("gpu", r), (joint, d), capacity=fabric.scale_up)
            else:
                for peer in range(max(0, r - fabric.domain), r):
                    if self._domain(peer) == d:
                        ends = ("gpu", r), ("gpu", peer)
                        near = r // fabric.module == peer // fabric.module
                        rate = fabric.peer_link(together=near)
                        graph.add_edge(*ends, capacity=rate)
            if self._staged:
                memory = ("host-memory", d)
                graph.add_edge((joint, d), memory, capacity=fabric.staging)

    @property
    def _staged(self) -> bool:
        """True if copies inside a domain go through host memory."""
        return isfinite(self.fabric.staging)

    def _above(self, rank: int, i: int) -> Vertex:
        """The unit of tier i above a rank, or the core above the last tier."""
        tiers = self.cluster.spec.tiers
        return (tiers[i].name, self._unit(i + 1, rank)) if i < len(tiers) else CORE

    @cached_property
    def _routes(self) -> "nx.Graph[Vertex]":
        """The graph, built once for routing."""
        return self.graph()

    def bottleneck(self, levels: Levels, pattern: Pattern) -> float:
        """Bandwidth of a pattern, from the busiest link of the explicit graph.

        rate = 1 / max over link directions of load / capacity

        Load is the traffic that the pattern at rate 1 puts on a link.

        - A ring sends 1 from each rank to the next. At a crossing the 1 is divided over
          the NICs of both domains. In a mesh the 1 is divided over the links to all
          peers of the group in the domain.
        - Point-to-point sends 1 from each rank to the next, without the wrap.
        - All-to-all sends 1 in all from the worst rank to peers outside its domain.
          Every rank sends an equal part to each such peer. NVSwitches are left out.

        Returns:
            Per-rank bandwidth while all groups talk. [B/s]

        Raises:
            ValueError: The levels do not nest, or do not tile the cluster.
        """
        check_levels(self.gpus, levels)
        groups = list(_groups(self.gpus, levels))
        flows = {
            "ring": self._ring,
            "all-to-all": self._all_to_all,
            "point-to-point": _to_the_next,
        }[pattern]
        idle = "full_bandwidth" if pattern != "all-to-all" else "nic_share"
        seconds = self._busiest(f for group in groups for f in flows(group))
        if pattern == "all-to-all" and seconds:
            seconds /= max(self._peers_outside(r, g) for g in groups for r in g)
        return 1 / seconds if seconds else float(getattr(self.fabric, idle))

    def _busiest(self, flows: Iterable[Flow]) -> float:
        """Longest load / capacity [s/B] over links, with every flow routed."""
        loads: defaultdict[tuple[Vertex, Vertex], float] = defaultdict(float)
        for source, target, weight in flows:
            for edge in self._route(source, target):
                loads[edge] += weight
        edges = self._routes.edges
        times = (load / edges[edge]["capacity"] for edge, load in loads.items())
        return max(times, default=0.0)

    def _route(self, source: int, target: int) -> list[tuple[Vertex, Vertex]]:
        """Edges from a GPU to another, by way of host memory where it stages."""
        stops: list[Vertex] = [("gpu", source), ("gpu", target)]
        if self._staged and self._domain(source) == self._domain(target):
            stops.insert(1, ("host-memory", self._domain(source)))
        import networkx as nx  # noqa: PLC0415

        legs = (nx.shortest_path(self._routes, a, b) for a, b in pairwise(stops))
        return [edge for leg in legs for edge in pairwise(leg)]

    def _domain(self, rank: int) -> int:
        """Scale-up domain of a rank."""
        return self._unit(0, rank)

    def _unit(self, level: int, rank: int) -> int:
        """Unit of a level that a rank sits in."""
        return int(self.fabric.unit_of(level, np.array(rank)))

    def _ring(self, group: Sequence[int]) -> Iterator[Flow]:
        """Flows of the ring through a group, in ascending order of ranks."""
        stays = [list(stay) for _, stay in groupby(group, self._domain)]
        if len(stays) == 1:
            yield from self._pass_on(group, closed=len(group) > 1)
            return
        for here, there in zip(stays, [*stays[1:], stays[0]], strict=True):
            yield from self._pass_on(here, closed=False)
            for source, target in product(here, there):
                yield source, target, 1 / (len(here) * len(there))

    def _pass_on(self, stay: Sequence[int], *, closed: bool) -> Iterator[Flow]:
        """Ring flows among ranks of one domain; a mesh has a ring for each peer."""
        if self.fabric.mesh_link is None:
            yield from _to_the_next([*stay, stay[0]] if closed else stay)
            return
        for source, target in permutations(stay, 2):
            yield source, target, 1 / (len(stay) - 1)

    def _all_to_all(self, group: Sequence[int]) -> Iterator[Flow]:
        """One byte from each rank to each peer outside its domain."""
        for source, target in permutations(group, 2):
            if self._domain(source) != self._domain(target):
                yield source, target, 1.0

    def _peers_outside(self, rank: int, group: Sequence[int]) -> int:
        """Ranks of the group in other domains than this rank's."""
        return sum(self._domain(peer) != self._domain(rank) for peer in group)


def _to_the_next(group: Sequence[int]) -> Iterator[Flow]:
    """One byte from each rank to the next one, none from the last."""
    return ((source, target, 1.0) for source, target in pairwise(group))


def _groups(gpus: int, levels: Levels) -> Iterator[list[int]]:
    """Ranks of each group, ascending."""
    steps = [range(0, size * stride, stride) for size, stride in reversed(levels)]
    for base in range(gpus):
        if all(base // stride % size == 0 for size, stride in levels):
            yield [base + sum(step) for step in product(*steps)]
