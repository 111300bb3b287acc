"""The cluster of a measured row, built from its words around a catalogue GPU."""

import re
from dataclasses import dataclass

from planner.calibration.mapping.gpus import gpu_named, joined_by_pcie
from planner.calibration.notes.rules import rules
from planner.calibration.rows.blocks import HardwareBlock
from planner.calibration.rows.vocabulary import FabricWord
from planner.hardware.catalog import Cluster, link, node
from planner.hardware.catalog import gpu as gpu_of
from planner.hardware.fleets import ClusterSpec
from planner.hardware.reading.files import Catalog
from planner.hardware.specs import GB, FabricKind, GpuSpec, LinkSpec, NodeSpec

_SOURCES = {"*": "the measured row"}
_SAME = 0.05
"""Relative difference of two memory sizes that only units explain. [1]"""
_ONE_DIE = 1.5
"""Stated memory over a die's from which on the module of two is meant. [1]"""
_NICS = re.compile(r"\b(\d) ?(?:x ?\d+ ?g[^,;:]* per node|nics?\b)|x(\d) per node")
"""NICs of a node, as rows' words on the network count them."""
_HOSTS = 1.2
"""Memory in a superchip's name over its GPU's from which on it is the CPU's. [1]"""


@dataclass(frozen=True)
class Hardware:
    """A cluster, and what the row says beyond the datasheet."""

    cluster: Cluster
    flags: tuple[str, ...]
    """Assumptions that the row needed. [text]"""


def hardware_of(block: HardwareBlock, fabric: FabricWord, catalog: Catalog) -> Hardware:
    """The cluster that a row's hardware block describes.

    Fewer GPUs than a node are one partial node; a count that is no whole number of
    nodes is split into equal smaller ones. A scale-up domain that does not divide the
    count is used in equal segments, as schedulers place jobs on racks.
    """
    gpu = gpu_named(block.gpu, block.gpu_memory_gb, catalog, block.intra_node or "")
    known = _catalogue_node(gpu, block, catalog)
    wanted = block.gpus_per_node or _node_size(gpu, known)
    size = _equal_part(block.gpus, wanted)
    domain = _domain(block, known, size)
    fabric = _fabric_named(block) or fabric
    nics = _nics(block, size, wanted)
    rail, assumed = _rail(block, gpu, fabric, alone=block.gpus <= domain)
    nic = rail.model_copy(update={"bandwidth": rail.bandwidth * size / nics})
    scale_up = _scale_up(block, gpu, known, max(wanted, domain), catalog)
    own = NodeSpec(
        name="measured",
        gpu=gpu.name,
        gpus_per_node=size,
        scale_up=scale_up.name,
        scale_up_domain=domain,
        nic=nic.name,
        nics_per_node=nics,
        host_memory=_host_memory(known),
        power_limit=block.power_limit_w and f"{block.power_limit_w:g} W",
        sources=_SOURCES,
    )
    uneven = size < wanted and block.gpus > wanted
    flags = (f"nodes of {size}, not {wanted}: {block.gpus} GPUs",) if uneven else ()
    stated = _as_stated(gpu, block)
    cluster = Cluster(
        spec=ClusterSpec(
            name=f"{block.gpus} {gpu.name}",
            node=own.name,
            nodes=block.gpus // size,
            partial=True,
        ),
        node=own,
        gpu=stated,
        scale_up=scale_up,
        nic=nic,
        host_link=link(gpu.host_link, catalog),
        catalog=catalog,
    )
    return Hardware(cluster, (*flags, *assumed))


def _catalogue_node(
    gpu: GpuSpec, block: HardwareBlock, catalog: Catalog
) -> NodeSpec | None:
    """A node of the catalogue with this GPU, the nearest in size to the stated."""
    nodes = [node(name, catalog) for name in catalog.names("nodes")]
    own = [its for its in nodes if its.gpu == gpu.name] or [
        its for its in nodes if gpu_of(its.gpu, catalog).nvlink == gpu.nvlink
    ]
    wanted = block.gpus_per_node or block.gpus
    return min(own, key=lambda n: abs(n.gpus_per_node - wanted), default=None)


def _node_size(gpu: GpuSpec, node: NodeSpec | None) -> int:
    return node.gpus_per_node if node and node.gpu == gpu.name else 8


def _equal_part(gpus: int, most: int) -> int:
    """Largest node that the GPUs fill in whole numbers."""
    return next(size for size in range(min(most, gpus), 0, -1) if gpus % size == 0)


def _domain(block: HardwareBlock, node: NodeSpec | None, size: int) -> int:
    """GPUs of a scale-up domain: stated, or the domain of the catalogue's node."""
    stated = block.nvlink_domain
    racks = re.search(r"nvl ?(\d+)", block.text("intra_node"))
    if stated is None and racks:
        stated = int(racks[1])
    if stated is None and node and node.scale_up_domain > node.gpus_per_node:
        stated = node.scale_up_domain
    most = max(min(stated or size, block.gpus), size)
    whole = range(most - most % size, 0, -size)
    return next((d for d in whole if block.gpus % d == 0), size)


def _scale_up(
    block: HardwareBlock,
    gpu: GpuSpec,
    known: NodeSpec | None,
    whole: int,
    catalog: Catalog,
) -> LinkSpec:
    """Link of the GPUs of a whole domain: NVLink, an NVLink mesh, or PCIe alone."""
    text = block.text("intra_node")
    if joined_by_pcie(text):
        return _bus(gpu, catalog)
    name = known.scale_up if known and known.gpu == gpu.name else gpu.nvlink
    own = link(name, catalog)
    to_mesh = own.topology == "switch" and re.search(r"mesh|no nvswitch", text)
    other_size = own.topology == "mesh" and whole != (own.links or 0) + 1
    return _meshed(own, whole) if whole > 1 and (to_mesh or other_size) else own


def _bus(gpu: GpuSpec, catalog: Catalog) -> LinkSpec:
    """PCIe between GPUs: that of the catalogue's nodes, which knows of peer copies."""
    nodes = (node(name, catalog) for name in catalog.names("nodes"))
    links = (link(its.scale_up, catalog) for its in nodes if its.gpu == gpu.name)
    usual = link(gpu.host_link.replace("x16", "bus"), catalog)
    return next((its for its in links if its.topology == "bus"), usual)


def _meshed(own: LinkSpec, domain: int) -> LinkSpec:
    """A link spread evenly over the peers of a domain."""
    peers = domain - 1
    return LinkSpec(
        name=f"{own.name}-mesh-{domain}",
        kind="scale-up",
        topology="mesh",
        bandwidth=f"{own.bandwidth / GB} GB/s",
        links=peers,
        per_link=f"{own.bandwidth / GB / peers} GB/s",
        sources=_SOURCES,
    )


def _nics(block: HardwareBlock, size: int, whole: int) -> int:
    """NICs that the GPUs in use of a node have: as stated, else one for each. [1]."""
    stated = _NICS.search(block.text("inter_node"))
    if stated is None or block.per_gpu_inter_gbps is None:
        return size
    return max(int(stated[1] or stated[2]) * size // whole, 1)


def _rail(
    block: HardwareBlock, gpu: GpuSpec, fabric: FabricWord, *, alone: bool
) -> tuple[LinkSpec, tuple[str, ...]]:
    """A GPU's share of the NICs; rules fill what is open."""
    rule = rules().fabric
    kind = _kind(fabric) or rule.kind
    usual = rule.gbps.get(gpu.arch, rule.other_gbps)
    gbps = block.per_gpu_inter_gbps or min(usual, rule.most.get(kind, usual))
    flags = []
    if not alone and block.per_gpu_inter_gbps is None:
        flags.append(f"network rate assumed, {gbps:g} Gb/s per GPU")
    if not alone and _kind(fabric) is None:
        flags.append(f"network kind assumed, {kind}")
    nic = LinkSpec(
        name=f"{kind}-{gbps:g}",
        kind="scale-out",
        fabric=kind,
        bandwidth=f"{gbps} Gb/s",
        sources=_SOURCES,
    )
    return nic, tuple(flags)


def _fabric_named(block: HardwareBlock) -> FabricWord | None:
    """Fabric that the row's text names and the row's fixed words often lack."""
    text = block.text("inter_node").replace(" ", "-")
    for word in ("omni-path", "slingshot", "tcpxo"):
        if word in text:
            return word
    return None


def _kind(fabric: FabricWord) -> FabricKind | None:
    """The fabric of a word; of two kinds the first, None where nothing is known."""
    if fabric in {"none", "unknown"}:
        return None
    return "infiniband" if fabric == "infiniband-or-roce" else fabric  # type: ignore[return-value]


def _as_stated(gpu: GpuSpec, block: HardwareBlock) -> GpuSpec:
    """The datasheet with the memory that the row states."""
    changed: dict[str, float] = {}
    label = (gpu.memory_label or gpu.memory_capacity) / GB
    stated = block.gpu_memory_gb
    if stated and abs(stated / label - 1) > _SAME and not _is_hosts(gpu, stated):
        usable = gpu.memory_capacity * stated / label
        changed |= {"memory_label": stated * GB, "memory_capacity": usable}
        changed |= _both_dies(gpu, stated / label)
    if block.hbm_tb_s:
        changed["memory_bandwidth"] = block.hbm_tb_s * 1e12
    return gpu.model_copy(update=changed)


def _both_dies(gpu: GpuSpec, times: float) -> dict[str, float]:
    """Rates and power of a module of two dies, where a row counts modules as GPUs."""
    if not (gpu.name.endswith("-gcd") and times > _ONE_DIE):
        return {}
    names = ("peak_bf16", "peak_fp16", "peak_fp32", "memory_bandwidth", "sm_count")
    return {name: 2 * (getattr(gpu, name) or 0) for name in (*names, "tdp")}


def _is_hosts(gpu: GpuSpec, stated: float) -> bool:
    """True where the memory in a superchip's name is the CPU's: `GH200 480GB`."""
    label = (gpu.memory_label or gpu.memory_capacity) / GB
    return gpu.host_link == "nvlink-c2c" and stated > _HOSTS * label


def _host_memory(node: NodeSpec | None) -> str | None:
    if node is None or node.host_memory is None:
        return None
    return f"{node.host_memory / GB} GB"
