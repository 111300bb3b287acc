"""Fields of a layout from accelerate.yaml and the files beside it."""

from typing import Any

from planner.errors import BadInputError
from planner.frameworks.accelerate.switches import true
from planner.launch.targets.accelerate.files import Found, block, part, whole
from planner.launch.targets.accelerate.fsdp import by_fsdp, degrees_of_mesh, fsdp
from planner.launch.targets.deepspeed.settings import COPIES_AT, wire


def degrees(its: Found) -> dict[str, Any]:
    """Fields of a layout that the files fix."""
    found: dict[str, Any] = {"pp": 1, "ep": 1, **_batch(its)}
    if its.by_deepspeed:
        found |= _deepspeed(its)
    elif by_fsdp(its):
        found |= fsdp(its)
    else:
        found |= {"zero_stage": 0} | degrees_of_mesh(its) | _own_mesh(its)
    return found | _recompute(its) | _activations(its, found)


def _batch(its: Found) -> dict[str, Any]:
    """Micro-batch and gradient accumulation; the trainer's value for `auto`."""
    _refuse_two_batches(its)
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


def _refuse_two_batches(its: Found) -> None:
    """Refuse what DeepSpeed's file and the trainer say of a batch in two ways.

    Source: transformers 5.23.0 integrations/deepspeed.py, trainer_config_process.
    """
    names = {
        "train_micro_batch_size_per_gpu": "per_device_train_batch_size",
        "gradient_accumulation_steps": "gradient_accumulation_steps",
    }
    for theirs, name in names.items():
        one, other = its.zero.get(theirs, "auto"), its.training.get(name)
        if "auto" not in (one, other) and other is not None and one != other:
            raise BadInputError(
                f"is {one} as {theirs} of DeepSpeed's file",
                file=its.name,
                field=name,
                value=other,
                allowed=f"{one}, or auto in DeepSpeed's file",
            )


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
    copied = whole(zero, "zero_hpz_partition_size", its.name)
    if copied > 1 and found["zero_stage"] == COPIES_AT:
        found["hpz"] = copied
    offload = _host(plugin, zero, its.name)
    return found | wire(its.zero) | ({"offload": offload} if offload else {})


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
    by_trainer = any(true(its.training, name) for name in names)
    full = by_trainer or true(plugin, "activation_checkpointing")
    return {"recompute": "full" if full else "none"}


def _activations(its: Found, found: dict[str, Any]) -> dict[str, Any]:
    plugin = block(its.places, "fsdp_config", "fsdp_")
    moved = true(plugin, "activation_checkpointing_offload")
    if moved or true(its.training, "activation_offloading"):
        return {"offload": {**found.get("offload", {}), "activations": 1.0}}
    return {}
