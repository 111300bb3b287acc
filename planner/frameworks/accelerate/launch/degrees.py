"""Fields of a layout from accelerate.yaml and the files beside it."""

from typing import Any

from planner.frameworks.accelerate.launch.files import Found, block, part, whole
from planner.frameworks.accelerate.launch.trainer import true
from planner.frameworks.accelerate.limits import ROTATIONS

KINDS = {theirs: ours for ours, theirs in ROTATIONS.items()}
STRATEGIES = {
    "full_shard": 3,
    "shard_grad_op": 2,
    "hybrid_shard": 3,
    "hybrid_shard_zero2": 2,
    "no_shard": 0,
    "1": 3,
    "2": 2,
    "3": 0,
    "4": 3,
    "5": 2,
}
"""ZeRO stage by FSDP1's strategy, its name or its number. [1]"""


def degrees(its: Found) -> dict[str, Any]:
    """Fields of a layout that the files fix.

    Args:
        its: The files. [-]

    Returns:
        Values by field. [-]
    """
    kind = str(its.places.get("distributed_type", "")).upper()
    found: dict[str, Any] = {"pp": 1, "ep": 1, **_batch(its)}
    if kind == "DEEPSPEED" or its.zero:
        found |= _deepspeed(its)
    elif kind == "FSDP" or _words(its):
        found |= _fsdp(its)
    else:
        found |= {"zero_stage": 0, "tp": 1, "cp": 1} | _own_mesh(its)
    return found | _recompute(its) | _activations(its, found)


def _batch(its: Found) -> dict[str, Any]:
    """Micro-batch and gradient accumulation; the trainer's value for `auto`."""
    plugin = block(its.places, "deepspeed_config")
    steps = its.zero.get("gradient_accumulation_steps")
    steps = steps or plugin.get("gradient_accumulation_steps")
    given = {
        "per_device_train_batch_size": its.zero.get("train_micro_batch_size_per_gpu"),
        "gradient_accumulation_steps": steps,
    }
    found = {k: v for k, v in given.items() if v not in (None, "auto")}
    found |= {k: its.training[k] for k in given if k in its.training}
    defaults = {"per_device_train_batch_size": 8} if its.training else {}
    found = defaults | found
    names = {
        "micro_batch": "per_device_train_batch_size",
        "grad_accum": "gradient_accumulation_steps",
    }
    return {
        ours: whole(found, theirs, its.name)
        for ours, theirs in names.items()
        if theirs in found
    }


def _fsdp(its: Found) -> dict[str, Any]:
    plugin = block(its.places, "fsdp_config", "fsdp_")
    plugin |= block(its.training, "fsdp_config", "fsdp_")
    mesh = block(its.places, "parallelism_config", "parallelism_config_")
    cp = whole(mesh, "cp_size", its.name)
    found: dict[str, Any] = {
        "tp": whole(mesh, "tp_size", its.name),
        "cp": cp,
        "zero_stage": _strategy(its, plugin),
    }
    if cp > 1:
        found["cp_kind"] = KINDS.get(str(mesh.get("cp_comm_strategy", "")), "ring")
    shard = whole(mesh, "dp_shard_size", its.name) * cp
    if shard > 1:
        found["dp_shard"] = shard
    offloads = plugin.get("offload_params", plugin.get("cpu_offload"))
    if true(offloads) or "offload" in _words(its):
        found["offload"] = dict.fromkeys(("optimizer", "parameters", "gradients"), 1.0)
    return found


def _words(its: Found) -> list[str]:
    """Words of TrainingArguments.fsdp; empty where it is off."""
    given = its.training.get("fsdp")
    words = given if isinstance(given, list) else str(given or "").split()
    return [str(word).lower() for word in words if str(word).lower() != "false"]


def _strategy(its: Found, plugin: dict[str, Any]) -> int:
    """ZeRO stage that TrainingArguments.fsdp names, else the plugin's stage."""
    named = [STRATEGIES[word] for word in _words(its) if word in STRATEGIES]
    return named[0] if named else _stage(plugin)


def _stage(plugin: dict[str, Any]) -> int:
    """ZeRO stage by FSDP1's strategy, or by FSDP2's reshard_after_forward."""
    version = str(plugin.get("version", 1 if "sharding_strategy" in plugin else 2))
    after = str(plugin.get("reshard_after_forward", "true")).lower()
    if version == "1":
        strategy = str(plugin.get("sharding_strategy", after)).lower()
        return STRATEGIES.get(strategy, 3)
    return STRATEGIES.get(after, 2 if after == "false" else 3)


def _own_mesh(its: Found) -> dict[str, Any]:
    """Transformers' mesh for tensor ranks, which run.yaml holds."""
    mesh = block(its.run, "distributed")
    if not mesh:
        return {}
    found: dict[str, Any] = {"tp": whole(mesh, "tp_size", "run.yaml")}
    shard = whole(mesh, "fsdp_size", "run.yaml")
    if shard == 1:
        return found
    kept = "keep_full_weight" in str(mesh.get("fsdp_plan", ""))
    found |= {"zero_stage": 2 if kept else 3, "dp_shard": shard}
    if mesh.get("fsdp_cpu_offload"):
        found["offload"] = dict.fromkeys(("optimizer", "parameters", "gradients"), 1.0)
    return found


def _deepspeed(its: Found) -> dict[str, Any]:
    plugin = block(its.places, "deepspeed_config")
    zero = block(its.zero, "zero_optimization")
    mesh = block(its.places, "parallelism_config", "parallelism_config_")
    given = zero or {"stage": plugin.get("zero_stage", 2)}
    cp = whole(mesh, "sp_size", its.name)
    found: dict[str, Any] = {
        "tp": whole(block(its.zero, "tensor_parallel"), "autotp_size", its.name),
        "cp": cp,
        "zero_stage": whole(given, "stage", its.name, 0, least=0),
    }
    if cp > 1:
        found["cp_kind"] = "ulysses"
    shard = whole(zero, "zero_hpz_partition_size", its.name)
    if shard > 1:
        found["dp_shard"] = shard
    wire = its.zero.get("communication_data_type")
    if wire in ("fp32", "bf16"):
        found["comm_dtype"] = {"gradients": wire}
    offload = _host(plugin, zero, its.name)
    return found | ({"offload": offload} if offload else {})


def _host(plugin: dict[str, Any], zero: dict[str, Any], file: str) -> dict[str, Any]:
    """Shares of the states that DeepSpeed keeps on the host or on drives."""
    found: dict[str, Any] = {}
    for name, key in (("optimizer", "optimizer"), ("parameters", "param")):
        inside = block(zero, f"offload_{key}")
        device = inside.get("device", plugin.get(f"offload_{key}_device", "none"))
        if device in ("cpu", "nvme"):
            found |= {name: part(inside, "ratio", file, 1.0), "device": device}
    return found


def _recompute(its: Found) -> dict[str, Any]:
    plugin = block(its.places, "fsdp_config", "fsdp_")
    plugin |= block(its.training, "fsdp_config", "fsdp_")
    names = ("gradient_checkpointing", "activation_checkpointing")
    by_trainer = any(true(its.training.get(name)) for name in names)
    full = by_trainer or true(plugin.get("activation_checkpointing"))
    return {"recompute": "full" if full else "none"}


def _activations(its: Found, found: dict[str, Any]) -> dict[str, Any]:
    plugin = block(its.places, "fsdp_config", "fsdp_")
    moved = true(plugin.get("activation_checkpointing_offload"))
    if moved or true(its.training.get("activation_offloading")):
        return {"offload": {**found.get("offload", {}), "activations": 1.0}}
    return {}
