"""ds_config.json, alone or beside the arguments of Trainer, read back."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import yaml

from planner.errors import BadInputError
from planner.launch.brief import Reading
from planner.launch.deepspeed.known import unknown
from planner.launch.shell import Script
from planner.specs.layout import Stage

Fields = Mapping[str, Any]
AUTO = "auto"
"""Value that Trainer's DeepSpeed plugin fills in from its own arguments. [text]"""
MARKS = frozenset(
    {
        "zero_optimization",
        "train_micro_batch_size_per_gpu",
        "train_batch_size",
        "tensor_parallel",
    }
)
"""Keys of which one is in every ds_config.json. [text]"""
LAYOUT = frozenset(
    {
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "gradient_accumulation_steps",
        "zero_optimization",
        "tensor_parallel",
        "sequence_parallel_size",
        "pipeline",
        "expert_parallel",
        "activation_checkpointing",
        "bf16",
        "fp16",
        "optimizer",
    }
)
"""Keys that a layout or a training block is read from. [text]"""
TRAINER = {
    "train_micro_batch_size_per_gpu": "per_device_train_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
}
"""Trainer's argument behind `auto`, by key. [text]"""
DEFAULTS = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 1}
"""What Trainer takes where an argument is not given. [1]"""
OPTIMIZERS = {
    "adamw": "adamw",
    "adam": "adamw",
    "sgd": "sgd",
    "lamb": "lamb",
    "lion": "lion",
    "muon": "muon",
    "adamw_torch": "adamw",
    "adamw_torch_fused": "adamw",
    "adafactor": "adafactor",
}


def reads(files: Mapping[str, str]) -> bool:
    """Whether one of the files is a configuration of DeepSpeed.

    Args:
        files: Text by name. [text]

    Returns:
        True where one is JSON with a key that only DeepSpeed has.
    """
    return any(MARKS & _parsed(text).keys() for text in files.values())


def _parsed(text: str) -> dict[str, Any]:
    """JSON or YAML with names at the top; empty for anything else."""
    try:
        its = json.loads(text)
    except json.JSONDecodeError:
        try:
            its = yaml.safe_load(text)
        except yaml.YAMLError:
            return {}
    return its if isinstance(its, dict) else {}


def read(files: Mapping[str, str]) -> Reading:
    """Understand ds_config.json with what lies beside it.

    Beside it may lie Trainer's arguments as JSON or YAML, a model's config.json, a
    hostfile and the script that starts the run; each is optional.

    Args:
        files: Text by name. [text]

    Returns:
        What they say. [-]

    Raises:
        BadInputError: None is a configuration of DeepSpeed, or a value is wrong.
    """
    name, its = _settings(files)
    trainer = _trainer(files)
    filled, left = _filled(its, trainer)
    gpus = _slots(files)
    layout = _layout(filled, trainer, name)
    return Reading(
        target="deepspeed",
        framework="deepspeed",
        layout=layout,
        training=_training(filled, trainer, _words(files), layout, gpus),
        model=_model(files),
        stack=_stack(_words(files)),
        ignored=tuple(_ignored(its, trainer)),
        unknown=(
            *unknown(its),
            *(f"{path}: auto, and no argument of Trainer says it" for path in left),
            *_unpriced(its),
        ),
        gpus=gpus,
    )


def _settings(files: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    for name, text in files.items():
        its = _parsed(text)
        if MARKS & its.keys():
            return name, its
    raise BadInputError(
        "is no configuration of DeepSpeed",
        file=", ".join(files),
        allowed="JSON with zero_optimization or train_micro_batch_size_per_gpu",
    )


def _trainer(files: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of Trainer, where a file has some."""
    marks = {"per_device_train_batch_size", "deepspeed", "gradient_checkpointing"}
    for text in files.values():
        its = _parsed(text)
        if marks & its.keys() and not MARKS & its.keys():
            return its
    return {}


def _filled(its: Fields, trainer: Fields) -> tuple[dict[str, Any], list[str]]:
    """Settings with every `auto` that Trainer fills in, and those that stay open."""
    found = dict(its)
    for key, argument in TRAINER.items():
        if trainer and found.get(key, AUTO) == AUTO:
            found[key] = trainer.get(argument, DEFAULTS[argument])
    for name in ("bf16", "fp16"):
        given = found.get(name)
        if isinstance(given, dict) and given.get("enabled") == AUTO:
            found[name] = given | {"enabled": bool(trainer.get(name))}
    if found.get("train_batch_size") == AUTO:
        del found["train_batch_size"]
    left = [key for key in TRAINER if found.get(key) == AUTO]
    return {k: v for k, v in found.items() if k not in left}, left


def _layout(its: Fields, trainer: Fields, file: str) -> dict[str, Any]:
    zero = _block(its, "zero_optimization")
    found: dict[str, Any] = {
        "tp": _whole(_block(its, "tensor_parallel"), "autotp_size", file) or 1,
        "pp": 1,
        "zero_stage": _whole(zero, "stage", file) or 0,
    }
    for key, field in (
        ("train_micro_batch_size_per_gpu", "micro_batch"),
        ("gradient_accumulation_steps", "grad_accum"),
    ):
        if key in its:
            found[field] = _whole(its, key, file)
    found |= _context(its, file) | _experts(its, file)
    shard = _whole(zero, "zero_hpz_partition_size", file) or 1
    if shard > 1:
        found["dp_shard"] = shard
    offload = _offload(zero, file)
    if offload:
        found["offload"] = offload
    return found | _stages(its, trainer, file)


def _block(its: Fields, name: str) -> dict[str, Any]:
    given = its.get(name)
    return given if isinstance(given, dict) else {}


def _whole(its: Fields, key: str, file: str) -> int:
    """A whole number; DeepSpeed reads 1e3 and 2.0 as such too."""
    value = its.get(key, 0)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not float(value).is_integer() or value < 0:
        raise BadInputError(
            "is no whole number", file=file, field=key, value=value, allowed="1, 2, ..."
        )
    return int(value)


def _context(its: Fields, file: str) -> dict[str, Any]:
    cp = _whole(its, "sequence_parallel_size", file) or 1
    return {"cp": cp, "cp_kind": "ulysses"} if cp > 1 else {"cp": 1}


def _experts(its: Fields, file: str) -> dict[str, Any]:
    block = _block(its, "expert_parallel")
    if not block.get("enabled"):
        return {}
    return {"ep": _whole(block, "autoep_size", file) or 1}


def _offload(zero: Fields, file: str) -> dict[str, Any]:
    """Shares on the host; the flags of before 2021 mean all of it in memory."""
    found: dict[str, Any] = {}
    for key, flag, name in (
        ("offload_optimizer", "cpu_offload", "optimizer"),
        ("offload_param", "cpu_offload_param", "parameters"),
    ):
        old = {"device": "cpu"} if zero.get(flag) is True else {}
        block = _block(zero, key) or old
        device = block.get("device", "none")
        if device in ("cpu", "nvme"):
            found[name] = _share(block, f"zero_optimization.{key}.ratio", file)
            found["device"] = device
    return found


def _share(block: Fields, field: str, file: str) -> float:
    """The part that lies on the host; all of it where nothing is said. [1]."""
    value = block.get("ratio", 1.0)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 < value <= 1
    ):
        raise BadInputError(
            "is no share", file=file, field=field, value=value, allowed="0 < ratio <= 1"
        )
    return float(value)


def _stages(its: Fields, trainer: Fields, file: str) -> dict[str, Any]:
    """Counts of a pipeline where they are written down, and what is recomputed."""
    pipeline = _block(its, "pipeline")
    every = _whole(pipeline, "activation_checkpoint_interval", file)
    count = _block(its, "activation_checkpointing").get("number_checkpoints")
    full = bool(every or count or trainer.get("gradient_checkpointing"))
    kind = "full" if full else "none"
    stages = pipeline.get("stages", 1)
    if not isinstance(stages, int) or stages == 1:
        return {"recompute": kind}
    counts = pipeline.get("partition")
    if not isinstance(counts, list):
        return {"pp": stages, "recompute": kind}
    held = [_whole({"partition": n}, "partition", file) for n in counts]
    return {"pp": stages, "stages": [_stage(n, kind) for n in held]}


def _stage(count: int, kind: str) -> dict[str, Any]:
    ranges = [{"from": 0, "to": count, "kind": kind}] if count else []
    stage = Stage.model_validate({"layers": count, "recompute": ranges})
    return stage.model_dump(mode="json", by_alias=True)


def _training(
    its: Fields,
    trainer: Fields,
    words: list[str],
    layout: Fields,
    gpus: int | None,
) -> dict[str, Any]:
    precision = "fp32"
    for name in ("bf16", "fp16"):
        if _block(its, name).get("enabled"):
            precision = name
    found: dict[str, Any] = {"precision": precision}
    total = _global_batch(its, layout, gpus)
    if total:
        found["global_batch"] = total
    length = _length(trainer, words)
    if length:
        found["seq_len"] = length
    name = str(_block(its, "optimizer").get("type", trainer.get("optim", "adamw")))
    momentum = _block(_block(its, "optimizer"), "params").get("momentum")
    name = OPTIMIZERS.get(name.lower(), name.lower())
    return found | {"optimizer": "sgd-momentum" if momentum else name}


def _global_batch(its: Fields, layout: Fields, gpus: int | None) -> int | None:
    """As it is given, or micro-batches of all replicas where their number is known."""
    given = its.get("train_batch_size")
    if isinstance(given, int):
        return given
    inner = layout["tp"] * layout["pp"] * layout["cp"]
    if not gpus or gpus % inner or "micro_batch" not in layout:
        return None
    replicas = gpus // inner
    return int(replicas * layout["micro_batch"] * layout.get("grad_accum", 1))


def _length(trainer: Fields, words: list[str]) -> int | None:
    for name in ("max_length", "max_seq_length", "model_max_length", "cutoff_len"):
        if isinstance(trainer.get(name), int):
            return int(trainer[name])
    for option, value in pairwise(words):
        if option in ("--seq-length", "--max_seq_length", "--block_size"):
            return int(value) if value.isdigit() else None
    return None


def _stack(words: list[str]) -> dict[str, str]:
    """Attention where it is not the default."""
    stated = dict(pairwise(words)).get("--attention", "sdpa")
    return {} if stated == "sdpa" else {"attention": stated}


def _words(files: Mapping[str, str]) -> list[str]:
    """Words of the scripts; Python is not one."""
    return [
        word
        for name, text in files.items()
        if name.endswith(".sh")
        for word in Script(text).words()
    ]


def _slots(files: Mapping[str, str]) -> int | None:
    """Ranks that a hostfile has room for. [1]."""
    found = re.findall(
        r"^[^#\s]\S*\s+slots=(\d+)", files.get("hostfile", ""), re.MULTILINE
    )
    return sum(map(int, found)) or None


def _model(files: Mapping[str, str]) -> dict[str, Any]:
    """A Hugging Face config that lies beside it."""
    for text in files.values():
        its = _parsed(text)
        if "model_type" in its:
            return {"name": "imported", **its}
    return {}


def _ignored(its: Fields, trainer: Fields) -> Iterator[str]:
    strange = set(unknown(its))
    for key, value in its.items():
        if key not in LAYOUT and key not in strange:
            yield f"{key} {json.dumps(value)}"
    ours = {*TRAINER.values(), "bf16", "fp16", "gradient_checkpointing", "optim"}
    for key, value in trainer.items():
        if key not in ours:
            yield f"{key} {value}"


def _unpriced(its: Fields) -> Iterator[str]:
    """What changes memory or time, and no layout says."""
    block = _block(its, "activation_checkpointing")
    for key in ("cpu_checkpointing", "partition_activations"):
        if block.get(key):
            yield f"activation_checkpointing.{key}: true"
    for key in ("zero_quantized_weights", "zero_quantized_gradients"):
        if _block(its, "zero_optimization").get(key):
            yield f"zero_optimization.{key}: true"
