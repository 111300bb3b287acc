"""Reads ds_config.json, alone or beside the arguments of Trainer."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from planner.errors import BadInputError
from planner.frameworks.accelerate.launch.known import (
    LENGTHS,
)
from planner.frameworks.accelerate.switches import true
from planner.frameworks.deepspeed.launch.known import (
    DEFAULTS,
    MARKS,
    TRAINER,
    harmless,
)
from planner.frameworks.transformers import asked_attention, strange_attention
from planner.hardware.reading.documents import DocumentError, plain_json
from planner.hardware.reading.yaml_text import parse_yaml
from planner.launch.brief import Reading
from planner.launch.sizes import HUGGING_FACE, sizes_of
from planner.launch.targets.accelerate.trainer import (
    ignored,
    options_of,
    told,
)
from planner.launch.targets.deepspeed.judged import judged
from planner.launch.targets.deepspeed.settings import (
    AUTO,
    COPIES_AT,
    OPTIMIZERS,
    as_read,
    optimizer,
    overlap,
    refuse_two_optimizers,
    unused_copies,
    wire,
)
from planner.launch.unknown import CHANGES, NOT_PRICED, Unknown, absent
from planner.specs.layouts.layout import Stage

Fields = Mapping[str, Any]


def reads(files: Mapping[str, str]) -> bool:
    """Tell if some file is a configuration of DeepSpeed.

    Returns:
        True where a file is JSON or YAML with a key of `MARKS`.
    """
    return any(MARKS & _parsed(text).keys() for text in files.values())


def _parsed(text: str) -> dict[str, Any]:
    """Read JSON or YAML with names at the top; empty for anything else."""
    try:
        its = plain_json(text)
    except DocumentError:
        try:
            its = parse_yaml(text)
        except (yaml.YAMLError, ValueError):
            return {}
    return its if isinstance(its, dict) else {}


def read(files: Mapping[str, str]) -> Reading:
    """Read ds_config.json and the files beside it.

    Optional files: Trainer's arguments as JSON or YAML, a model's config.json, a
    hostfile, and the script that starts the run.

    Raises:
        BadInputError: No file is a configuration of DeepSpeed, or a value is wrong.
    """
    name, its = _settings(files)
    options = options_of(files, _WORDS)
    trainer = _trainer(files) | dict(options.given)
    filled, left = _filled(its, trainer)
    refuse_two_optimizers(its, trainer.get("optim"), OPTIMIZERS)
    gpus = _slots(files) or _launched(trainer)
    layout = _layout(filled, trainer, name)
    return Reading(
        target="deepspeed",
        framework="deepspeed",
        layout=layout,
        training=_training(filled, trainer, layout, gpus, name),
        model=_model(files),
        stack=_stack(trainer) | overlap(filled),
        ignored=(*_ignored(its), *ignored(_others(trainer), options)),
        unknown=(
            *judged(filled),
            *told(_others(trainer), options),
            *_unplaced(trainer, files),
            *(Unknown(key, "auto", "no argument of Trainer says it") for key in left),
        ),
        gpus=gpus,
        sizes=sizes_of(_model(files), HUGGING_FACE, file="config.json"),
        per_replica=_per_replica(filled, layout),
        shares_batch="train_batch_size" if _shares(filled, layout) else "",
    )


def _settings(files: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    for name, text in files.items():
        its = _parsed(text)
        if MARKS & its.keys():
            return name, as_read(its, name)
    raise BadInputError(
        "is no configuration of DeepSpeed",
        file=", ".join(files),
        allowed="JSON with zero_optimization or train_micro_batch_size_per_gpu",
    )


def _trainer(files: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of Trainer; empty where no file has any."""
    marks = {"per_device_train_batch_size", "deepspeed", "gradient_checkpointing"}
    for text in files.values():
        its = _parsed(text)
        if marks & its.keys() and not MARKS & its.keys():
            return its
    return {}


def _filled(its: Fields, trainer: Fields) -> tuple[dict[str, Any], list[str]]:
    """Settings with every `auto` that Trainer fills in, and keys that stay open."""
    found = dict(its)
    for key, argument in TRAINER.items():
        if trainer and found.get(key, AUTO) == AUTO:
            found[key] = trainer.get(argument, DEFAULTS[argument])
    for name in ("bf16", "fp16"):
        given = found.get(name)
        if isinstance(given, dict) and given.get("enabled") == AUTO:
            found[name] = given | {"enabled": true(trainer, name)}
        # accelerate's DeepSpeedPlugin.set_mixed_precision adds a block that is absent.
        if given is None and true(trainer, name):
            found[name] = {"enabled": True}
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
    copied = _whole(zero, "zero_hpz_partition_size", file)
    if copied > 1 and found["zero_stage"] == COPIES_AT:
        found["hpz"] = copied
    offload = _offload(zero, file)
    if offload:
        found["offload"] = offload
    return found | wire(its) | _stages(its, trainer, file)


def _block(its: Fields, name: str) -> dict[str, Any]:
    given = its.get(name)
    return given if isinstance(given, dict) else {}


def _whole(its: Fields, key: str, file: str) -> int:
    """Read a whole number; DeepSpeed reads 1e3 and 2.0 as whole numbers too."""
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
    """Shares of the states on the host; flags of before 2021 mean all, in memory."""
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
    """Share that lies on the host; 1 where no ratio is given. [1]."""
    value = block.get("ratio", 1.0)
    if not value:
        raise BadInputError(
            "is no share", file=file, field=field, value=value, allowed="0 < ratio <= 1"
        )
    return float(value)


def _stages(its: Fields, trainer: Fields, file: str) -> dict[str, Any]:
    """Pipeline stages with layer counts where given, and the recompute kind."""
    pipeline = _block(its, "pipeline")
    every = _whole(pipeline, "activation_checkpoint_interval", file)
    count = _block(its, "activation_checkpointing").get("number_checkpoints")
    full = bool(every or count or true(trainer, "gradient_checkpointing"))
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
    layout: Fields,
    gpus: int | None,
    file: str,
) -> dict[str, Any]:
    precision = "fp32"
    for name in ("bf16", "fp16"):
        if _block(its, name).get("enabled"):
            precision = name
    found: dict[str, Any] = {"precision": precision}
    total = _global_batch(its, layout, gpus)
    if total:
        found["global_batch"] = total
    length = _length(trainer, file)
    if length:
        found["seq_len"] = length
    said = str(trainer.get("optim", "adamw")).lower()
    return found | {"optimizer": OPTIMIZERS.get(said, said)} | optimizer(its)


def _global_batch(its: Fields, layout: Fields, gpus: int | None) -> int | None:
    """Global batch as given, else the sequences of all replicas; None where unknown."""
    given = its.get("train_batch_size")
    if isinstance(given, int):
        return given
    inner, each = layout["tp"] * layout["pp"] * layout["cp"], _per_replica(its, layout)
    return None if not gpus or gpus % inner or not each else gpus // inner * each


def _shares(its: Fields, layout: Fields) -> bool:
    """Tell if DeepSpeed shares out a batch; AutoTP takes tensor ranks for replicas."""
    return "train_batch_size" in its and layout["tp"] == 1


def _per_replica(its: Fields, layout: Fields) -> int | None:
    """Sequences of a step that every replica takes, where no batch is given."""
    if isinstance(its.get("train_batch_size"), int) or "micro_batch" not in layout:
        return None
    return int(layout["micro_batch"] * layout.get("grad_accum", 1))


def _length(trainer: Fields, file: str) -> int | None:
    for name in (*LENGTHS, "seq_length", "block_size"):
        if trainer.get(name) is not None:
            return _whole(trainer, name, file)
    return None


def _launched(trainer: Fields) -> int | None:
    """Ranks that the launcher starts; one node where no number is given. [1]."""
    ranks = next((trainer[n] for n in _RANKS if n in trainer), None)
    nodes = next((trainer[n] for n in _NODES if n in trainer), 1)
    if not isinstance(ranks, int) or not isinstance(nodes, int):
        return None
    return ranks * nodes or None


def _others(trainer: Fields) -> dict[str, Any]:
    """Arguments of Trainer without `_WORDS`."""
    return {k: v for k, v in trainer.items() if k not in _WORDS}


def _attention(trainer: Fields) -> str | None:
    """Attention by Trainer's argument, or by the option of our own script. [text]."""
    stated = trainer.get("attn_implementation") or trainer.get(_ATTENTION)
    return None if stated is None else str(stated)


def _stack(trainer: Fields) -> dict[str, Any]:
    """Attention where it is not the default."""
    return asked_attention(_attention(trainer))


def _unplaced(trainer: Fields, files: Mapping[str, str]) -> Iterator[Unknown]:
    """Arguments of Trainer that DeepSpeed's own room has no words for."""
    for name in ("use_peft", "load_in_4bit", "load_in_8bit"):
        if true(trainer, name):
            yield Unknown(name, trainer[name], "is read with --target accelerate")
    for name in ("use_liger_kernel", "activation_offloading"):
        if true(trainer, name):
            yield Unknown(name, trainer[name], CHANGES)
    kernel = _attention(trainer)
    if strange_attention(kernel):
        yield Unknown("attn_implementation", kernel, NOT_PRICED)
    said = trainer.get("optim")
    if said is not None and str(said).lower() not in OPTIMIZERS:
        yield Unknown("optim", said, NOT_PRICED)
    wanted = trainer.get("deepspeed")
    if isinstance(wanted, str) and wanted.rpartition("/")[2] not in files:
        yield absent("deepspeed", wanted)


_RANKS, _NODES = ("num_gpus", "nproc_per_node"), ("num_nodes", "nnodes")
_ATTENTION = "attention"
_WORDS = frozenset({*_RANKS, *_NODES, "seq_length", "block_size", _ATTENTION})
"""Options of launchers, and of other scripts, that are read. [text]"""


def _slots(files: Mapping[str, str]) -> int | None:
    """Ranks that a hostfile has room for. [1]."""
    found = re.findall(
        r"^[^#\s]\S*\s+slots=(\d+)", files.get("hostfile", ""), re.MULTILINE
    )
    return sum(map(int, found)) or None


def _model(files: Mapping[str, str]) -> dict[str, Any]:
    """Hugging Face config among the files."""
    for text in files.values():
        its = _parsed(text)
        if "model_type" in its:
            return {"name": "imported", **its}
    return {}


def _ignored(its: Fields) -> Iterator[str]:
    yield from harmless(its)
    yield from unused_copies(_block(its, "zero_optimization"))
