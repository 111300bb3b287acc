"""Nodes of a plan in the order of their ranks, and the pools that they belong to."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from planner.hardware.catalog import Cluster
from planner.specs.layouts.layout import Layout

LONGEST = 63
"""Longest value of a label of Kubernetes. [1]"""


@dataclass(frozen=True)
class Nodes:
    """Nodes of one pool, whose ranks follow each other.

    Attributes:
        pool: Name of the pool; empty where the layout names none. [text]
        cluster: The pool as a cluster. [-]
        first: Rank of the first node. [1]
        count: Nodes. [1]
        gpus: Ranks of each node. [1]
    """

    pool: str
    cluster: Cluster
    first: int
    count: int
    gpus: int

    @property
    def slug(self) -> str:
        """Name of the pool as a feature of Slurm or a label of Kubernetes. [text]."""
        plain = re.sub(r"[^A-Za-z0-9]+", "-", self.pool)
        return plain.strip("-")[:LONGEST].rstrip("-") or f"pool-{self.first}"

    @property
    def ranks(self) -> int:
        """Ranks of all these nodes. [1]."""
        return self.count * self.gpus


def placed(cluster: Cluster, layout: Layout) -> tuple[Nodes, ...]:
    """Nodes that a layout fills, pool by pool.

    The pipeline is the outermost axis of a layout on several pools, so the ranks of a
    pool follow each other, and with them its nodes.

    Returns:
        Nodes in the order of ranks; one entry where the layout names no pools. [-]
    """
    return tuple(_placed(cluster, layout))


def _placed(cluster: Cluster, layout: Layout) -> Iterator[Nodes]:
    # Pods of one fleet have the nodes of the fleet, which then lists no pools.
    pairs = zip(cluster.spec.pools, cluster.pools, strict=True)
    known = {spec.name: pool for spec, pool in pairs}
    hosting = [(its.pool, layout.gpus_on(its)) for its in layout.pools]
    first = 0
    for name, ranks in hosting or [("", layout.gpus)]:
        pool = known.get(name, cluster)
        gpus = min(pool.node.gpus_per_node, ranks)
        its = Nodes(name, pool, first, ranks // gpus, gpus)
        yield its
        first += its.count
