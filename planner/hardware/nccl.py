"""NCCL's own tuning constants, by which NCCL picks an algorithm.

Data of `calibration/nccl.yaml`, as in NCCL's `src/graph/tuning.cc`. NCCL's estimate is

time = base + sum of hops + bytes / (bus bandwidth * protocol factor)
"""

from collections.abc import Mapping
from functools import cache

from pydantic import BaseModel, ConfigDict, Field

from planner.hardware.calibration import Fraction, Positive
from planner.hardware.reading.files import read
from planner.hardware.reading.quantities import Bytes, BytesPerSecond, Seconds
from planner.hardware.reading.shipped import shipped


class _Constants(BaseModel):
    """Frozen constants, nothing else allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ProtocolLatency(_Constants):
    """A latency per protocol; None where the algorithm lacks the protocol.

    Attributes:
        ll: Low latency, 8-byte flagged stores. [s]
        ll128: Low latency, 128-byte lines. [s]
        simple: Large messages. [s]
    """

    ll: Seconds | None = None
    ll128: Seconds | None = None
    simple: Seconds


class ProtocolFactors(_Constants):
    """Parts of the bus bandwidth that remain for payload.

    Attributes:
        ring_ll: Ring with LL, before its cap. [1]
        ring_ll128: Ring with LL128. [1]
        tree: Tree all-reduce. [1]
        tree_ll: Tree with LL. [1]
        pat: PAT all-gather and reduce-scatter. [1]
    """

    ring_ll: Fraction
    ring_ll128: Fraction
    tree: Fraction
    tree_ll: Fraction
    pat: Fraction


class CommunicatorMemory(_Constants):
    """Memory of one communicator on a GPU, outside of any framework's allocator.

    Attributes:
        source: Source of the numbers. [-]
        ll: Buffer of one connection for LL. [B]
        ll128: Buffer of one connection for LL128. [B]
        simple: Buffer of one connection for Simple. [B]
        channels: Architecture to channels of collectives inside a domain. [1]
        default_channels: Such channels for all other architectures. [1]
        channels_per_nic: Channels that leave the domain at one NIC. [1]
        p2p_channels: Channels of sends and receives. [1]
        p2p_channels_per_peer: Channels of sends and receives to one peer. [1]
        net_chunk: Bytes of one step of a send over the network. [B]
        net_steps: Steps of a channel in the pools of sends and of receives. [1]
        nvls_channels: Architecture to channels that reduce in the switch. [1]
        nvls_buffer: One of two buffers of a head on a channel of the switch. [B]
        nvls_least: Fewest GPUs in a domain for which the switch reduces. [1]
        nvls_heads: Most heads. [1]
    """

    source: str = Field(min_length=1)
    ll: Bytes
    ll128: Bytes
    simple: Bytes
    channels: Mapping[str, int]
    default_channels: int = Field(ge=1)
    channels_per_nic: int = Field(ge=1)
    p2p_channels: int = Field(ge=1)
    p2p_channels_per_peer: int = Field(ge=1)
    net_chunk: Bytes
    net_steps: int = Field(ge=1)
    nvls_channels: Mapping[str, int]
    nvls_buffer: Bytes
    nvls_least: int = Field(ge=2)
    nvls_heads: int = Field(ge=1)

    @property
    def connection(self) -> Bytes:
        """Buffers of one connection on one channel, of all protocols. [B]."""
        return self.ll + self.ll128 + self.simple


class NcclConstants(_Constants):
    """NCCL's tuning constants, architectures by name.

    Attributes:
        source: Source of the constants. [-]
        base_latency: Algorithm to its fixed latency. [s]
        hop_latency: Medium (`nvlink`, `pci`, `net`), algorithm to latency per hop. [s]
        net_overhead: CPU vendor to the least latency of an inter-node step. [s]
        net_overhead_simple: Multiple of `net_overhead` for Simple. [1]
        ring_plateau: Multiple of the latency of a multi-node Simple ring
            all-reduce. [1]
        copied: Architecture to the part of a ring's pass inside a domain that is as
            long as the whole message. [1]
        default_copied: That part for all other architectures. [1]
        tree_chunk: Bytes that climb a tree at once, over all channels. [B]
        nvlink_per_link: Architecture to believed rate of one link. [B/s]
        protocol: Parts of the bus bandwidth. [1]
        ll_max: Architecture to cap of LL for 1, 2, at least 4 nodes. [B/s]
        ring_ll128_per_channel: Architecture to cap of a channel. [B/s]
        tree_per_channel: Architecture to cap of a channel for 1, 2, at least 4
            nodes. [B/s]
        nvls_efficiency: Architecture to part of the link rate in the switch. [1]
        memory: Memory of a communicator. [B]
    """

    source: str = Field(min_length=1)
    base_latency: Mapping[str, ProtocolLatency]
    hop_latency: Mapping[str, Mapping[str, ProtocolLatency]]
    net_overhead: Mapping[str, Seconds]
    net_overhead_simple: Positive
    ring_plateau: Positive
    copied: Mapping[str, Fraction]
    default_copied: Fraction
    tree_chunk: Bytes
    nvlink_per_link: Mapping[str, BytesPerSecond]
    protocol: ProtocolFactors
    ll_max: Mapping[str, tuple[BytesPerSecond, BytesPerSecond, BytesPerSecond]]
    ring_ll128_per_channel: Mapping[str, BytesPerSecond]
    tree_per_channel: Mapping[
        str, tuple[BytesPerSecond, BytesPerSecond, BytesPerSecond]
    ]
    nvls_efficiency: Mapping[str, Fraction]
    memory: CommunicatorMemory


@cache
def nccl() -> NcclConstants:
    """NCCL's tuning constants."""
    return read(shipped("hardware") / "calibration" / "nccl.yaml", NcclConstants)
