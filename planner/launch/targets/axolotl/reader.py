"""Reads axolotl's YAML into a layout and training."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.errors import BadInputError
from planner.frameworks.accelerate.harmless import harmless
from planner.frameworks.accelerate.liger import FUSED_LOSS, LIGER
from planner.frameworks.accelerate.switches import true
from planner.frameworks.accelerate.variants import asked_for
from planner.launch.brief import Reading
from planner.launch.shell.started import Started, changed, started
from planner.launch.targets.accelerate.files import (
    Found,
    block,
    found,
    parsed,
    whole,
)
from planner.launch.targets.accelerate.fsdp import DATA, REST
from planner.launch.targets.accelerate.reader import reading_of
from planner.launch.targets.accelerate.trainer import refuse_quantised
from planner.launch.targets.axolotl.contradictions import (
    refuse_contradictions,
)
from planner.launch.targets.axolotl.told import READ, SWITCHES, told
from planner.launch.unknown import Unknown, absent

FSDP_VERSIONS = ("1", "2")
"""Versions of FSDP that axolotl's files name. [text]"""
MARKS = frozenset({"base_model", "sequence_len", "micro_batch_size"})
"""Keys that mark axolotl's YAML, which has two of them. [text]"""
DEFAULTS: Mapping[str, Any] = {
    "sequence_len": 512,
    "micro_batch_size": 1,
    "bf16": "auto",
    "optimizer": "adamw_torch_fused",
    "lora_dropout": 0.0,
}
"""Values that axolotl takes where a key is not given. [-]"""
SHARDS = (
    "reshard_after_forward",
    "sharding_strategy",
    "offload_params",
    "activation_checkpointing",
    "auto_wrap_policy",
    "backward_prefetch",
)
"""Keys of fsdp_config that are read, without their prefix. [text]"""
ACCUMULATION = "gradient_accumulation_steps"
PROGRAM = re.compile(r"(.*/)?axolotl|axolotl\.cli\.train|.*axolotl/cli/train\.py")
OF_LAUNCHER = frozenset({"accelerate", "cloud", "launcher"})
"""Options of `axolotl train` that are no keys. [text]"""
SHIPPED = re.compile(r"(?:.*/)?zero(\d)(_bf16)?(_cpuoffload_(all|params))?(?:\.json)?")
"""Names of the DeepSpeed files that axolotl brings along. [text]"""


def reads(files: Mapping[str, str]) -> bool:
    """Tell if a file is axolotl's.

    Returns:
        True where a file has two of the keys that axolotl alone has.
    """
    return _own(files) is not None


def read(files: Mapping[str, str]) -> Reading:
    """Read axolotl's YAML and the file of DeepSpeed beside it.

    Raises:
        BadInputError: No file is axolotl's, or a value is wrong.
    """
    name = _own(files)
    if name is None:
        raise BadInputError(
            "is no configuration of axolotl",
            file=", ".join(files),
            allowed=f"YAML with two of {', '.join(sorted(MARKS))}",
        )
    command = started(files, PROGRAM, READ)
    own = changed(parsed(files[name]), _own_options(command))
    refuse_contradictions(own, name)
    given = {**DEFAULTS, **own}
    refuse_quantised({**given, "use_peft": bool(given.get("adapter"))}, name)
    others = found(
        {n: text for n, text in files.items() if n != name}, command.launcher
    )
    reading = reading_of(_translated(given, others, name), "axolotl")
    return replace(
        reading,
        training={**reading.training, **_rows(given)},
        gpus=_of_ray(given, name) or reading.gpus,
        named=str(given.get("base_model", "")),
        ignored=(*reading.ignored, *_ignored(given)),
        unknown=(
            *map(_spelled, reading.unknown),
            *told(given),
            *_absent(given, others),
        ),
    )


def _of_ray(given: Mapping[str, Any], name: str) -> int | None:
    """Ranks that Ray starts; None where Ray starts none. [1]."""
    return whole(given, "ray_num_workers", name) if true(given, "use_ray") else None


def _own(files: Mapping[str, str]) -> str | None:
    """Name of the first file with two marks; None without such a file."""
    endings = (".yaml", ".yml", ".json")
    named = (n for n in files if n.endswith(endings))
    return next((n for n in named if len(MARKS & parsed(files[n]).keys()) > 1), None)


def _own_options(command: Started) -> dict[str, Any]:
    """Keys that the command changes, beside options of axolotl's own launcher."""
    return {n: value for n, value in command.given.items() if n not in OF_LAUNCHER}


def _rows(given: Mapping[str, Any]) -> dict[str, str]:
    """Rows are padded to their longest text unless they are packed or filled up."""
    if true(given, "sample_packing"):
        return {"padding": "packed"}
    whole = true(given, "pad_to_sequence_len")
    return {"padding": "max" if whole else "longest"}


def _translated(given: Mapping[str, Any], others: Found, name: str) -> Found:
    """axolotl's keys as the files that accelerate's target writes."""
    asked = true(given, "fp16")
    half = true(given, "bf16") or (given["bf16"] == "auto" and not asked)
    scaled = asked and not half
    sharded = bool(given.get("fsdp_config") or given.get("fsdp"))
    by_deepspeed = bool(given.get("deepspeed")) or bool(others.zero)
    places, mesh = dict[str, Any](), _mesh(given, name)
    if sharded:
        places = {"distributed_type": "FSDP", "fsdp_config": _fsdp(given, name)}
        places["parallelism_config"] = mesh
    if by_deepspeed:
        places = {"distributed_type": "DEEPSPEED", **_shipped(given, others)}
    pure = sharded and str(_fsdp(given, name)["version"]) == "2" and not by_deepspeed
    if pure or not (half or scaled or by_deepspeed):
        places["mixed_precision"] = "no"
    training = _training(given, name) | {"bf16": half and not pure, "fp16": scaled}
    narrow = half or true(given, "bfloat16")
    weights = "bfloat16" if narrow else "float16" if scaled else "float32"
    run = _run(given, name, weights=weights, by_deepspeed=by_deepspeed)
    return replace(others, places=places, training=training, run=run, name=name)


def _fsdp(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    its = block(given, "fsdp_config", "fsdp_")
    version = given.get("fsdp_version", its.get("version", 1))
    if str(version) not in FSDP_VERSIONS:
        raise BadInputError(
            "is no FSDP of torch",
            file=name,
            field="fsdp_version",
            value=version,
            allowed=" or ".join(FSDP_VERSIONS),
        )
    return {key: its[key] for key in SHARDS if key in its} | {"version": version}


def _mesh(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Ranks by axis; a data axis that is not given takes the ranks that are left.

    Source: axolotl 0.19.0 utils/distributed.py, _get_parallel_config_kwargs.
    """
    sizes = {"tp_size": "tensor_parallel_size", "cp_size": "context_parallel_size"}
    its: dict[str, Any] = {k: whole(given, key, name) for k, key in sizes.items()}
    split = {key: whole(given, key, name) for key in DATA}
    copied, shared = (size > 1 for size in split.values())
    rest = {"dp_shard_size": REST} if not shared else {}
    rest |= {"dp_replicate_size": REST} if shared and not copied else {}
    return its | split | rest


def _shipped(given: Mapping[str, Any], others: Found) -> dict[str, Any]:
    """Plugin of DeepSpeed by the name of a file that axolotl brings along."""
    match = SHIPPED.fullmatch(str(given.get("deepspeed", "")))
    if others.zero or match is None:
        return {}
    moved = match[4] or ""
    plugin: dict[str, Any] = {"zero_stage": int(match[1])}
    plugin |= {"offload_param_device": "cpu"} if moved else {}
    plugin |= {"offload_optimizer_device": "cpu"} if moved == "all" else {}
    return {"deepspeed_config": plugin}


def _spelled(its: Unknown) -> Unknown:
    """A setting of Trainer's under axolotl's name."""
    return replace(its, name="optimizer") if its.name == "optim" else its


def _absent(given: Mapping[str, Any], others: Found) -> Iterator[Unknown]:
    file = given.get("deepspeed")
    if not file or others.zero:
        return
    if not SHIPPED.fullmatch(str(file)):
        yield absent("deepspeed", file)


def _training(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Trainer's arguments of the same run."""
    micro = whole(given, "micro_batch_size", name)
    batch = whole(given, "batch_size", name, micro)
    steps = whole(given, ACCUMULATION, name, max(batch // micro, 1))
    found: dict[str, Any] = {
        "per_device_train_batch_size": micro,
        ACCUMULATION: steps,
        "optim": given["optimizer"],
        "optim_args": given.get("optim_args"),
        "gradient_checkpointing": _checkpoints(given),
        "accelerator_config": given.get("accelerator_config"),
        "fsdp": given.get("fsdp"),
        "tf32": given.get("tf32"),
        "use_liger_kernel": true(given, f"liger_{FUSED_LOSS}"),
        "liger_kernel_config": dict.fromkeys(LIGER - {FUSED_LOSS}, False),
    }
    return {key: value for key, value in found.items() if value is not None}


def _checkpoints(given: Mapping[str, Any]) -> bool:
    name = "gradient_checkpointing"
    return str(given.get(name)).startswith("offload") or true(given, name)


def _run(
    given: Mapping[str, Any], name: str, *, weights: str, by_deepspeed: bool
) -> dict[str, Any]:
    """run.yaml of the same run."""
    its: dict[str, Any] = {
        "seq_len": whole(given, "sequence_len", name),
        "weights": weights,
        "attention": _attention(given),
    }
    if not given.get("adapter"):
        return its
    cast = true(given, "peft_autocast_adapter_dtype", absent=True)
    its["adapters"] = _adapters(given, name)
    its["adapters_in_fp32"] = cast and not by_deepspeed
    return its | ({"quantization": bits} if (bits := _quantized(given)) else {})


def _attention(given: Mapping[str, Any]) -> str:
    """Kernel by attn_implementation, or by a switch of releases before 0.13."""
    named = given.get("attn_implementation")
    switched = (word for switch, word in SWITCHES.items() if true(given, switch))
    return str(named or next(switched, "sdpa"))


def _adapters(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    named = given.get("lora_target_modules")
    every = true(given, "lora_target_linear")
    its: dict[str, Any] = {
        "r": whole(given, "lora_r", name, 8),
        "lora_dropout": given["lora_dropout"],
        "target_modules": "all-linear" if every else named,
    }
    its |= asked_for(given, "peft_")
    saved = given.get("lora_modules_to_save")
    return its | ({"modules_to_save": saved} if saved else {})


def _quantized(given: Mapping[str, Any]) -> dict[str, Any]:
    if true(given, "load_in_8bit"):
        return {"load_in_8bit": True}
    if not true(given, "load_in_4bit"):
        return {}
    kwargs = block(given, "bnb_config_kwargs")
    return {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": kwargs.get("bnb_4bit_quant_type", "nf4"),
        "bnb_4bit_use_double_quant": true(
            kwargs, "bnb_4bit_use_double_quant", absent=True
        ),
    }


def _ignored(given: Mapping[str, Any]) -> Iterator[str]:
    its = harmless("axolotl")
    yield from (f"{name} {value}" for name, value in given.items() if name in its)
