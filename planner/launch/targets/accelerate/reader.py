"""Reads accelerate.yaml and a trainer's arguments into a layout and training."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.errors import BadInputError, did_you_mean
from planner.frameworks.accelerate.launch.known import (
    LENGTHS,
    PREFIXES,
    unknown_keys,
)
from planner.frameworks.accelerate.liger import (
    FUSED_LOSS,
    LIGER,
    LIGER_STACK,
    liger,
)
from planner.frameworks.accelerate.stack import (
    DEEPSPEED_STACK,
    OPTIMIZERS,
    OVER_SHARDS,
)
from planner.frameworks.accelerate.switches import true
from planner.frameworks.accelerate.together import refuse_auto
from planner.frameworks.accelerate.variants import RATIO, WORDS
from planner.frameworks.transformers import asked_attention
from planner.launch.brief import Reading
from planner.launch.sizes import HUGGING_FACE, sizes_of
from planner.launch.targets.accelerate.degrees import degrees
from planner.launch.targets.accelerate.files import (
    MARKS,
    Found,
    block,
    found,
    number,
    part,
    whole,
)
from planner.launch.targets.accelerate.fsdp import copies
from planner.launch.targets.accelerate.targets import targets_of
from planner.launch.targets.accelerate.trainer import (
    adapters_of,
    by_trl,
    ignored,
    refuse_quantised,
    told,
    with_num_steps,
)
from planner.launch.targets.deepspeed.judged import judged
from planner.launch.targets.deepspeed.settings import (
    optimizer,
    overlap,
    refuse_two_optimizers,
    unused_copies,
)
from planner.launch.unknown import CHANGES, NOT_PRICED, Unknown, absent

NAMES = {theirs: ours for ours, theirs in OPTIMIZERS.items()} | {
    "sgd": "sgd",
    "adamw_torch": "adamw",
    "adamw_hf": "adamw",
    "adamw_8bit": "adamw-8bit",
    OVER_SHARDS["adamw-8bit"]: "adamw-8bit",
}
"""The planner's name of an optimizer by TrainingArguments.optim. [text]"""
PLACED = frozenset(
    {
        "distributed_type",
        "mixed_precision",
        "num_processes",
        "fsdp_config",
        "deepspeed_config",
        "parallelism_config",
        "fp8_config",
    }
)


PRICED = {
    ("fsdp_config", "auto_wrap_policy"): ("TRANSFORMER_BASED_WRAP",),
    ("fsdp_config", "backward_prefetch"): ("BACKWARD_PRE",),
    ("dynamo_config", "backend"): ("NO",),
    ("fp8_config", "backend"): ("AO", "TE"),
    ("fp8_config", "enable_fsdp_float8_all_gather"): ("FALSE",),
    ("fsdp_config", "xla"): ("FALSE",),
}
"""Values that are priced of keys of accelerate.yaml whose others are not. [text]

Trainer's fsdp_config has the same keys."""


def reads(files: Mapping[str, str]) -> bool:
    """Tell if the files are accelerate's, or a trainer's arguments alone.

    Returns:
        True where a file or a command line is accelerate's. True where a trainer's
        arguments lie beside no file of DeepSpeed.
    """
    its = found(files)
    alone = bool(MARKS & its.training.keys()) and not its.zero
    return bool(its.places) or alone


def read(files: Mapping[str, str]) -> Reading:
    """Read accelerate.yaml and the files beside it.

    Raises:
        BadInputError: No file is accelerate's or a trainer's, or a value is wrong.
    """
    its = found(files)
    if not (its.places or its.training):
        raise BadInputError(
            "is no configuration of accelerate or of a trainer",
            file=", ".join(files),
            allowed="YAML with distributed_type or per_device_train_batch_size",
        )
    return reading_of(its, "accelerate")


def reading_of(its: Found, target: str) -> Reading:
    """Settings of a trainer's run on accelerate."""
    its = replace(its, training=with_num_steps(its.training, its.name))
    layout = degrees(its)
    gpus = whole(its.places, "num_processes", its.name, 0, least=0) or None
    return Reading(
        target=target,
        framework="accelerate",
        layout=layout,
        training=_training(its, layout, gpus),
        model={"name": "imported", **its.model} if its.model else {},
        stack=_stack(its),
        ignored=tuple(_ignored(its)),
        unknown=tuple(_unknown(its)),
        gpus=gpus,
        nodes=whole(its.places, "num_machines", its.name, 0, least=0) or None,
        sizes=sizes_of(its.model, HUGGING_FACE, file="config.json"),
        per_replica=_per_replica(layout),
        copies=copies(its),
        on_one_rank=_alone(its, layout),
    )


def _alone(its: Found, layout: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a run of one rank, which uses no FSDP at all.

    Source: accelerate 1.15.0 state.py, PartialState: one process is no distributed run.
    """
    return {} if its.by_deepspeed or not layout["zero_stage"] else {"zero_stage": 0}


def _training(
    its: Found, layout: Mapping[str, Any], gpus: int | None
) -> dict[str, Any]:
    given: dict[str, Any] = {"precision": _precision(its)}
    name = its.training.get("optim")
    if str(name) in NAMES:
        momentum = "momentum" in str(its.training.get("optim_args", ""))
        given["optimizer"] = "sgd-momentum" if momentum else NAMES[str(name)]
    every = {**{k: its.training[k] for k in LENGTHS if k in its.training}}
    length = its.run.get("seq_len") or next(iter(every.values()), None)
    refuse_two_optimizers(its.zero, name, NAMES)
    given |= optimizer(its.zero)
    if length:
        given["seq_len"] = whole({"seq_len": length}, "seq_len", its.name)
    given |= by_trl(its.training, given.get("seq_len"))
    inner = layout["tp"] * layout["cp"]
    if gpus and gpus % inner == 0 and "micro_batch" in layout:
        given["global_batch"] = gpus // inner * (_per_replica(layout) or 1)
    return given | _adapters(its)


def _per_replica(layout: Mapping[str, Any]) -> int | None:
    """Sequences of a step that every data-parallel rank takes."""
    each = layout.get("micro_batch")
    return each and each * int(layout.get("grad_accum", 1))


def _precision(its: Found) -> str:
    mixed = str(its.places.get("mixed_precision", "no"))
    refuse_auto(its.training, its.name)
    halves = [
        name
        for name in ("bf16", "fp16")
        if true(its.training, name) or true(block(its.zero, name), "enabled")
    ]
    if len({*halves, mixed} & {"bf16", "fp16"}) > 1:
        raise BadInputError(
            "is said beside another format",
            file=its.name,
            field=halves[-1],
            value=True,
            allowed="bf16 or fp16, the same in every file",
        )
    mixed = halves[0] if halves and mixed in ("no", "None") else mixed
    if mixed in ("bf16", "fp16", "fp8"):
        return mixed
    half = {"bfloat16": "bf16", "float16": "fp16"}.get(str(its.run.get("weights")))
    return half or ("tf32" if true(its.training, "tf32") else "fp32")


def _adapters(its: Found) -> dict[str, Any]:
    """LoraConfig of run.yaml, or the options of TRL's own scripts."""
    given, bits = block(its.run, "adapters"), block(its.run, "quantization")
    if not given:
        refuse_quantised(its.training, its.name)
        given, bits = adapters_of(its.training)
    if not given:
        return {}
    lora: dict[str, Any] = {
        "rank": whole(given, "r", its.name, 8),
        "targets": targets_of(given.get("target_modules", "all-linear"), its.name),
        "dropout": part(given, "lora_dropout", its.name, 0.0),
    }
    if given.get("modules_to_save"):
        lora["modules_to_save"] = given["modules_to_save"]
    if true(its.run, "adapters_in_fp32"):
        lora["precision"] = "fp32"
    lora |= variants(given, its.name)
    method = {"method": "qlora" if bits else "lora", "lora": lora}
    return method | (_quantized(bits) if bits else {})


def variants(given: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Variants of adapters by their names in a job."""
    found: dict[str, Any] = {WORDS[w]: True for w in WORDS if true(given, w)}
    if given.get(RATIO) is not None:
        found[RATIO] = _ratio(given[RATIO], file)
    return found


def _ratio(value: object, file: str) -> float:
    """Learning rate of LoRA+'s outer factors over that of the inner ones. [1]."""
    ratio = number(value)
    if not 0.0 < ratio < math.inf:
        raise BadInputError(
            "is no ratio of learning rates",
            file=file,
            field=RATIO,
            value=value,
            allowed="more than 0",
        )
    return ratio


def _quantized(bits: Mapping[str, Any]) -> dict[str, Any]:
    if true(bits, "load_in_8bit"):
        return {"quantization": "int8"}
    return {
        "quantization": bits.get("bnb_4bit_quant_type", "fp4"),
        "double_quantization": true(bits, "bnb_4bit_use_double_quant"),
    }


def _stack(its: Found) -> dict[str, Any]:
    """Stack, and words of the stack block, that differ from accelerate's defaults."""
    given: dict[str, Any] = {}
    kind = str(its.places.get("distributed_type", "")).upper()
    if its.by_deepspeed:
        given |= {"name": DEEPSPEED_STACK} | overlap(its.zero)
    elif its.run:
        given |= _weights(its)
    kernels = liger(its.training)
    if FUSED_LOSS in kernels:
        given["loss"] = "liger"
    elif its.run.get("loss") == "chunked":
        given["loss"] = "chunked"
    if kernels == LIGER and "name" not in given:
        given["name"] = LIGER_STACK
    stated = its.training.get("attn_implementation")
    given |= asked_attention(its.run.get("attention", stated))
    kwargs = block(block(its.training, "accelerator_config"), _ACCUMULATION)
    steps = whole(its.training, "gradient_accumulation_steps", its.name)
    each = true(kwargs, "sync_each_batch")
    if kind in ("FSDP", "") and steps > 1 and not each:
        given["accumulation"] = "no_sync"
    return given


_ACCUMULATION = "gradient_accumulation_kwargs"


def _weights(its: Found) -> dict[str, Any]:
    """Stack that the formats of weights and of computation imply."""
    mesh = block(its.run, "distributed")
    sharded = whole(mesh, "fsdp_size", "run.yaml") > 1
    half = _precision(its) in ("bf16", "fp16", "fp8")
    mixed = str(its.places.get("mixed_precision")) != "no"
    if half and not mixed:
        return {"name": "hf-bf16"}
    wide = its.run.get("weights") == "float32" and half and not sharded
    return {"name": "hf-amp"} if wide else {}


def _ignored(its: Found) -> Iterator[str]:
    strange = set(unknown_keys(its.places))
    yield from (f"{k} {v}" for k, v in its.places.items() if k not in PLACED | strange)
    yield from ignored(its.training, its.options)
    yield from unused_copies(block(its.zero, "zero_optimization"))


def _unknown(its: Found) -> Iterator[Unknown]:
    """Settings that are not read, and settings that are not priced."""
    for path in unknown_keys(its.places):
        yield Unknown(path, why="no key of accelerate")
    yield from told(its.training, its.options)
    yield from judged(its.zero)
    for (name, key), priced in PRICED.items():
        both = (
            block(each, name, PREFIXES[name]) for each in (its.training, its.places)
        )
        value = next((given[key] for given in both if key in given), None)
        if value is not None and str(value).upper() not in priced:
            yield Unknown(f"{name}.{PREFIXES[name]}{key}", value, CHANGES)
    fsdp = its.training.get("fsdp_config")
    if isinstance(fsdp, str):
        yield absent("fsdp_config", fsdp)
    kernels = liger(its.training)
    if kernels - {FUSED_LOSS} and _stack(its).get("name") != LIGER_STACK:
        shown = ", ".join(sorted(kernels))
        yield Unknown("use_liger_kernel", shown, "these kernels are not priced here")
    name = str(its.training.get("optim", "adamw_torch"))
    if name not in NAMES:
        yield Unknown("optim", name, f"{NOT_PRICED}; {did_you_mean(name, NAMES)}")
    if true(its.places, "use_cpu"):
        yield Unknown("use_cpu", "true", "starts single processes on CPUs")
    file = block(its.places, "deepspeed_config").get("deepspeed_config_file")
    if (file or its.training.get("deepspeed")) and not its.zero:
        yield absent("deepspeed", file or its.training["deepspeed"])
    kind = str(its.places.get("distributed_type", "")).upper()
    if kind in ("MEGATRON_LM", "XLA", "TPU"):
        yield Unknown("distributed_type", kind, NOT_PRICED)
