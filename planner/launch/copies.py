"""Settings that the ranks of a run settle: shard groups, and shares of a batch."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.errors import BadInputError
from planner.hardware.catalog import Cluster

PRODUCT = "degrees that multiply to the ranks"


@dataclass(frozen=True)
class Copies:
    """Copies of the sharded states that a setting asks for.

    Attributes:
        name: Name of the setting, as the file writes it. [text]
        value: Value of the setting. [-]
        count: Copies; None for one on every node. [1]
        place: File and line, `file:line`. [text]
    """

    name: str
    value: object
    count: int | None = None
    place: str = ""


def shard_group(
    its: Copies, layout: Mapping[str, Any], cluster: Cluster, gpus: int | None
) -> int:
    """Ranks that share states: ``ranks / (tp pp copies)``, or those of a node.

    Args:
        its: The copies. [-]
        layout: Fields of a layout that the files fix. [-]
        cluster: The cluster of the run. [-]
        gpus: Ranks of the run where the files give a number; None for all GPUs. [1]

    Raises:
        BadInputError: The ranks cannot be shared out so, or the files give another
            group.

    References:
        torch 2.13 distributed/fsdp/_init_utils.py, _init_intra_and_inter_node_groups:
        hybrid sharding without a mesh shards inside a node.
    """
    ranks = gpus or cluster.gpus
    tp, pp, cp = (int(layout.get(axis, 1)) for axis in ("tp", "pp", "cp"))
    copies = its.count or _nodes(its, cluster, ranks)
    group, rest = divmod(ranks, tp * pp * copies)
    given = layout.get("dp_shard", group)
    if rest or group % cp or given != group:
        what = f"copies {copies}, tp {tp}, pp {pp}, cp {cp}"
        what += f", shards over {given}" if "dp_shard" in layout else ""
        raise _wrong(its, f"{ranks} ranks do not divide into {what}", PRODUCT)
    return group


def _nodes(its: Copies, cluster: Cluster, ranks: int) -> int:
    """Nodes that the ranks fill, each with a copy. [1]."""
    sizes = {place.node.gpus_per_node for place in cluster.pools or (cluster,)}
    if len(sizes) > 1:
        raise _wrong(its, "shards inside nodes, which differ here", "nodes of one size")
    (each,) = sizes
    if ranks > each and ranks % each:
        what = f"shards inside nodes, and {ranks} ranks leave one of {each} in part"
        raise _wrong(its, what, "nodes that are filled whole")
    return max(ranks // each, 1)


def _wrong(its: Copies, problem: str, allowed: str) -> BadInputError:
    return BadInputError(
        problem,
        file=its.place or None,
        field=its.name,
        value=its.value,
        allowed=allowed,
    )


def shared_out(
    layout: Mapping[str, Any], total: int, name: str, ranks: int
) -> dict[str, int]:
    """Micro-batch and accumulation: ``batch = micro x accumulation x replicas``.

    A global batch alone is one micro-batch of each replica.

    Args:
        layout: Fields of a layout that the files fix. [-]
        total: Global batch. [sequence]
        name: Setting of the global batch. [text]
        ranks: Ranks of the run. [1]

    Returns:
        The two fields. [sequence, 1]

    References:
        DeepSpeed 0.19.8 runtime/config.py, _set_batch_related_parameters.
    """
    inner = math.prod(int(layout.get(axis, 1)) for axis in ("tp", "pp", "cp"))
    replicas = ranks // inner
    micro, steps = layout.get("micro_batch"), layout.get("grad_accum")
    if micro is None:
        steps = steps or 1
        micro = total // max(replicas * steps, 1)
    elif steps is None:
        steps = total // max(replicas * micro, 1)
    if not micro or not steps or micro * steps * replicas != total:
        raise BadInputError(
            f"is not micro-batch {micro} x accumulation {steps} x {replicas} replicas "
            f"on {ranks} ranks",
            field=name,
            value=total,
            allowed=f"{micro * steps * replicas or replicas}, or other ranks",
        )
    return {"micro_batch": micro, "grad_accum": steps}
