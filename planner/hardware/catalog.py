"""GPUs, links, nodes and clusters of a catalog by name, read once from their YAML.

References between entries are checked when an entry is read. Names must exist, and a
link must be of the right kind. The rates of a GPU, its link and its node must agree.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from planner.hardware.fleets import ClusterSpec, TierSpec
from planner.hardware.reading.files import (
    Catalog,
    CatalogError,
    UnknownNameError,
    remembered,
)
from planner.hardware.reading.quantities import BytesPerSecond
from planner.hardware.specs import (
    GB,
    ROUNDED,
    GpuSpec,
    LinkSpec,
    NodeSpec,
)

Kind = Literal["gpus", "links", "nodes", "clusters"]
"""Kinds of entries in the catalog."""

T = TypeVar("T")


@dataclass(frozen=True)
class Cluster:
    """A cluster with the entries that its names stand for.

    Attributes:
        spec: Nodes and tiers. [-]
        node: Datasheet of the cluster's nodes. [-]
        gpu: Datasheet of the cluster's GPUs. [-]
        scale_up: Link inside a scale-up domain. [-]
        nic: Link of one NIC. [-]
        host_link: Link between a GPU and its host. [-]
        catalog: Files of facts that its names were looked up in. [-]
        pools: Pools of a mixed fleet; `node` to `host_link` are the first pool's. [-]
    """

    spec: ClusterSpec
    node: NodeSpec
    gpu: GpuSpec
    scale_up: LinkSpec
    nic: LinkSpec
    host_link: LinkSpec
    catalog: Catalog = field(repr=False)
    pools: tuple["Cluster", ...] = ()

    @property
    def gpus(self) -> int:
        """GPUs [1] in service: nodes in service * GPUs per node, of all pools."""
        if self.pools:
            return sum(pool.gpus for pool in self.pools)
        return self.spec.in_service * self.node.gpus_per_node

    @property
    def nic_share(self) -> BytesPerSecond:
        """NIC line rate [B/s] per GPU: NICs per node * rate / GPUs per node."""
        rate = self.node.nics_per_node * self.nic.bandwidth
        return rate / self.node.gpus_per_node


@remembered
def gpu(name: str, catalog: Catalog) -> GpuSpec:
    """A GPU of the catalog.

    Raises:
        UnknownNameError: No such GPU.
        CatalogError: The file is wrong, or contradicts the file of a link.
    """
    spec = catalog.lookup("gpus", name, GpuSpec)
    whose = catalog.find("gpus", name).path
    up = _refer(whose, "nvlink", lambda: link(spec.nvlink, catalog))
    host = _refer(whose, "host_link", lambda: link(spec.host_link, catalog))
    _must_be(whose, "nvlink", up, "scale-up")
    _must_be(whose, "host_link", host, "host")
    if not _same(spec.nvlink_bandwidth or up.bandwidth, up.bandwidth):
        raise _contradiction(whose, "nvlink_bandwidth", spec.nvlink_bandwidth, up)
    return spec


@remembered
def link(name: str, catalog: Catalog) -> LinkSpec:
    """A link of the catalog."""
    return catalog.lookup("links", name, LinkSpec)


PROVIDERS = ("aws", "azure", "gcp", "lambda", "oci")
"""Clouds whose machines are entries by cloud and the cloud's own name. [text]"""


def _of_provider(name: str, catalog: Catalog) -> str:
    """Name of the entry that a cloud's own name of a machine stands for.

    `p5.48xlarge`, `Standard_ND96isr_H100_v5` and `BM.GPU.B200.8` are entries with the
    cloud before them; other names stay.
    """
    plain = name.lower().replace("_", "-").removeprefix("standard-")
    known = set(catalog.names("nodes"))
    names = (f"{cloud}-{plain}" for cloud in PROVIDERS)
    return name if name in known else next((n for n in names if n in known), name)


@remembered
def node(name: str, catalog: Catalog) -> NodeSpec:
    """A node of the catalog.

    Raises:
        UnknownNameError: No such node.
        CatalogError: The file is wrong, or contradicts the file of its GPU or links.
    """
    name = _of_provider(name, catalog)
    node_spec = catalog.lookup("nodes", name, NodeSpec)
    whose = catalog.find("nodes", name).path
    its_gpu = _refer(whose, "gpu", lambda: gpu(node_spec.gpu, catalog))
    up = _refer(whose, "scale_up", lambda: link(node_spec.scale_up, catalog))
    nic = _refer(whose, "nic", lambda: link(node_spec.nic, catalog))
    _must_be(whose, "scale_up", up, "scale-up")
    _must_be(whose, "nic", nic, "scale-out")
    _check_domain(whose, node_spec, up)
    rate = link(its_gpu.nvlink, catalog).bandwidth
    if up.topology != "bus" and not _same(up.bandwidth, rate):
        raise _contradiction(whose, "scale_up", rate, up)
    return node_spec


def _check_domain(whose: str, node_spec: NodeSpec, up: LinkSpec) -> None:
    """A mesh reaches its peers only, and a bus ends at its node."""
    size, most = node_spec.scale_up_domain, node_spec.scale_up_domain
    if up.topology == "mesh":
        most = (up.links or 0) + 1
    if up.topology == "bus":
        most = node_spec.gpus_per_node
    if size > most:
        raise CatalogError(
            f"{whose}: scale_up_domain: {up.topology} {up.name} "
            f"joins at most {most} GPUs here; given {size}",
        )


def _refer(whose: str, field: str, look_up: Callable[[], T]) -> T:
    """Entry that a field names; an unknown name is an error of the file."""
    try:
        return look_up()
    except UnknownNameError as error:
        raise CatalogError(f"{whose}: {field}: {error}") from error


def _must_be(whose: str, field: str, spec: LinkSpec, wanted: str) -> None:
    """Refuse a link of another kind than a field is for."""
    if spec.kind != wanted:
        raise CatalogError(
            f"{whose}: {field}: {spec.name} is a {spec.kind} link; "
            f"a {wanted} link is needed",
        )


def _same(a: float, b: float) -> bool:
    """True if two datasheet rates differ by no more than rounding."""
    return abs(a / b - 1) <= ROUNDED


def _contradiction(
    whose: str, field: str, rate: float | None, spec: LinkSpec
) -> CatalogError:
    """Error of two files that give one rate two values."""
    return CatalogError(
        f"{whose}: {field}: {(rate or 0) / GB:g} GB/s contradicts "
        f"{spec.name}, which carries {spec.bandwidth / GB:g} GB/s",
    )


def larger_machines(resolved: Cluster) -> tuple[NodeSpec, ...]:
    """Usual nodes of a cluster's GPU that alone have more GPUs than the cluster."""
    usual = [node(name, resolved.catalog) for name in resolved.gpu.usual_nodes]
    larger = (machine for machine in usual if machine.gpus_per_node > resolved.gpus)
    return tuple(sorted(larger, key=lambda machine: machine.gpus_per_node))


@remembered
def cluster(name: str, catalog: Catalog) -> ClusterSpec:
    """A cluster of the catalog.

    Raises:
        UnknownNameError: No such cluster.
        CatalogError: The file is wrong, or its node is unknown or does not fit.
    """
    spec = catalog.lookup("clusters", name, ClusterSpec)
    whose = catalog.find("clusters", name).path
    try:
        resolve_cluster(spec, catalog)
    except CatalogError:
        raise
    except UnknownNameError as error:
        raise CatalogError(f"{whose}: node: {error}") from error
    except ValueError as error:
        raise CatalogError(f"{whose}: tiers: {error}") from error
    return spec


def resolve_cluster(spec: ClusterSpec, catalog: Catalog) -> Cluster:
    """A cluster spec with its node, GPU and links looked up.

    Raises:
        UnknownNameError: A name that the catalog does not have.
        CatalogError: A link of the wrong kind, or of another rate than the GPU's.
        ValueError: A tier that splits a domain.
    """
    if spec.pools:
        pools = tuple(resolve_cluster(pool, catalog) for pool in spec.pools)
        return replace(pools[0], spec=spec, pools=pools)
    its_node = _as_used(node(spec.node, catalog), spec, catalog)
    its_gpu = gpu(its_node.gpu, catalog)
    return _checked(
        Cluster(
            spec=spec,
            node=its_node,
            gpu=its_gpu,
            scale_up=link(its_node.scale_up, catalog),
            nic=link(its_node.nic, catalog),
            host_link=link(its_gpu.host_link, catalog),
            catalog=catalog,
        ),
    )


def _as_used(node_spec: NodeSpec, spec: ClusterSpec, catalog: Catalog) -> NodeSpec:
    """The node with the GPUs and NICs that a cluster has of it."""
    of_node = node_spec.gpus_per_node
    size = spec.gpus_per_node or of_node
    if size > of_node:
        raise ValueError(
            f"{spec.name}: gpus_per_node: a {node_spec.name} has {of_node} GPUs; "
            f"given {size}",
        )
    nic = link(spec.nic or node_spec.nic, catalog)
    if nic.kind != "scale-out":
        raise ValueError(
            f"{spec.name}: nic: {nic.name} is a {nic.kind} link; a scale-out link is "
            "needed",
        )
    changed: dict[str, object] = {"nic": nic.name}
    if size < of_node:
        changed |= _share(node_spec, size)
    if spec.nics_per_node:
        changed["nics_per_node"] = spec.nics_per_node
    if spec.power_limit:
        changed["power_limit"] = spec.power_limit
    return node_spec.model_copy(update=changed)


def _share(node_spec: NodeSpec, size: int) -> dict[str, object]:
    """Fields of a node that a cluster has some GPUs of, in proportion to them."""
    gpus = node_spec.gpus_per_node
    rates = ("host_memory", "nvme_capacity", "max_power")
    counts = ("nics_per_node", "nvme_drives")
    values = {name: getattr(node_spec, name) for name in (*rates, *counts)}
    share: dict[str, object] = {
        name: value * size / gpus for name, value in values.items() if value
    }
    share |= {n: max(values[n] * size // gpus, 1) for n in counts if values[n]}
    domain = node_spec.scale_up_domain // gpus * size
    return share | {"gpus_per_node": size, "scale_up_domain": domain}


def _checked(cluster: Cluster) -> Cluster:
    """The cluster, if its tiers hold whole domains."""
    domain = cluster.node.scale_up_domain
    for tier in cluster.spec.tiers:
        if tier.gpus % domain:
            raise ValueError(
                f"{cluster.spec.name}: tier {tier.name} has {tier.gpus} GPUs, which "
                f"are not whole scale-up domains of {domain}",
            )
        _check_units(cluster, tier)
    return cluster


def _check_units(cluster: Cluster, tier: TierSpec) -> None:
    """Units of a tier that differ hold whole domains, and together all nodes."""
    spec, per_node = cluster.spec, cluster.node.gpus_per_node
    inner = max(t.gpus for t in spec.tiers[:-1]) if len(spec.tiers) > 1 else 1
    node_count = max(cluster.node.scale_up_domain, inner) // per_node
    most = tier.gpus // per_node
    for nodes in tier.units:
        if nodes > most or nodes % max(node_count, 1):
            raise ValueError(
                f"{spec.name}: tier {tier.name}: a unit of {nodes} nodes is not whole "
                f"groups of {node_count} nodes, at most {most} (gpus is {tier.gpus})",
            )
