"""Datasheet facts: GPU, link, node. Frozen, every number with its source.

A `sources` mapping names the fields it covers; the key `*` covers all others. Fields
named in `unverified` are believed, not looked up.
"""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from planner.hardware.reading.names import Line, Name
from planner.hardware.reading.numbers import PositiveInt
from planner.hardware.reading.quantities import (
    Bytes,
    BytesPerSecond,
    FlopPerSecond,
    Hertz,
    Watts,
)

Dtype = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp4"]
"""Number formats that a GPU has a peak rate for."""
FabricKind = Literal[
    "infiniband",
    "roce",
    "efa",
    "omni-path",
    "slingshot",
    "tcpx",
    "tcpxo",
    "ethernet",
]
"""Kinds of scale-out fabric; `ethernet` is plain TCP, without RDMA."""
GB, GIB = 1e9, float(2**30)
RESERVED = 0.03
"""Part of the memory on the label that a GPU may keep for itself. [1]"""
ROUNDED = 0.005
"""Relative difference of two datasheet numbers that only rounding explains. [1]"""


class Sourced(BaseModel):
    """A thing with a name, whose numbers have sources.

    Attributes:
        name: Name in the catalog, lower case. [-]
        sources: Field name, or `*` for the rest, to the source of the number. [-]
        unverified: Fields whose number was not looked up. [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    sources: Mapping[str, Line] = Field(default_factory=dict)
    unverified: tuple[str, ...] = ()

    def unsourced(self) -> list[str]:
        """Fields that hold a number (or a list of tiers) but have no source.

        Returns:
            Their names, in order; empty when `sources` has a `*`. [-]
        """
        if "*" in self.sources:
            return []
        facts = (n for n, value in self if _is_fact(value))
        return [n for n in facts if n not in self.sources]

    @model_validator(mode="after")
    def _check_names_of_fields(self) -> Self:
        """`sources` and `unverified` speak of fields that exist."""
        fields = type(self).model_fields
        strange = {*self.sources, *self.unverified} - {*fields, "*"}
        if strange:
            raise ValueError(
                f"{self.name}: sources and unverified name unknown fields "
                f"{sorted(strange)}; fields are {sorted(fields)}",
            )
        return self


def _is_fact(value: object) -> bool:
    """True if a value needs a source: a number, or a list of tiers or pools."""
    if isinstance(value, tuple):
        return any(isinstance(entry, BaseModel) for entry in value)
    return isinstance(value, int | float) and not isinstance(value, bool)


class _FullySourced(Sourced):
    """A catalog entry that is refused when a number lacks its source."""

    @model_validator(mode="after")
    def _check_every_number_has_a_source(self) -> Self:
        """Every number names where it comes from."""
        if missing := self.unsourced():
            raise ValueError(
                f"{self.name}: no source for {missing}; add each to `sources`, "
                "or one source for all of them under '*'",
            )
        return self


class GpuSpec(_FullySourced):
    """One GPU as its datasheet has it: dense peaks, no sparsity, one direction.

    Attributes:
        vendor: Maker. [-]
        arch: Architecture, lower case: `ampere`, `hopper`, `blackwell`. [-]
        memory_capacity: Total that nvidia-smi shows. [B]
        memory_label: Memory on the label, in GB, where known. [B]
        memory_bandwidth: HBM peak. [B/s]
        memory_bus: Data pins of the memory, where known. [1]
        memory_pin: Rate of one pin, where known. [B/s]
        peak_bf16: Dense tensor peak with fp32 sums, None without bf16. [FLOP/s]
        peak_fp16: Dense tensor peak with fp32 sums, None without fp16. [FLOP/s]
        peak_fp8: Dense tensor peak, None without fp8 units. [FLOP/s]
        peak_fp4: Dense tensor peak, None without fp4 units. [FLOP/s]
        peak_tf32: Dense tensor peak, None without tf32. [FLOP/s]
        peak_fp32: Vector peak, None where not published. [FLOP/s]
        sm_count: Streaming multiprocessors, or the maker's counterpart. [1]
        boost_clock: Clock of the tensor peaks, where known. [Hz]
        tdp: Most board or module power. [W]
        nvlink: Name of the scale-up link, or of the PCIe link without NVLink. [-]
        nvlink_bandwidth: Scale-up rate by the GPU's own datasheet, where known; must
            be the rate of `nvlink`. [B/s]
        host_link: Name of the link to host memory. [-]
        called: Short names that mean this GPU among those of its family. [text]
        usual_nodes: Names of the nodes that it usually comes in, the smallest first;
            a count of GPUs without a node is meant in these. [-]
        deviates: Field, or a pair `a/b`, that breaks a rule of its family, to the
            reason. [text]
    """

    vendor: str
    arch: str
    memory_capacity: Bytes
    memory_label: Bytes | None = None
    memory_bandwidth: BytesPerSecond
    memory_bus: PositiveInt | None = None
    memory_pin: BytesPerSecond | None = None
    peak_bf16: FlopPerSecond | None
    peak_fp16: FlopPerSecond | None
    peak_fp8: FlopPerSecond | None = None
    peak_fp4: FlopPerSecond | None = None
    peak_tf32: FlopPerSecond | None = None
    peak_fp32: FlopPerSecond | None = None
    sm_count: PositiveInt
    boost_clock: Hertz | None = None
    tdp: Watts
    nvlink: str
    nvlink_bandwidth: BytesPerSecond | None = None
    host_link: str
    called: tuple[Name, ...] = ()
    usual_nodes: tuple[str, ...] = ()
    deviates: Mapping[str, Line] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_usual_nodes_have_a_reason(self) -> Self:
        """The choice of nodes has a reason of its own."""
        if self.usual_nodes and "usual_nodes" not in self.sources:
            raise ValueError(
                f"{self.name}: no reason for usual_nodes; add one to `sources`",
            )
        return self

    @model_validator(mode="after")
    def _check_memory_is_that_of_the_label(self) -> Self:
        """Makers print GB for 1e9 bytes or for GiB, less what is reserved."""
        label = self.memory_label or self.memory_capacity
        lowest, most = (1 - RESERVED) * label, label / GB * GIB
        if not lowest <= self.memory_capacity <= most:
            raise ValueError(
                f"memory_capacity {self.memory_capacity / GIB:.5g} GiB contradicts "
                f"memory_label {label / GB:g} GB, which allows "
                f"{lowest / GIB:.5g} to {most / GIB:.5g} GiB",
            )
        return self

    @model_validator(mode="after")
    def _check_some_16_bit_format(self) -> Self:
        """A GPU without bf16 and fp16 trains nothing that is priced here."""
        if self.peak_bf16 is None and self.peak_fp16 is None:
            raise ValueError("peak_bf16 and peak_fp16 are both null; give one of them")
        return self

    def peak(self, dtype: Dtype) -> FlopPerSecond:
        """Dense peak rate of a number format."""
        value: FlopPerSecond | None = getattr(self, f"peak_{dtype}", None)
        if value is None:
            has = [n[5:] for n, v in self if n.startswith("peak_") and v is not None]
            raise ValueError(f"{self.name} has no {dtype} units; it has {sorted(has)}")
        return value


class LinkSpec(_FullySourced):
    """One link: between GPUs of a domain, from a node to the fabric, or GPU to host.

    Attributes:
        kind: `scale-up` (per GPU), `scale-out` (per NIC port) or `host` (per GPU). [-]
        fabric: Kind of a scale-out fabric, None for the others. [-]
        topology: Shape of a scale-up domain: `switch` (any pair at the full rate),
            `mesh` (one link to each peer) or `bus` (PCIe, below one host bridge
            that all ranks share). [-]
        peer_to_peer: GPUs on a bus copy to each other; else through host memory. [-]
        bandwidth: One direction, per GPU or per port, line rate. [B/s]
        links: Physical links that make up a link, where known; in a mesh, peers. [1]
        per_link: Line rate of one physical link, where known. [B/s]
        module: GPUs of a module of a mesh that have a faster link to each other. [1]
        module_link: Line rate between two GPUs of a module. [B/s]
    """

    kind: Literal["scale-up", "scale-out", "host"]
    fabric: FabricKind | None = None
    topology: Literal["switch", "mesh", "bus"] = "switch"
    peer_to_peer: bool = True
    bandwidth: BytesPerSecond
    links: PositiveInt | None = None
    per_link: BytesPerSecond | None = None
    module: PositiveInt | None = None
    module_link: BytesPerSecond | None = None

    @property
    def full_bandwidth(self) -> BytesPerSecond:
        """Rate [B/s] per GPU when all of a domain talk: half without peer-to-peer.

        Each byte then goes into host memory and out of it.
        """
        return self.bandwidth if self.peer_to_peer else self.bandwidth / 2

    @model_validator(mode="after")
    def _check_fabric(self) -> Self:
        """A scale-out link, and no other, says which fabric it belongs to."""
        if (self.kind == "scale-out") != (self.fabric is not None):
            raise ValueError(
                f"{self.name}: a scale-out link has a fabric, others have none; "
                f"kind is {self.kind}, fabric is {self.fabric}",
            )
        return self

    @model_validator(mode="after")
    def _check_links_add_up(self) -> Self:
        """The total is links times the rate of one link, but for rounding."""
        total = (self.links or 1) * (self.per_link or self.bandwidth)
        both = self.links is not None and self.per_link is not None
        if both and abs(total / self.bandwidth - 1) > ROUNDED:
            raise ValueError(
                f"bandwidth {self.bandwidth / GB:g} GB/s contradicts {self.links} "
                f"links of {(self.per_link or 0) / GB:g} GB/s, {total / GB:g} GB/s",
            )
        return self

    @model_validator(mode="after")
    def _check_topology(self) -> Self:
        """A mesh counts its links, and only a bus can lack peer-to-peer."""
        if self.topology != "switch" and self.kind != "scale-up":
            raise ValueError(f"topology {self.topology} is for a scale-up link")
        if self.topology == "mesh" and None in {self.links, self.per_link}:
            raise ValueError("topology mesh needs links (peers) and per_link")
        if self.topology != "bus" and not self.peer_to_peer:
            raise ValueError("peer_to_peer false is for a bus")
        if (self.module is None) != (self.module_link is None):
            raise ValueError("module and module_link are both given or neither")
        if self.module is not None and self.topology != "mesh":
            raise ValueError("module and module_link are for a mesh")
        return self


class NodeSpec(_FullySourced):
    """One node: its GPUs, the link that joins them, and its NICs for training traffic.

    Attributes:
        gpu: Name of the GPU. [-]
        gpus_per_node: GPUs that one operating system sees. [1]
        scale_up: Name of the link that joins GPUs of a scale-up domain. [-]
        scale_up_domain: GPUs of such a domain, a multiple of `gpus_per_node`. [1]
        nic: Name of the scale-out link of one NIC. [-]
        nics_per_node: NICs that carry training traffic. [1]
        host_memory: Memory of the host, where known. [B]
        nvme_drives: Local NVMe drives for scratch data, where known. [1]
        nvme_capacity: Room on all drives, where known. [B]
        max_power: Rated power of the node, where known. [W]
        power_limit: Most power that each GPU is let draw, where that is below its TDP;
            of a superchip, its module. [W]
    """

    gpu: str
    gpus_per_node: PositiveInt
    scale_up: str
    scale_up_domain: PositiveInt
    nic: str
    nics_per_node: PositiveInt
    host_memory: Bytes | None = None
    nvme_drives: PositiveInt | None = None
    nvme_capacity: Bytes | None = None
    max_power: Watts | None = None
    power_limit: Watts | None = None

    @model_validator(mode="after")
    def _check_whole_nodes_in_a_domain(self) -> Self:
        """A scale-up domain holds whole nodes."""
        if self.scale_up_domain % self.gpus_per_node:
            raise ValueError(
                f"{self.name}: a scale-up domain of {self.scale_up_domain} GPUs "
                f"does not hold whole nodes of {self.gpus_per_node}",
            )
        return self
