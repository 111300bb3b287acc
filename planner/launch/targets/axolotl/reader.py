"""Reads axolotl's YAML into a layout and training."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from planner.errors import BadInputError
from planner.frameworks.accelerate.axolotl.known import VERSION, known, unknown_keys
from planner.frameworks.accelerate.liger import FUSED_LOSS, LIGER
from planner.frameworks.accelerate.switches import true
from planner.frameworks.accelerate.variants import asked_for
from planner.launch.targets.accelerate.files import Found, block, whole
from planner.launch.targets.accelerate.fsdp import DATA, REST
from planner.launch.targets.accelerate.trainer import refuse_quantised
from planner.launch.targets.axolotl.contradictions import (
    refuse_contradictions,
)
from planner.launch.targets.axolotl.unpriced import SWITCHES, unpriced
from planner.launch.targets.trainers.reader import (
    Run,
    Settings,
    TrainerReader,
    adapted,
    bits_of,
)
from planner.launch.unknown import Unknown, absent

FSDP_VERSIONS = ("1", "2")
"""Versions of FSDP that axolotl's files name. [text]"""
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
SHIPPED = re.compile(r"(?:.*/)?zero(\d)(_bf16)?(_cpuoffload_(all|params))?(?:\.json)?")
"""Names of the DeepSpeed files that axolotl brings along. [text]"""


class _Reader(TrainerReader):
    def refuse(self, run: Run) -> None:
        refuse_contradictions(run.settings, run.file)
        adapted = {"use_peft": bool(run.settings.get("adapter"))}
        refuse_quantised({**run.settings, **adapted}, run.file)

    def training(self, run: Run) -> dict[str, str]:
        """Rows are padded to their longest text unless they are packed or filled."""
        if true(run.settings, "sample_packing"):
            return {"padding": "packed"}
        filled = true(run.settings, "pad_to_sequence_len")
        return {"padding": "max" if filled else "longest"}

    def ranks(self, run: Run) -> int | None:
        """Ranks that Ray starts; None where Ray starts none. [1]."""
        if not true(run.settings, "use_ray"):
            return None
        return whole(run.settings, "ray_num_workers", run.file)

    def known(self) -> frozenset[str]:
        return known().axolotl | known().liger

    def strange(self, settings: Settings) -> Iterator[Unknown]:
        for name in unknown_keys(settings):
            yield Unknown(name, why=f"no key of axolotl {VERSION}")

    def otherwise(self, run: Run) -> Iterator[Unknown]:
        yield from unpriced(run.settings)
        file = run.settings.get("deepspeed")
        if file and not (run.others.zero or SHIPPED.fullmatch(str(file))):
            yield absent("deepspeed", file)

    def translated(self, run: Run) -> Found:
        return _translated(run.settings, run.others, run.file)


_READER = _Reader("axolotl")
reads, read = _READER.reads, _READER.read


def _translated(settings: Settings, others: Found, name: str) -> Found:
    """axolotl's keys as the files that accelerate's target writes."""
    asked = true(settings, "fp16")
    half = true(settings, "bf16") or (settings["bf16"] == "auto" and not asked)
    scaled = asked and not half
    sharded = bool(settings.get("fsdp_config") or settings.get("fsdp"))
    by_deepspeed = bool(settings.get("deepspeed")) or bool(others.zero)
    places, mesh = dict[str, Any](), _mesh(settings, name)
    if sharded:
        places = {"distributed_type": "FSDP", "fsdp_config": _fsdp(settings, name)}
        places["parallelism_config"] = mesh
    if by_deepspeed:
        places = {"distributed_type": "DEEPSPEED", **_shipped(settings, others)}
    pure = sharded and str(_fsdp(settings, name)["version"]) == "2" and not by_deepspeed
    if pure or not (half or scaled or by_deepspeed):
        places["mixed_precision"] = "no"
    training = _training(settings, name) | {"bf16": half and not pure, "fp16": scaled}
    narrow = half or true(settings, "bfloat16")
    weights = "bfloat16" if narrow else "float16" if scaled else "float32"
    run = _run(settings, name, weights=weights, by_deepspeed=by_deepspeed)
    return replace(others, places=places, training=training, run=run, name=name)


def _fsdp(settings: Settings, name: str) -> dict[str, Any]:
    shards = block(settings, "fsdp_config", "fsdp_")
    version = settings.get("fsdp_version", shards.get("version", 1))
    if str(version) not in FSDP_VERSIONS:
        raise BadInputError(
            "is no FSDP of torch",
            file=name,
            field="fsdp_version",
            value=version,
            allowed=" or ".join(FSDP_VERSIONS),
        )
    return {key: shards[key] for key in SHARDS if key in shards} | {"version": version}


def _mesh(settings: Settings, name: str) -> dict[str, Any]:
    """Ranks by axis; a data axis that is not given takes the ranks that are left.

    Source: axolotl 0.19.0 utils/distributed.py, _get_parallel_config_kwargs.
    """
    sizes = {"tp_size": "tensor_parallel_size", "cp_size": "context_parallel_size"}
    inner: dict[str, Any] = {k: whole(settings, key, name) for k, key in sizes.items()}
    split = {key: whole(settings, key, name) for key in DATA}
    copied, shared = (size > 1 for size in split.values())
    rest = {"dp_shard_size": REST} if not shared else {}
    rest |= {"dp_replicate_size": REST} if shared and not copied else {}
    return inner | split | rest


def _shipped(settings: Settings, others: Found) -> dict[str, Any]:
    """Plugin of DeepSpeed by the name of a file that axolotl brings along."""
    match = SHIPPED.fullmatch(str(settings.get("deepspeed", "")))
    if others.zero or match is None:
        return {}
    moved = match[4] or ""
    plugin: dict[str, Any] = {"zero_stage": int(match[1])}
    plugin |= {"offload_param_device": "cpu"} if moved else {}
    plugin |= {"offload_optimizer_device": "cpu"} if moved == "all" else {}
    return {"deepspeed_config": plugin}


def _training(settings: Settings, name: str) -> dict[str, Any]:
    """Trainer's arguments of the same run."""
    micro = whole(settings, "micro_batch_size", name)
    batch = whole(settings, "batch_size", name, micro)
    steps = whole(settings, ACCUMULATION, name, max(batch // micro, 1))
    arguments: dict[str, Any] = {
        "per_device_train_batch_size": micro,
        ACCUMULATION: steps,
        "optim": settings["optimizer"],
        "optim_args": settings.get("optim_args"),
        "gradient_checkpointing": _checkpoints(settings),
        "accelerator_config": settings.get("accelerator_config"),
        "fsdp": settings.get("fsdp"),
        "tf32": settings.get("tf32"),
        "use_liger_kernel": true(settings, f"liger_{FUSED_LOSS}"),
        "liger_kernel_config": dict.fromkeys(LIGER - {FUSED_LOSS}, False),
    }
    return {key: value for key, value in arguments.items() if value is not None}


def _checkpoints(settings: Settings) -> bool:
    name = "gradient_checkpointing"
    return str(settings.get(name)).startswith("offload") or true(settings, name)


def _attention(settings: Settings) -> str:
    """Kernel by attn_implementation, or by a switch of releases before 0.13."""
    named = settings.get("attn_implementation")
    switched = (word for switch, word in SWITCHES.items() if true(settings, switch))
    return str(named or next(switched, "sdpa"))


def _adapters(settings: Settings, name: str) -> dict[str, Any]:
    named = settings.get("lora_target_modules")
    every = true(settings, "lora_target_linear")
    lora: dict[str, Any] = {
        "r": whole(settings, "lora_r", name, 8),
        "lora_dropout": settings["lora_dropout"],
        "target_modules": "all-linear" if every else named,
    }
    lora |= asked_for(settings, "peft_")
    saved = settings.get("lora_modules_to_save")
    return lora | ({"modules_to_save": saved} if saved else {})


def _run(
    settings: Settings, name: str, *, weights: str, by_deepspeed: bool
) -> dict[str, Any]:
    """run.yaml of the same run."""
    fields: dict[str, Any] = {
        "seq_len": whole(settings, "sequence_len", name),
        "weights": weights,
        "attention": _attention(settings),
    }
    if not settings.get("adapter"):
        return fields
    eight, four = (true(settings, f"load_in_{width}bit") for width in (8, 4))
    kwargs = block(settings, "bnb_config_kwargs")
    kind, double = "bnb_4bit_quant_type", "bnb_4bit_use_double_quant"
    wide = true(settings, "peft_autocast_adapter_dtype", absent=True)
    return fields | adapted(
        _adapters(settings, name),
        bits_of(8 if eight else 4 if four else 16, kwargs, kind, double),
        wide=wide and not by_deepspeed,
    )
