"""Counts of GPUs as people write them, read into a cluster of usual nodes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from planner.hardware.catalog import cluster, node, resolve_cluster
from planner.hardware.fleets import MOST_NODES, ClusterSpec
from planner.hardware.reading.files import Catalog
from planner.hardware.reading.nearest import alike
from planner.hardware.specs import NodeSpec
from planner.hardware.spelling.gpus import gpu_called, refuse_by_name
from planner.hardware.spelling.networks import network_called
from planner.hardware.spelling.words import SpellingError, tokens, words

EXAMPLES = "8xh100, 4x4090, '64 x MI300X', '2 nodes of 8 A100-40 over 25 GbE'"
"""Texts that `read_fleet` takes. [text]"""
LONGEST = 120
"""Characters of a text. [1]"""
_N = r"(\d[\d,]*)(?![\d,]|\.\d)"
_TIMES = r"\s*[x\u00d7*]\s*"
_NODES = r"\s*(?:nodes?|servers?|machines?|hosts?)\b\s*(?:of|with|x|\u00d7|\*|:)?\s*"
_FORMS = (
    rf"{_N}{_NODES}{_N}(?:{_TIMES}|\s*)(.+)",
    rf"{_N}{_TIMES}{_N}{_TIMES}(.+)",
    rf"(){_N}(?:{_TIMES}|\s*)(.+)",
)
_REVERSED = rf"(.+?)\s*(?:[x\u00d7*:]|\s)\s*{_N}"
_OVER = re.compile(r"\s+(?:over|via)\s+")


@dataclass(frozen=True)
class Count:
    """A count of GPUs as written.

    Attributes:
        nodes: Nodes, 0 where the text does not say. [1]
        each: GPUs of each node, or GPUs in all. [1]
        name: GPU or node as written. [text]
    """

    nodes: int
    each: int
    name: str


@dataclass(frozen=True)
class Fleet:
    """A cluster that a text describes.

    Attributes:
        cluster: Name of a cluster, or fields of one. [-]
        words: Nodes and network in words; empty for a cluster that has a name. [text]
        gpus: GPUs. [1]
        gpu: Name of the GPU. [-]
    """

    cluster: str | dict[str, object]
    words: str
    gpus: int
    gpu: str


def read_fleet(text: str, catalog: Catalog, network: str | None = None) -> Fleet:
    """Read a count of GPUs, or the name of a cluster.

    Raises:
        SpellingError: No such GPU, count, cluster or network; says what is nearest.
    """
    plain = " ".join(text.split())
    if len(plain) > LONGEST:
        raise SpellingError(f"{plain[:40]!r}... is longer than {LONGEST} characters")
    if plain in catalog.names("clusters"):
        return _known(plain, network, catalog)
    body, *over = _OVER.split(plain, maxsplit=1)
    if over and network is not None:
        raise SpellingError(f"the network is given twice, {over[0]!r} and {network!r}")
    count = _count(body, catalog)
    return _fleet(count, next(iter(over), network), catalog)


def _known(name: str, network: str | None, catalog: Catalog) -> Fleet:
    """A cluster of the catalog."""
    if network is not None:
        raise SpellingError(f"{name} is a cluster with a network of its own")
    resolved = resolve_cluster(cluster(name, catalog), catalog)
    return Fleet(name, "", resolved.gpus, resolved.gpu.name)


def _count(body: str, catalog: Catalog) -> Count:
    """The reading of a text under which it names hardware that is known."""
    readings = list(_readings(body))
    if not readings:
        refuse_by_name(body)
        near = alike(body, catalog.names("clusters"))
        hint = f"; nearest clusters: {', '.join(near)}" if near else ""
        hint = f"; say how many, as 8x{body}" if _is_gpu(body, catalog) else hint
        raise SpellingError(f"{body!r} is no count of GPUs and no cluster{hint}")
    for reading in readings:
        if _node_called(reading.name, catalog) or _is_gpu(reading.name, catalog):
            return reading
    for reading in readings:
        refuse_by_name(reading.name)
    gpu_called(readings[0].name, catalog)
    return readings[0]


def _readings(body: str) -> Iterator[Count]:
    """Readings of a text, the likeliest first."""
    for form in _FORMS:
        if match := re.fullmatch(form, body, flags=re.IGNORECASE):
            yield Count(_number(match[1]), _number(match[2]), match[3])
    if match := re.fullmatch(_REVERSED, body, flags=re.IGNORECASE):
        yield Count(0, _number(match[2]), match[1])


def _number(text: str) -> int:
    return int(text.replace(",", "")[:12] or 0)


def _is_gpu(name: str, catalog: Catalog) -> bool:
    """True where a text names one GPU that is not refused."""
    try:
        refuse_by_name(name)
        gpu_called(name, catalog)
    except SpellingError:
        return False
    return True


def _node_called(name: str, catalog: Catalog) -> NodeSpec | None:
    """A node of the catalog by its name, which may leave the provider out."""
    asked, every = tokens(name), catalog.names("nodes")
    names = [known for known in every if tokens(known) == asked]
    names = names or [known for known in every if _instance(known) == _instance(name)]
    return node(names[0], catalog) if len(names) == 1 else None


def _instance(name: str) -> tuple[str, ...]:
    """Words of a node's name without those of its provider."""
    name_words = tokens(name)
    return (
        name_words[1:]
        if name_words and name_words[0] in words().providers
        else name_words
    )


def _fleet(count: Count, network: str | None, catalog: Catalog) -> Fleet:
    """The cluster of a count."""
    if not count.each or (count.nodes or count.each) > MOST_NODES:
        raise SpellingError(f"a count is 1 to {MOST_NODES:,}")
    node_spec = _node_called(count.name, catalog)
    if node_spec is not None and not count.nodes:
        nodes = count.each * (node_spec.scale_up_domain // node_spec.gpus_per_node)
        return _of_nodes(node_spec, nodes, node_spec.gpus_per_node, network, catalog)
    if node_spec is None:
        node_spec = _usual(count, catalog)
    nodes, per_node = (
        (count.nodes, count.each) if count.nodes else _shared(count, node_spec)
    )
    if per_node > node_spec.gpus_per_node:
        raise SpellingError(
            f"the largest usual node of {node_spec.gpu}, {node_spec.name}, has "
            f"{node_spec.gpus_per_node} GPUs; given {per_node}"
        )
    return _of_nodes(node_spec, nodes, per_node, network, catalog)


def _usual(count: Count, catalog: Catalog) -> NodeSpec:
    """The smallest usual node that holds a count, else the largest."""
    gpu = gpu_called(count.name, catalog)
    nodes = [node(name, catalog) for name in gpu.usual_nodes]
    if not nodes:
        raise SpellingError(
            f"no usual node of {gpu.name} is known: write a cluster with a node of "
            "yours (--hardware DIR); GPUs with one: planner catalog nodes"
        )
    holding = (
        candidate for candidate in nodes if candidate.gpus_per_node >= count.each
    )
    return next(holding, nodes[-1])


def _shared(count: Count, node: NodeSpec) -> tuple[int, int]:
    """Nodes, as few as hold a count, and the equal number of GPUs of each."""
    most = node.gpus_per_node
    nodes = -(-count.each // most)
    per_node, odd = divmod(count.each, nodes)
    if odd:
        below, above = (nodes - 1) * most, nodes * most
        even = next(n for n in range(nodes, count.each + 1) if count.each % n == 0)
        raise SpellingError(
            f"{count.each} GPUs do not share out evenly over {nodes} nodes of up to "
            f"{most} ({node.name}); nearest: {below}x or {above}x, or say how, as "
            f"'{even} nodes of {count.each // even}'"
        )
    return nodes, per_node


def _of_nodes(
    node_spec: NodeSpec,
    nodes: int,
    per_node: int,
    network: str | None,
    catalog: Catalog,
) -> Fleet:
    """The cluster of equal nodes, with its name and words."""
    name = f"{nodes} x {node_spec.name}"
    fields: dict[str, object] = {"node": node_spec.name, "nodes": nodes}
    text = f"{nodes:,} x {node_spec.name}"
    size = node_spec.gpus_per_node
    if per_node < size:
        fields |= {"gpus_per_node": per_node}
        name += f", {per_node} of {size} GPUs"
        text += f" with {per_node} of {size} GPUs"
    if network is not None:
        rails = network_called(network, catalog)
        fields |= {"nic": rails.nic}
        fields |= {"nics_per_node": rails.nics} if rails.nics else {}
        name += f" over {rails.nic}"
    fields = {"name": name, **fields}
    spec = resolve_cluster(ClusterSpec.model_validate(fields), catalog)
    if nodes > 1:
        text += f" over {spec.node.nics_per_node} x {spec.nic.name} each"
    return Fleet(fields, text, nodes * per_node, node_spec.gpu)
