"""The catalog: GPUs, links, nodes and clusters by name, read once from their YAML.

GPUs, links and nodes are data of this package; clusters are files that a user
copies, in `configs/clusters` of a checkout or of the installed `planner`.
"""

import difflib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from hardware.specs import ClusterSpec, GpuSpec, LinkSpec, NodeSpec

Kind = Literal["gpus", "links", "nodes", "clusters"]
"""What the catalog has."""

Model = TypeVar("Model", bound=BaseModel)


class CatalogError(ValueError):
    """A catalog file is wrong; the message names the file and the field."""


class UnknownNameError(ValueError):
    """The catalog has no such name; the message lists the nearest."""


@dataclass(frozen=True)
class Cluster:
    """A cluster with everything its names stand for.

    Attributes:
        spec: Nodes and tiers. [-]
        node: One of its nodes. [-]
        gpu: One of its GPUs. [-]
        scale_up: Link inside a scale-up domain. [-]
        nic: Link of one NIC. [-]
        host_link: Link between a GPU and its host. [-]
    """

    spec: ClusterSpec
    node: NodeSpec
    gpu: GpuSpec
    scale_up: LinkSpec
    nic: LinkSpec
    host_link: LinkSpec

    @property
    def gpus(self) -> int:
        """GPUs [1] in all: nodes * GPUs per node."""
        return self.spec.nodes * self.node.gpus_per_node

    @property
    def nic_share(self) -> float:
        """NIC line rate [B/s] per GPU: NICs per node * rate / GPUs per node."""
        rate = self.node.nics_per_node * self.nic.bandwidth
        return rate / self.node.gpus_per_node


def folder(kind: str) -> Traversable:
    """Where the YAML files of a kind are.

    Args:
        kind: `gpus`, `links`, `nodes`, `clusters` or another folder of data. [-]

    Returns:
        The folder: package data, or `configs/clusters` of the checkout or of the
        installed `planner`, which is found but not imported. [-]

    Raises:
        CatalogError: Neither place has the clusters.
    """
    if kind != "clusters":
        return files("hardware") / kind
    spec = find_spec("planner")
    roots = [Path(__file__).parent.parent]
    roots += [Path(p) for p in (spec and spec.submodule_search_locations) or []]
    for root in roots:
        if (root / "configs" / "clusters").is_dir():
            return root / "configs" / "clusters"
    raise CatalogError(f"no configs/clusters in {' or '.join(map(str, roots))}")


@cache
def names(kind: str) -> tuple[str, ...]:
    """Names of one kind, sorted.

    Args:
        kind: `gpus`, `links`, `nodes` or `clusters`. [-]

    Returns:
        Names, each also the stem of its file. [-]
    """
    found = (entry.name for entry in folder(kind).iterdir())
    return tuple(sorted(n.removesuffix(".yaml") for n in found if n.endswith(".yaml")))


def read(path: Traversable, model: type[Model]) -> Model:
    """One YAML file as a checked model.

    Args:
        path: The file. [-]
        model: Type of what it holds. [-]

    Returns:
        The model. [-]

    Raises:
        CatalogError: No YAML, or not as the model has it; names file and field.
    """
    return parse(str(path), load(path), model)


def load(path: Traversable) -> object:
    """What one YAML file holds, unchecked.

    Args:
        path: The file. [-]

    Returns:
        Mappings, lists and scalars. [-]

    Raises:
        CatalogError: No YAML; names file, line and column.
    """
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise CatalogError(f"{path}: {error}") from error


def parse(path: str, data: object, model: type[Model]) -> Model:
    """What a file holds as a checked model.

    Args:
        path: The file, for messages. [-]
        data: What was read from it. [-]
        model: Type of it. [-]

    Returns:
        The model. [-]

    Raises:
        CatalogError: Not as the model has it; names file and field.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = (_line(path, e["loc"], e["msg"]) for e in error.errors())
        raise CatalogError("\n".join(lines)) from error


def _line(path: str, where: tuple[int | str, ...], message: str) -> str:
    """One line of an error: file, field, what is wrong."""
    field = ".".join(map(str, where)) or "(whole file)"
    return f"{path}: {field}: {message.removeprefix('Value error, ')}"


def lookup(kind: str, name: str, model: type[Model]) -> Model:
    """One entry of the catalog by name.

    Args:
        kind: A folder of `folder`. [-]
        name: Stem of its file. [-]
        model: Type of the entries; it has a `name`. [-]

    Returns:
        The entry. [-]

    Raises:
        UnknownNameError: No such file; lists the nearest names.
        CatalogError: The file is wrong or calls its entry by another name.
    """
    if name not in names(kind):
        raise UnknownNameError(_unknown_name(kind, name))
    entry = read(folder(kind) / f"{name}.yaml", model)
    if getattr(entry, "name", name) != name:
        raise CatalogError(f"{kind}/{name}.yaml: name: must be {name}, as the file")
    return entry


def _unknown_name(kind: str, name: str) -> str:
    """Say what was asked for and what is nearest to it."""
    known = names(kind)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"nearest: {', '.join(near)}" if near else f"known: {', '.join(known)}"
    return f"no {name!r} among {kind}; {hint}"


@cache
def gpu(name: str) -> GpuSpec:
    """A GPU of the catalog.

    Args:
        name: For example `h100-sxm5-80gb`. [-]

    Returns:
        Its datasheet. [-]

    Raises:
        UnknownNameError: No such GPU.
    """
    return lookup("gpus", name, GpuSpec)


@cache
def link(name: str) -> LinkSpec:
    """A link of the catalog.

    Args:
        name: For example `nvlink4`, `ib-ndr`. [-]

    Returns:
        Its datasheet. [-]

    Raises:
        UnknownNameError: No such link.
    """
    return lookup("links", name, LinkSpec)


@cache
def node(name: str) -> NodeSpec:
    """A node of the catalog.

    Args:
        name: For example `dgx-h100`. [-]

    Returns:
        Its datasheet. [-]

    Raises:
        UnknownNameError: No such node.
    """
    return lookup("nodes", name, NodeSpec)


@cache
def cluster(name: str) -> ClusterSpec:
    """A cluster of the catalog.

    Args:
        name: For example `llama3-h100-16k`. [-]

    Returns:
        Its nodes and tiers, names not yet resolved. [-]

    Raises:
        UnknownNameError: No such cluster.
    """
    return lookup("clusters", name, ClusterSpec)


def resolve_cluster(spec: ClusterSpec) -> Cluster:
    """A cluster spec with its node, GPU and links looked up.

    Args:
        spec: From the catalog, a user's file, or made by hand. [-]

    Returns:
        The cluster. [-]

    Raises:
        UnknownNameError: A name that the catalog does not have.
        ValueError: A link of the wrong kind, or a tier that splits a domain.
    """
    its_node = node(spec.node)
    its_gpu = gpu(its_node.gpu)
    return _checked(
        Cluster(
            spec=spec,
            node=its_node,
            gpu=its_gpu,
            scale_up=link(its_node.scale_up),
            nic=link(its_node.nic),
            host_link=link(its_gpu.host_link),
        ),
    )


def _checked(cluster: Cluster) -> Cluster:
    """The cluster, if its tiers hold whole domains and its NIC is a NIC."""
    domain = cluster.node.scale_up_domain
    for tier in cluster.spec.tiers:
        if tier.gpus % domain:
            raise ValueError(
                f"{cluster.spec.name}: tier {tier.name} has {tier.gpus} GPUs, which "
                f"are not whole scale-up domains of {domain}",
            )
    if cluster.nic.kind != "scale-out":
        raise ValueError(
            f"{cluster.node.name}: its nic {cluster.nic.name} is a "
            f"{cluster.nic.kind} link; a scale-out link is needed",
        )
    return cluster
