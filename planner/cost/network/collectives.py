"""Time of collectives: measured curves inside a domain, NCCL's model outside."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.cost.meshes import Floats, Groups, Ints
from planner.cost.network.saturation import CURVE_RANKS, Saturation
from planner.cost.network.tuner import (
    message_latency,
    ring_latency,
    tree_latency,
    tree_limit,
)
from planner.cost.pricing import Pricing
from planner.hardware.calibration import GpuCalibration, NetworkCalibration, network
from planner.hardware.graph.domains import domain_calibration
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.nccl import NcclConstants, nccl
from planner.hardware.reading.quantities import Bytes, BytesPerSecond, Column, Seconds

FEW_RANKS = 0.25
"""Power of 8 / n by which a group below eight ranks saturates at a longer message,
fitted to the tables of ``benchmarks/kernels``. [1]"""
NO_RATE = BytesPerSecond(0)
"""Rate of what is not there. [B/s]"""
ANY_RATE = BytesPerSecond(np.inf)
"""Rate without a limit. [B/s]"""
UNLIMITED = (np.inf, np.inf, np.inf)
"""Channels of a tree whose rate is not known. [B/s]"""


@dataclass(frozen=True)
class Fabric:
    """Measured rates of one cluster's links."""

    ring: BytesPerSecond
    """Bus bandwidth of a large ring inside a domain. [B/s]"""
    pair: BytesPerSecond | None
    """Bandwidth of large collectives of two ranks; None: as of more. [B/s]"""
    nvls: BytesPerSecond
    """Bus bandwidth of a large in-switch all-reduce; 0 without it. [B/s]"""
    nvls_ranks: int
    """Fewest ranks for which NCCL reduces in the switch. [1]"""
    all_to_all: BytesPerSecond
    """Rate at which a rank sends inside a domain, all at once. [B/s]"""
    reduced: Saturation
    """Measured all-reduce; in the switch where it has one."""
    passed: Saturation
    """Measured ring."""
    network: NetworkCalibration
    tuner: NcclConstants
    line_rate: float
    """Datasheet rate of the scale-up links. [B/s]"""
    exit_rate: BytesPerSecond
    """Line rate at which one collective can leave a domain. [B/s]"""
    copied: float
    """Part of a ring's pass that is as long as the whole message below a switch. [1]"""
    nic: BytesPerSecond
    """Line rate of one NIC. [B/s]"""
    nics: int
    """NICs of a domain. [1]"""
    tree_channel: tuple[float, float, float]
    """Most that a channel of a tree moves over 1, 2 and more domains. [B/s]"""

    def rings(self, ranks: Ints, passes: int) -> Column[BytesPerSecond]:
        """Bus bandwidth of a large ring of few or many ranks of a domain."""
        slower = np.maximum(self.few(ranks, passes), 1.0)
        return self._unless_pair(self.ring / slower, ranks)

    def all_to_alls(self, ranks: Ints) -> Column[BytesPerSecond]:
        """Rate at which a rank of a domain sends to few or many others at once."""
        return self._unless_pair(self.all_to_all / self.few(ranks, 1), ranks)

    def _unless_pair(
        self, rate: Column[BytesPerSecond], ranks: Ints
    ) -> Column[BytesPerSecond]:
        """The rate, and that of a pair where two ranks of a bus have one. [B/s]."""
        return rate if self.pair is None else np.where(ranks == 2, self.pair, rate)

    def few(self, ranks: Floats | Ints, passes: int) -> Floats:
        """Loss of a small group below a switch against the ranks of the curves.

        The link moves ``(n - 1) / n`` of a message, but each rank handles all of
        it. With ``a`` the part of that over the passes::

            (1 + a / (n - 1)) / (1 + a / 7)

        Rings of more ranks than eight are not faster: 32 of a GB200 rack gather at
        680 GB/s, 8 of a DGX B200 at 682.

        Args:
            ranks: n. [1], shape (meshes,)
        """
        part = self.copied / passes
        others = np.maximum(ranks - 1, 1)
        lost: Floats = (1.0 + part / others) / (1.0 + part / (CURVE_RANKS - 1))
        return lost


def fabric(pricing: Pricing) -> Fabric:
    """Collect the measured rates that the cluster of a job needs."""
    topology, profile = pricing.topology, pricing.profile
    exits = topology.cluster.nic.bandwidth if profile.single_nic else ANY_RATE
    return cluster_fabric(
        topology, pricing.calibration, slowed=profile.network, exit_rate=exits
    )


def cluster_fabric(
    topology: ClusterTopology,
    calibration: GpuCalibration,
    *,
    slowed: float = 1.0,
    exit_rate: BytesPerSecond = ANY_RATE,
) -> Fabric:
    """Collect the measured rates of a cluster.

    Args:
        slowed: The stack's factor on the bandwidths of the network. [1]
        exit_rate: Line rate at which one collective can leave a domain. [B/s]
    """
    cluster = topology.cluster
    links = domain_calibration(cluster, calibration)
    assert cluster.nic.fabric is not None
    switched = cluster.scale_up.topology == "switch" and topology.fabric.domain > 2
    copied = nccl().copied.get(cluster.gpu.arch, nccl().default_copied)
    nodes = max(topology.fabric.domain // cluster.node.gpus_per_node, 1)
    return Fabric(
        ring=links.ring_bandwidth,
        pair=links.pair_bandwidth,
        nvls=links.nvls_all_reduce_bandwidth or NO_RATE,
        nvls_ranks=links.nvls_min_ranks or 0,
        all_to_all=links.all_to_all_bandwidth,
        reduced=Saturation.of(links.all_reduce_curve),
        passed=Saturation.of(links.ring_curve or links.all_reduce_curve),
        network=_slowed(network(cluster.nic.fabric, cluster.catalog), slowed),
        tuner=nccl(),
        line_rate=topology.fabric.full_bandwidth,
        exit_rate=exit_rate,
        copied=copied if switched else 0.0,
        nic=cluster.nic.bandwidth,
        nics=nodes * cluster.node.nics_per_node,
        tree_channel=nccl().tree_per_channel.get(cluster.gpu.arch, UNLIMITED),
    )


def _slowed(measured: NetworkCalibration, factor: float) -> NetworkCalibration:
    """A network with the stack's factor on every bandwidth."""
    return measured.model_copy(
        update={
            "efficiency": measured.efficiency * factor,
            "all_to_all_efficiency": measured.all_to_all_efficiency * factor,
            "p2p_efficiency": measured.p2p_efficiency * factor,
        }
    )


def _inside(
    links: Fabric,
    message: Column[Bytes],
    group: Groups,
    plateau: Column[BytesPerSecond],
    switch: npt.NDArray[np.bool_],
) -> Column[Seconds]:
    """Time of one pass inside a domain, at the curve's rate for a like message. [s].

    A ring moves chunks of ``message / n``. For more ranks than the measured curve's
    eight it is read at the message that has an equal chunk, for fewer at
    ``message (8 / n)^(1/4)``, which fits two and four ranks. To a switch that
    reduces, each rank sends the message itself, however many ranks there are.
    """
    n = np.maximum(group.size, 1)
    few = np.where(n < CURVE_RANKS, FEW_RANKS, 1.0)
    alike = message * (CURVE_RANKS / n) ** few
    reduced, passed = links.reduced.share(message), links.passed.share(alike)
    share = np.where(switch, reduced, passed)
    return (n - 1) / n * message / (plateau * share * group.inside_share)


def _crossing_rate(links: Fabric, group: Groups) -> Column[BytesPerSecond]:
    """Bus bandwidth of a large ring that leaves its domain. [B/s]."""
    inside = links.ring * group.inside_share
    return np.minimum(_line_rate(links, group) * links.network.efficiency, inside)


def _line_rate(links: Fabric, group: Groups) -> Column[BytesPerSecond]:
    """Line rate of a ring or a tree between domains. [B/s]."""
    return np.minimum(group.ring_bandwidth, links.exit_rate)


def _outside(
    links: Fabric, message: Column[Bytes], group: Groups, *, passes: int
) -> Column[Seconds]:
    """Time of ring passes across domains: the faster of LL128 and Simple. [s]."""
    n, q = group.size, group.domains
    volume = passes * (n - 1) / n * message / _crossing_rate(links, group)
    slower = links.network.latency_factor
    lines = ring_latency(links.tuner, "ll128", n, q, passes, slower)
    simple = ring_latency(links.tuner, "simple", n, q, passes, slower)
    return np.minimum(lines + volume / links.tuner.protocol.ring_ll128, simple + volume)


def all_gather_time(
    links: Fabric, message: Column[Bytes], group: Groups
) -> Column[Seconds]:
    """Time to gather a tensor of *message* bytes, or to reduce-scatter one.

    Inside a domain ``(n-1)/n S / B(S)``, with B(S) the plateau of a ring times
    the shape of the measured all-reduce curve; across domains
    ``base + hops + (n-1)/n S / B``, the best of NCCL's ring protocols.

    Returns:
        Time, zero for groups of one rank. [s], shape (meshes,)

    References:
        NCCL src/graph/tuning.cc; nccl-tests doc/PERFORMANCE.md.
    """
    rings, nowhere = links.rings(group.size, 1), group.size < 0
    return _by_place(
        group,
        lambda: _inside(links, message, group, rings, nowhere),
        lambda: _outside(links, message, group, passes=1),
    )


def turn_latency(links: Fabric, group: Groups) -> Column[Seconds]:
    """Latency of a reduction to, or a broadcast from, one rank of a group.

    NCCL has only a ring for these: ``base + (n - q) intra + (q - 1) net``.

    Returns:
        Time, zero for groups of one rank. [s], shape (meshes,)

    References:
        NCCL src/graph/tuning.cc.
    """
    slower = links.network.latency_factor
    time = ring_latency(links.tuner, "simple", group.size, group.domains, 1, slower)
    return np.where(group.size > 1, time, 0.0)


def all_reduce_time(
    links: Fabric, message: Column[Bytes], group: Groups
) -> Column[Seconds]:
    """Time to all-reduce a tensor of *message* bytes.

    Inside a domain the switch reduces (NVLS) from a few ranks on, else a ring
    makes two passes; across domains a ring, or NCCL's double tree when faster.

    Returns:
        Time, zero for groups of one rank. [s], shape (meshes,)
    """

    def inside() -> Column[Seconds]:
        switch = (links.nvls > 0) & (group.size >= links.nvls_ranks)
        plateau = np.where(switch, links.nvls, links.rings(group.size, 2))
        return 2 * _inside(links, message, group, plateau, switch)

    def outside() -> Column[Seconds]:
        tree = _tree(links, message, group)
        return np.minimum(_outside(links, message, group, passes=2), tree)

    return _by_place(group, inside, outside)


def _by_place(
    group: Groups,
    inside: Callable[[], Column[Seconds]],
    outside: Callable[[], Column[Seconds]],
) -> Column[Seconds]:
    """Time inside or across domains; a case that no group is in is not priced. [s]."""
    several = group.size > 1
    near = inside() if (several & group.intra).any() else 0.0
    far = outside() if (several & ~group.intra).any() else 0.0
    return np.where(several, np.where(group.intra, near, far), 0.0)


def _tree(links: Fabric, message: Column[Bytes], group: Groups) -> Column[Seconds]:
    """Time of NCCL's double binary tree over domains, chains or the switch inside.

    Of two domains each is a leaf once and a root once, so that the message crosses
    once each way; of more, an inner node sends it twice. Before the pipeline is
    full, one chunk climbs the tree and comes down. A channel of a chain has a limit.
    """
    q, nic = group.domains, _line_rate(links, group) * links.network.efficiency
    switch = (links.nvls > 0) & (group.ranks_per_domain >= max(links.nvls_ranks, 1))
    inside = np.where(switch, links.nvls, links.ring) * group.inside_share
    own = np.where(switch, 1.0, links.tuner.protocol.tree)
    rate = np.minimum(np.where(q == 2, 2.0, 1.0) * nic, inside) * own
    nics = np.minimum(group.ranks_per_domain, links.nics)
    limit = tree_limit(links.tree_channel, links.nic, nics, q)
    rate = np.where(switch, rate, np.minimum(rate, limit))
    slower = links.network.latency_factor
    latency = tree_latency(links.tuner, "simple", group.size, q, slower)
    fill = 2 * np.log2(q) * np.minimum(links.tuner.tree_chunk, message) / rate
    return np.asarray(latency + fill + 2 * message / rate, dtype=np.float64)


def all_to_all_time(
    links: Fabric, sent: Column[Bytes], group: Groups
) -> Column[Seconds]:
    """Time of an all-to-all in which every rank sends *sent* bytes in total.

    Bytes for the own domain and bytes that leave it travel at the same time::

        T = base + log2(n) hop + max(inside / B_nv, outside / (B_nic eta))

    Args:
        sent: Bytes that a rank sends, its own share included. [B], shape (meshes,)

    Returns:
        Time, zero for groups of one rank. [s], shape (meshes,)
    """
    n = np.maximum(group.size, 1)
    leaving = group.off_domain * (n - 1) / n
    inside = np.maximum((n - 1) / n - leaving, 0.0)
    return dispatch_time(links, inside * sent, leaving * sent, group)


def dispatch_time(
    links: Fabric,
    inside: Column[Bytes],
    outside: Column[Bytes],
    group: Groups,
    efficiency: float | None = None,
) -> Column[Seconds]:
    """Time in which every rank sends to many others, inside its domain and out of it.

    Args:
        efficiency: Share of the line rate between domains; None: an all-to-all's. [1]

    Returns:
        Time, zero for groups of one rank. [s], shape (meshes,)
    """
    n = np.maximum(group.size, 1)
    share = links.network.all_to_all_efficiency if efficiency is None else efficiency
    slow = group.all_to_all_bandwidth * share
    beyond = np.divide(outside, slow, out=np.zeros(len(n)), where=slow > 0)
    slower = links.network.latency_factor
    latency = message_latency(links.tuner, group.intra, slower, np.log2(n))
    rate = links.all_to_alls(group.ranks_per_domain) * group.inside_share
    time = latency + np.maximum(inside / rate, beyond)
    return np.where(group.size > 1, time, 0.0)


def send_time(
    links: Fabric,
    message: Column[Bytes],
    line_rate: Column[BytesPerSecond],
    crosses: npt.NDArray[np.bool_],
) -> Column[Seconds]:
    """Time to send *message* bytes to one other rank, all pairs at once.

    Args:
        line_rate: Slowest link on the way, shared. [B/s], shape (meshes,)
        crosses: True where the pair lies in two domains. shape (meshes,)
    """
    inside = links.ring / links.line_rate
    share = np.where(crosses, links.network.p2p_efficiency, inside)
    latency = message_latency(links.tuner, ~crosses, links.network.latency_factor)
    return latency + message / (line_rate * share)
