"""The numbers of a cluster that decide bandwidths, and the unit of each rank.

Ranks fill the GPUs in service in the order of their nodes. A level is the scale-up
domains (0) or the units of tier i (i + 1). Where every unit but the last is whole,
rank r sits in unit r // GPUs. Where pods differ in size, or nodes are out of service,
the sizes are listed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from planner.hardware.catalog import Cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.reading.quantities import BytesPerSecond


@dataclass(frozen=True)
class Fabric:
    """The numbers of a cluster that decide bandwidths; hashable.

    Attributes:
        gpus: GPUs that hold ranks. [1]
        domain: GPUs of a scale-up domain. [1]
        scale_up: Scale-up link rate per GPU. [B/s]
        nic_share: NIC line rate per GPU. [B/s]
        tiers: (GPUs of a unit, oversubscription) per tier, leaf first. [1]
        mesh_link: Rate between two GPUs of a mesh, None where a switch or a bus
            joins the domain. [B/s]
        module: GPUs of a module, whose links to each other are faster. [1]
        module_link: Rate between two GPUs of a module. [B/s]
        staging: Rate into and out of host memory that the ranks of a domain share
            for their copies; infinite when copies do not go through it. [B/s]
        uneven: By level, the ranks of each unit, where a unit before the last is
            not whole; else empty. [1]
    """

    gpus: int
    domain: int
    scale_up: BytesPerSecond
    nic_share: BytesPerSecond
    tiers: tuple[tuple[int, float], ...]
    mesh_link: BytesPerSecond | None = None
    module: int = 1
    module_link: float = 0.0
    staging: float = inf
    uneven: tuple[tuple[int, ...], ...] = ()

    @property
    def full_bandwidth(self) -> float:
        """Ring line rate [B/s] of a group that fills a domain with GPUs of its own.

        min(link rate, staging / domain); what plateaus are measured against.
        """
        return min(self.scale_up, self.staging / self.domain)

    def peer_link(self, *, together: bool) -> float:
        """Rate of the link between two GPUs of a domain.

        Returns:
            The rate; that of a GPU's link where a switch or a bus joins them. [B/s]
        """
        if self.mesh_link is None:
            return self.scale_up
        return self.module_link if together else self.mesh_link

    def size(self, level: int) -> int:
        """GPUs [1] of a whole unit of a level: 0 the domains, i + 1 tier i."""
        return self.tiers[level - 1][0] if level else self.domain

    def listed(self, level: int) -> tuple[int, ...]:
        """Ranks of each unit of a level where they are uneven, else none. [1]."""
        return self.uneven[level] if self.uneven else ()

    def unit_of(self, level: int, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Unit of a level that each rank sits in.

        Args:
            level: 0 for the domains, i + 1 for tier i. [1]
        """
        if not self.listed(level):
            return ranks // self.size(level)
        ends = np.cumsum(self.listed(level))
        return np.asarray(np.searchsorted(ends, ranks, side="right"))

    def ranks_of(self, level: int) -> NDArray[np.int64]:
        """Ranks of every unit of a level, the last perhaps filled in part.

        Args:
            level: 0 for the domains, i + 1 for tier i. [1]

        Returns:
            Ranks. [1], shape (units,)
        """
        if self.listed(level):
            return np.array(self.listed(level))
        size = self.size(level)
        return np.minimum(size, self.gpus - np.arange(0, self.gpus, size))


def fabric_of(cluster: Cluster, gpus: int | None = None) -> Fabric:
    """The fabric that the first GPUs in service of a cluster see."""
    link, domain = cluster.scale_up, cluster.node.scale_up_domain
    used = cluster.gpus if gpus is None else gpus
    return Fabric(
        gpus=used,
        domain=domain,
        scale_up=link.bandwidth,
        nic_share=cluster.nic_share,
        tiers=tuple((t.gpus, t.oversubscription) for t in cluster.spec.tiers),
        mesh_link=link.per_link if link.topology == "mesh" else None,
        module=link.module or 1,
        module_link=link.module_link or 0.0,
        # Each byte is written to host memory and read from it: half each way.
        staging=inf if link.peer_to_peer else domain * link.bandwidth / 2,
        uneven=_uneven(cluster, used),
    )


def _uneven(cluster: Cluster, used: int) -> tuple[tuple[int, ...], ...]:
    """Ranks of the units of every level where some are uneven, else nothing."""
    spec, per_node = cluster.spec, cluster.node.gpus_per_node
    if not spec.dead and not any(tier.units for tier in spec.tiers):
        return ()
    sizes = [cluster.node.scale_up_domain, *(tier.gpus for tier in spec.tiers)]
    units = [(), *(tier.units for tier in spec.tiers)]
    levels = [
        _level(_nodes_by_unit(spec, max(size // per_node, 1), own), per_node, used)
        for size, own in zip(sizes, units, strict=True)
    ]
    pairs = zip(levels, sizes, strict=True)
    uneven = tuple(() if is_even(level, size) else level for level, size in pairs)
    return uneven if any(uneven) else ()


def is_even(ranks: Sequence[int], size: int) -> bool:
    """Tell if all units but the last are whole.

    Returns:
        True where rank // size is the unit.
    """
    return all(count == size for count in ranks[:-1]) and ranks[-1] <= size


def _nodes_by_unit(spec: ClusterSpec, size: int, own: Sequence[int]) -> list[int]:
    """Nodes in service of every unit of a level."""
    nodes = np.arange(spec.nodes)
    ends = np.cumsum(own) if own else np.arange(size, spec.nodes + size, size)
    unit = np.searchsorted(ends, nodes, side="right")
    alive = np.ones(spec.nodes, dtype=bool)
    alive[list(spec.dead)] = False
    counts: list[int] = np.bincount(unit[alive]).tolist()
    return counts


def _level(nodes: Sequence[int], per_node: int, used: int) -> tuple[int, ...]:
    """Ranks of each unit in use, in order, when the first GPUs hold them."""
    counts: list[int] = []
    for count in nodes:
        here = min(count * per_node, used - sum(counts))
        counts += [here] if here > 0 else []
    return tuple(counts)
