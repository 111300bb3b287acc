"""Latency of rings and trees by the model of NCCL's own tuner."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from planner.cost.meshes import Floats, Ints
from planner.hardware.nccl import NcclConstants
from planner.hardware.reading.quantities import BytesPerSecond, Column, Seconds

Protocol = Literal["ll", "ll128", "simple"]

FAST_CHANNEL = 25e9
"""Rate of a NIC from which NCCL lays two channels over it. [B/s]"""
FEW_CHANNELS = 4
"""Most channels that are doubled. [1]"""


def _hop(
    constants: NcclConstants, medium: str, algorithm: str, protocol: Protocol
) -> Seconds:
    value: Seconds | None = getattr(constants.hop_latency[medium][algorithm], protocol)
    assert value is not None
    return value


def _intra(
    constants: NcclConstants, algorithm: str, protocol: Protocol, domains: Ints
) -> Column[Seconds]:
    """Latency of a hop inside a domain; across nodes at least the posting's. [s]."""
    factor = constants.net_overhead_simple if protocol == "simple" else 1.0
    overhead = factor * constants.net_overhead["intel"]
    hop = _hop(constants, "nvlink", algorithm, protocol)
    return np.where(domains > 1, max(hop, overhead), hop)


def ring_latency(
    constants: NcclConstants,
    protocol: Protocol,
    ranks: Ints,
    domains: Ints,
    passes: int,
    slower: float = 1.0,
) -> Column[Seconds]:
    """Latency of a ring: ``base + (steps - crossings) intra + crossings net``.

    With ``steps = passes (n - 1)`` of which ``passes (q - 1)`` cross domains; a
    multi-node Simple all-reduce (two passes) pays NCCL's plateau factor.

    Args:
        protocol: LL, LL128 or Simple.
        ranks: Ranks n. [1], shape (meshes,)
        domains: Domains q. [1], shape (meshes,)
        passes: 1 for all-gather and reduce-scatter, 2 for all-reduce. [1]
        slower: Latency of the network over NCCL's own of InfiniBand. [1]

    References:
        NCCL src/graph/tuning.cc.
    """
    base = getattr(constants.base_latency["ring"], protocol)
    crossings = passes * (domains - 1)
    steps = passes * (ranks - 1)
    intra = _intra(constants, "ring", protocol, domains)
    time = base + (steps - crossings) * intra
    time = time + crossings * slower * _hop(constants, "net", "ring", protocol)
    if protocol == "simple" and passes == 2:
        time = np.where(domains > 1, time * constants.ring_plateau, time)
    return np.asarray(time, dtype=np.float64)


def tree_latency(
    constants: NcclConstants,
    protocol: Protocol,
    ranks: Ints,
    domains: Ints,
    slower: float = 1.0,
) -> Column[Seconds]:
    """Latency of a tree: ``base + 2 [(n/q - 1) intra + log2(q) net]``.

    Args:
        protocol: LL, LL128 or Simple.
        ranks: Ranks n. [1], shape (meshes,)
        domains: Domains q. [1], shape (meshes,)
        slower: Latency of the network over NCCL's own of InfiniBand. [1]

    References:
        NCCL src/graph/tuning.cc.
    """
    base = getattr(constants.base_latency["tree"], protocol)
    intra = _intra(constants, "tree", protocol, domains)
    chain = (ranks / domains - 1) * intra
    climb = np.log2(domains) * slower * _hop(constants, "net", "tree", protocol)
    return np.asarray(base + 2 * (chain + climb), dtype=np.float64)


def tree_limit(
    per_channel: Sequence[float], nic: BytesPerSecond, nics: Ints, domains: Ints
) -> Column[BytesPerSecond]:
    """Most that the channels of a tree move, whatever the NICs and links could.

    One channel for each NIC, two for each of up to four fast ones::

        channels B_channel(q)

    Args:
        per_channel: Rate of a channel over 1, 2 and more domains. [B/s]
        domains: Domains q. [1], shape (meshes,)

    References:
        NCCL src/graph/tuning.cc, perChMaxTreeBws; src/graph/search.cc,
        ncclTopoDupChannels.
    """
    doubled = (nic > FAST_CHANNEL) & (nics <= FEW_CHANNELS)
    channels = np.where(doubled, 2 * nics, nics)
    rates = np.array(per_channel, dtype=np.float64)
    return np.asarray(channels * rates[np.clip(domains, 1, len(rates)) - 1])


def message_latency(
    constants: NcclConstants,
    inside: npt.NDArray[np.bool_],
    slower: float = 1.0,
    hops: Floats | float = 1.0,
) -> Column[Seconds]:
    """Latency of one message: a Simple ring's base and its hops.

    Args:
        inside: True where both ends lie in one domain. shape (meshes,)
        slower: Latency of the network over NCCL's own of InfiniBand. [1]
    """
    base = constants.base_latency["ring"].simple
    near = _hop(constants, "nvlink", "ring", "simple")
    far = slower * _hop(constants, "net", "ring", "simple")
    return base + hops * np.where(inside, near, far)
