"""The hardware of an imported job: the ranks of the run on what the user names."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import BadInputError
from planner.hardware.catalog import Cluster, node
from planner.hardware.reading.files import SHIPPED
from planner.job.fleets import cluster_named
from planner.job.one_line import fleet_of
from planner.launch.brief import Reading
from planner.specs.reading.read import cluster_fields


@dataclass(frozen=True)
class UserOverrides:
    """Answers of the user on what the files do not hold.

    Attributes:
        model: Name of a preset, or a path of a config.json; empty to take the
            model of the files. [text]
        cluster: Name or path of a cluster; empty for node and nodes. [text]
        on: Count of GPUs in any spelling; empty for cluster or node. [text]
        node: Name of a node, for a cluster of `nodes` such nodes. [text]
        nodes: Number of nodes; None to follow from the ranks of the files. [1]
        ignore: Settings that were not understood, and change nothing. [text]
    """

    model: str = ""
    cluster: str = ""
    on: str = ""
    node: str = ""
    nodes: int | None = None
    ignore: tuple[str, ...] = ()

    @property
    def ranks(self) -> bool:
        """Tell if the answers hold the number of ranks. [-]."""
        return bool(self.cluster or self.on or (self.node and self.nodes))


def cluster_of(given: str | dict[str, Any]) -> Cluster:
    """Cluster by name, by file or in place."""
    try:
        return cluster_named(given, Path(), SHIPPED)
    except ValueError as error:
        raise BadInputError(str(error), field="--cluster") from error


def fleet_told(
    reading: Reading, told: UserOverrides
) -> str | Mapping[str, object] | None:
    """Hardware that the user names, cut to the ranks that the run starts.

    Returns:
        Name or fields of a cluster; None where the user names none. [-]

    Raises:
        BadInputError: The ranks are more than the GPUs, or cannot be placed on them.
    """
    given = told.cluster or _inline(reading, told)
    if not given or "pools" in reading.layout or not (reading.gpus or reading.nodes):
        return given
    whole = cluster_of(given if isinstance(given, str) else dict(given))
    ranks = reading.gpus or (reading.nodes or 1) * whole.node.gpus_per_node
    if reading.shares_gpus and whole.gpus > 1:
        raise BadInputError(
            "is started as one process, in which Trainer splits every batch over the "
            f"{whole.gpus} GPUs (DataParallel), which is not priced",
            field="python",
            allowed="CUDA_VISIBLE_DEVICES=0, torchrun, or accelerate launch",
        )
    as_many = reading.nodes in (None, whole.spec.in_service)
    if ranks == whole.gpus and (as_many or _is_shaped(whole)):
        return given
    fields = cluster_fields(given, Path(), SHIPPED) if isinstance(given, str) else given
    named = {"--cluster": told.cluster, "--on": told.on, "--node": told.node}
    option = next(name for name, value in named.items() if value)
    return _cut(dict(fields), whole, ranks, reading.nodes, option)


def _is_shaped(whole: Cluster) -> bool:
    """True where nodes differ, or have places of their own. [-]."""
    return bool(whole.pools or any(tier.units for tier in whole.spec.tiers))


def _cut(
    fields: dict[str, Any], whole: Cluster, ranks: int, nodes: int | None, option: str
) -> Mapping[str, object]:
    """Whole nodes, or a part of every node, that ranks take of a cluster."""
    most, size = whole.spec.in_service, whole.node.gpus_per_node
    used = nodes or -(-ranks // size)
    each, rest = divmod(ranks, used)
    unplaced = ranks > whole.gpus or used > most or each > size or rest
    if unplaced or _is_shaped(whole):
        over = "" if nodes is None else f" on {nodes} nodes"
        raise BadInputError(
            f"the run starts {ranks} ranks{over}, and these are {whole.gpus} GPUs on "
            f"{most} nodes",
            field=option,
            allowed=f"{ranks} GPUs, as the run takes them",
        )
    kept = {name: its for name, its in fields.items() if name != "out_of_service"}
    part: dict[str, Any] = {"gpus_per_node": each} if each < size else {}
    if each < size and "tiers" in kept:
        tiers = [tier.model_dump(exclude_unset=True) for tier in whole.spec.tiers]
        part["tiers"] = [t | {"gpus": t["gpus"] * each // size} for t in tiers]
    name = f"{ranks} GPUs of {whole.spec.name}"
    return {**kept, "name": name, "nodes": used, **part}


def _inline(reading: Reading, told: UserOverrides) -> str | Mapping[str, object] | None:
    """Nodes below one leaf, where the user counts GPUs or names the node alone."""
    if told.on:
        given = fleet_of(told.on, None, SHIPPED).cluster
        return given if isinstance(given, str) else dict(given)
    if not told.node:
        return None
    try:
        per_node = node(told.node, SHIPPED).gpus_per_node
    except ValueError as error:
        raise BadInputError(str(error), field="--node") from error
    ranks = reading.gpus and -(-reading.gpus // per_node)
    nodes = told.nodes or reading.nodes or ranks
    if nodes is None:
        raise BadInputError(
            "the files do not say how many nodes", field="--nodes", allowed="1 or more"
        )
    return {"name": f"{told.node}-{nodes}", "node": told.node, "nodes": max(nodes, 1)}
