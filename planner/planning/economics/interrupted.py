"""Share of a stretch's wall time that interruptions and checkpoints leave."""

from dataclasses import dataclass
from math import exp, fsum, lgamma, log

from planner.planning.economics.goodput import effective_share, young_daly_interval
from planner.planning.economics.stretches import Stretch
from planner.planning.economics.terms import RunTerms

GIB = 2.0**30
LEAST = 1e-9
"""Least share of the time that trains in a run that always waits for nodes. [1]"""


@dataclass(frozen=True)
class Goodput:
    """Checkpoints, interruptions, and the share of the time that they leave.

    Attributes:
        share: Share of the wall time that trains. [1]
        between: Mean time between interruptions of the whole run. [s]
        interval: Time between checkpoints. [s]
        stall: Time that the run waits for one checkpoint. [s]
        write: Time to write one checkpoint to storage. [s]
    """

    share: float
    between: float
    interval: float
    stall: float
    write: float


def goodput(
    stretch: Stretch, terms: RunTerms, failures: float | None = None
) -> Goodput:
    """Effective share of the time under interruptions and checkpoints.

    ::

        M = failures / GPUs          tau = max(sqrt(2 C M), write if asynchronous)
        C = stall + copy             + write, if synchronous
        R = restart + read + (write if asynchronous)

    A checkpoint counts once it is written; an asynchronous checkpoint is that late.
    Broken nodes may be away for a repair time. Then the run stands while more nodes
    are away than are spare or idle.

    Args:
        stretch: Part of a run. [-]
        terms: Interruptions and checkpoints of the run. [-]
        failures: Time of one GPU between interruptions, in place of the terms'.
            [GPU-h]

    References:
        :mod:`planner.planning.economics.goodput`; the number of broken nodes is
        Poisson, M/G/infinity.
    """
    between = (failures or terms.failures.value) * 3600 / stretch.layout.gpus
    write, stall = write_time(stretch, terms), stall_time(stretch, terms)
    least = write if terms.asynchronous else 0.0
    interval = terms.interval or max(young_daly_interval(stall, between), least)
    again = terms.restart.value + write + least
    share = effective_share(stall, between, interval=interval, restart=again)
    standing = _standing(stretch, terms, between)
    return Goodput(share * (1 - standing), between, interval, stall, write)


def write_time(stretch: Stretch, terms: RunTerms) -> float:
    """Time of one checkpoint to storage, or back.

    Returns:
        Bytes over the rate of all writers. [s]
    """
    rate = terms.write_rate or terms.write_rate_per_gpu.value * stretch.layout.gpus
    return stretch.saved.total_gib * GIB / rate


def stall_time(stretch: Stretch, terms: RunTerms) -> float:
    """Time that the run waits for one checkpoint.

    Returns:
        The user's stall; else the fixed wait, the copy to the host, and the write
        where it is synchronous. [s]
    """
    if terms.stall_given is not None:
        return terms.stall_given
    copy = stretch.saved.per_rank_gib * GIB / terms.copy_rate.value
    write = 0.0 if terms.asynchronous else write_time(stretch, terms)
    return terms.stall.value + copy + write


def _standing(stretch: Stretch, terms: RunTerms, between: float) -> float:
    """Share of the time that more nodes are away than can be replaced."""
    if terms.repair is None:
        return 0.0
    away = terms.repair * terms.hardware.value / between
    if away <= 0:
        return 0.0
    spares = terms.spare_nodes + idle_nodes_of(stretch)
    within = fsum(
        exp(count * log(away) - away - lgamma(count + 1)) for count in range(spares + 1)
    )
    return min(max(1.0 - within, 0.0), 1.0 - LEAST)


def idle_nodes_of(stretch: Stretch) -> int:
    """Nodes in service that a layout leaves alone."""
    return sum(part.idle for part in fleet_of(stretch))


@dataclass(frozen=True)
class FleetPart:
    """Nodes of one kind.

    Attributes:
        node: Name of the node. [-]
        training: Nodes that train; part of one counts as one. [1]
        idle: Nodes in service that do not train. [1]
    """

    node: str
    training: int
    idle: int


def fleet_of(stretch: Stretch) -> list[FleetPart]:
    """The nodes of a cluster by kind, at work and idle."""
    layout, workload = stretch.layout, stretch.workload
    used = {pool.pool: layout.gpus_on(pool) for pool in layout.pools}
    pools = [(pool.name, pool.topology) for pool in workload.pools]
    kinds: dict[str, FleetPart] = {}
    for name, topology in pools or [("", workload.topology)]:
        node = topology.cluster.node
        gpus = used.get(name, 0) if pools else layout.gpus
        training = -(-gpus // node.gpus_per_node)
        there = max(topology.cluster.spec.in_service, training)
        before = kinds.get(node.name, FleetPart(node.name, 0, 0))
        kinds[node.name] = FleetPart(
            node.name, before.training + training, before.idle + there - training
        )
    return list(kinds.values())
