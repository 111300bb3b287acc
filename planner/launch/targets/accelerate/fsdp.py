"""Stage, shard group and offload of FSDP, in the words of accelerate and of Trainer."""

from collections.abc import Iterator
from typing import Any

from planner.errors import BadInputError
from planner.frameworks.accelerate.limits import ROTATIONS
from planner.frameworks.accelerate.switches import true
from planner.launch.copies import Copies
from planner.launch.targets.accelerate.files import Found, block, whole

KINDS = {theirs: ours for ours, theirs in ROTATIONS.items()}
STRATEGIES = {
    "full_shard": 3,
    "shard_grad_op": 2,
    "no_shard": 0,
    "hybrid_shard": 3,
    "hybrid_shard_zero2": 2,
}
"""ZeRO stage by FSDP1's strategy, in the order of its numbers from 1 on. [1]

Source: accelerate 1.15.0 utils/constants.py, FSDP_SHARDING_STRATEGY."""
HYBRID = ("hybrid_shard", "hybrid_shard_zero2")
"""Strategies that shard inside a node, and copy the shards across nodes. [text]"""
OTHER_WORDS = ("true", "offload", "auto_wrap")
"""Words of TrainingArguments.fsdp that name no strategy. [text]"""
RESHARDS = {"true": "full_shard", "false": "shard_grad_op"}
"""Strategy by FSDP2's reshard_after_forward. [text]"""
NUMBERED = {str(n): word for n, word in enumerate(STRATEGIES, start=1)} | RESHARDS
"""Strategy by its number too. [text]"""
REST = "auto"
"""Size of a mesh's axis that takes the ranks that other axes leave. [text]"""
MESH = "parallelism_config"
DATA = ("dp_replicate_size", "dp_shard_size")
AXES = (*DATA, "tp_size", "cp_size")


def by_fsdp(its: Found) -> bool:
    """Tell if FSDP runs the job.

    Returns:
        True where accelerate.yaml or Trainer's arguments ask for it.
    """
    kind = str(its.places.get("distributed_type", "")).upper()
    return not its.by_deepspeed and (kind == "FSDP" or bool(words(its)))


def fsdp(its: Found) -> dict[str, Any]:
    """Fields of a layout that FSDP shards.

    Raises:
        BadInputError: A strategy is none of FSDP's, or a degree is no whole number.
    """
    found, mesh = degrees_of_mesh(its), _mesh(its)
    found["zero_stage"] = STRATEGIES[_strategy(its)[1]]
    shard = whole(mesh, "dp_shard_size", its.name) * found["cp"]
    if shard > 1 and mesh.get("dp_shard_size") != REST:
        found["dp_shard"] = shard
    plugin = _plugin(its)
    offloads = "offload_params" if "offload_params" in plugin else "cpu_offload"
    if true(plugin, offloads) or "offload" in words(its):
        found["offload"] = dict.fromkeys(("optimizer", "parameters", "gradients"), 1.0)
    return found


def degrees_of_mesh(its: Found) -> dict[str, Any]:
    """Tensor and context degrees of accelerate's mesh.

    Raises:
        BadInputError: A degree is no whole number, the strategy is none that is known,
            or copies lie beside tensor ranks without shards.

    References:
        accelerate 1.15.0 parallelism_config.py, __post_init__, and
        utils/dataclasses.py, TorchContextParallelConfig.
    """
    mesh = _mesh(its)
    tp, cp = (whole(mesh, f"{axis}_size", its.name) for axis in ("tp", "cp"))
    copied, shared = (str(mesh.get(axis) or 1) for axis in DATA)
    if (tp > 1 or cp > 1) and copied not in ("1", REST) and shared == "1":
        raise BadInputError(
            "goes not with tensor or context ranks alone",
            file=its.name,
            field="dp_replicate_size",
            value=copied,
            allowed="dp_shard_size of 2 or more beside it, or 1",
        )
    said = str(mesh.get("cp_comm_strategy") or ROTATIONS["all-gather"])
    if (kind := KINDS.get(said)) is None:
        allowed = ", ".join(KINDS)
        raise BadInputError(
            "is no rotation of keys",
            file=its.name,
            field="cp_comm_strategy",
            value=said,
            allowed=allowed,
        )
    return {"tp": tp, "cp": cp} | ({"cp_kind": kind} if cp > 1 else {})


def copies(its: Found) -> Copies | None:
    """Copies of the states under FSDP, where the files ask for any.

    Returns:
        Copies by a hybrid strategy or a mesh; None without either.

    Raises:
        BadInputError: The mesh leaves FSDP no ranks to shard over.

    References:
        accelerate 1.15.0 parallelism_config.py, _validate_accelerator: the sizes of a
        mesh multiply to the ranks, and FSDP2 shards over dp_shard and cp.
    """
    if not by_fsdp(its):
        return None
    name, strategy = _strategy(its)
    if strategy in HYBRID:
        return Copies(name, strategy)
    mesh = {k: v for k, v in block(its.places, MESH).items() if v not in (None, 1)}
    named = ((key.removeprefix(f"{MESH}_"), key) for key in mesh)
    sizes = {axis: key for axis, key in named if axis in AXES}
    if sizes and not {"dp_shard_size", "cp_size"} & sizes.keys():
        what = "2 or more: FSDP shards over no other ranks"
        raise BadInputError(
            "is missing", file=its.name, field="dp_shard_size", allowed=what
        )
    given = [sizes[k] for k in DATA if k in sizes and mesh[sizes[k]] != REST]
    if not given or mesh.get(sizes.get("dp_replicate_size", "")) == REST:
        return None
    count = whole(_mesh(its), "dp_replicate_size", its.name)
    return Copies(given[0], mesh[given[0]], count)


def words(its: Found) -> list[str]:
    """Words of TrainingArguments.fsdp; empty where it is off."""
    given = its.training.get("fsdp")
    split = given if isinstance(given, list) else str(given or "").split()
    return [str(word).lower() for word in split if str(word).lower() != "false"]


def _mesh(its: Found) -> dict[str, Any]:
    return block(its.places, MESH, f"{MESH}_")


def _plugin(its: Found) -> dict[str, Any]:
    plugin = block(its.places, "fsdp_config", "fsdp_")
    return plugin | block(its.training, "fsdp_config", "fsdp_")


def _strategy(its: Found) -> tuple[str, str]:
    """Setting that decides the strategy, and FSDP1's word for the strategy.

    FSDP1 goes by the first setting, FSDP2 by the last, and no other setting may say
    otherwise there. Where no version is given, releases differ, and words decide.
    """
    named = list(_named(its)) or [("fsdp", "full_shard")]
    for name, word in named:
        if word not in STRATEGIES:
            raise _wrong(its, name, word, ", ".join(STRATEGIES))
    if str(_plugin(its).get("version")) != "2":
        return named[0]
    name, decides = named[-1]
    for other, word in named:
        if word not in RESHARDS.values() or word != decides:
            meant = "dp_replicate_size" if word in HYBRID else "reshard_after_forward"
            raise _wrong(its, other, word, f"FSDP2 goes by {meant}")
    return name, decides


def _named(its: Found) -> Iterator[tuple[str, str]]:
    """Settings that name a strategy, each with FSDP1's word."""
    yield from (("fsdp", word) for word in words(its) if word not in OTHER_WORDS)
    for key in ("sharding_strategy", "reshard_after_forward"):
        given = _plugin(its).get(key)
        if given is not None:
            word = str(given).lower().lstrip("_")
            yield f"fsdp_{key}", NUMBERED.get(word, word)


def _wrong(its: Found, name: str, value: object, allowed: str) -> BadInputError:
    return BadInputError(
        "is no such strategy",
        file=its.name,
        field=name,
        value=value,
        allowed=allowed,
    )
