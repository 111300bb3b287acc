"""Reads LLaMA-Factory's YAML into a layout and training."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.errors import BadInputError
from planner.frameworks.accelerate.harmless import harmless
from planner.frameworks.accelerate.launch.known import (
    READ as OF_TRAINER,
)
from planner.frameworks.accelerate.launch.known import (
    earlier,
    keys,
    under_todays_names,
)
from planner.frameworks.accelerate.llamafactory.known import (
    arguments,
    unknown_arguments,
)
from planner.frameworks.accelerate.switches import true
from planner.frameworks.accelerate.variants import asked_for
from planner.launch.brief import Reading
from planner.launch.shell.runs import launch_of
from planner.launch.shell.started import Started, changed, started
from planner.launch.targets.accelerate.files import (
    Found,
    block,
    found,
    parsed,
    whole,
)
from planner.launch.targets.accelerate.reader import reading_of
from planner.launch.targets.llamafactory import projected
from planner.launch.targets.llamafactory.contradictions import (
    refuse_contradictions,
)
from planner.launch.targets.llamafactory.writer import FLASH
from planner.launch.unknown import CHANGES, NOT_PRICED, Unknown, unjudged

MARKS = frozenset(
    {
        "cutoff_len",
        "disable_gradient_checkpointing",
        "finetuning_type",
        "flash_attn",
        "lora_target",
        "pure_bf16",
        "quantization_bit",
    }
)
"""Arguments that mark LLaMA-Factory's YAML, which has at least one. [text]"""
READ = (
    projected.READ
    | MARKS
    | {
        "additional_target",
        "double_quantization",
        "lora_alpha",
        "lora_dropout",
        "lora_rank",
        "loraplus_lr_ratio",
        "neat_packing",
        "packing",
        "pref_loss",
        "quantization_method",
        "quantization_type",
        "ray_num_workers",
        "stage",
        "use_dora",
        "use_reentrant_gc",
        "use_rslora",
    }
)
"""Arguments that a layout, a training block or a stack is read from. [text]"""
UNPRICED = frozenset(
    {
        "enable_liger_kernel",
        "enable_torch_profiler",
        "fp8",
        "freeze_language_model",
        "mixture_of_depths",
        "profile_modules",
        "quantization_device_map",
        "ref_model_adapters",
        "ref_model_quantization_bit",
        "resize_vocab",
        "rope_scaling",
        "shift_attn",
        "upcast_layernorm",
        "upcast_lmhead_output",
        "use_asft_loss",
        "use_adam_mini",
        "use_badam",
        "use_dft_loss",
        "use_eaft_loss",
        "use_hyper_parallel",
        "use_kt",
        "use_llama_pro",
        "use_mca",
        "use_muon",
        "use_unsloth",
        "use_unsloth_gc",
        "use_v1_kernels",
    }
)
"""Arguments that change time or memory in a way that is not read. [text]"""
ATTENTIONS = {theirs: ours for ours, theirs in FLASH.items()}
SUBCOMMAND = re.compile(r"(.*/)?(llamafactory-cli|lmf)|llamafactory\.(cli|launcher)")
"""LLaMA-Factory's own program. [text]"""
PROGRAM = re.compile(rf"{SUBCOMMAND.pattern}|(.*/)?(train|train_bash|launcher)\.py")
"""Programs that take LLaMA-Factory's arguments; other tools have a train.py too."""
OLDER = {f"dpo_{name}": f"pref_{name}" for name in ("beta", "ftx", "loss")}
"""Names of arguments before LLaMA-Factory 0.8, to today's. [text]"""
DEFAULTS = {"cutoff_len": 2048, "finetuning_type": "lora", "stage": "sft"}
"""Values that LLaMA-Factory takes where an argument is not given. [-]"""


def reads(files: Mapping[str, str]) -> bool:
    """Tell if a file is LLaMA-Factory's.

    Returns:
        True where a file has arguments that LLaMA-Factory alone has.
    """
    return _own(files) is not None or _by_name(_command(files))


def read(files: Mapping[str, str]) -> Reading:
    """Read LLaMA-Factory's YAML and the files beside it.

    Raises:
        BadInputError: No file is LLaMA-Factory's, or a value is wrong.
    """
    command = _command(files)
    name = _own(files) or (launch_of(files).file if command.found else None)
    if name is None:
        raise BadInputError(
            "is no configuration of LLaMA-Factory",
            file=", ".join(files),
            allowed=f"YAML with one of {', '.join(sorted(MARKS))}",
        )
    own = parsed(files[name]) if name in files else {}
    own = under_todays_names(changed(own, command.given), name)
    given = DEFAULTS | {OLDER.get(key, key): value for key, value in own.items()}
    rest = {n: text for n, text in files.items() if n != name}
    others = found(rest, command.launcher)
    zero = whole(block(others.zero, "zero_optimization"), "stage", name, 0, least=0)
    refuse_contradictions(given, zero, name)
    reading = reading_of(_translated(given, others, name), "llamafactory")
    return replace(
        reading,
        training={
            **reading.training,
            **_rows(given),
            **_projects(given, name),
        },
        named=str(given.get("model_name_or_path", "")),
        gpus=whole(given, "ray_num_workers", name, 0, least=0) or reading.gpus,
        ignored=(*reading.ignored, *_ignored(given)),
        unknown=(
            *reading.unknown,
            *_unknown(given),
            *_unpriced(given),
            *_by_ray(given, launch_of(files).environment),
        ),
    )


def _command(files: Mapping[str, str]) -> Started:
    """The command of LLaMA-Factory that starts the run, if one does."""
    return started(files, PROGRAM, READ | OF_TRAINER)


def _by_name(command: Started) -> bool:
    """Tell if a command is LLaMA-Factory's, by its program or by its arguments."""
    own = MARKS | {"stage"}
    by_cli = any(SUBCOMMAND.fullmatch(word) for word in command.launcher)
    return command.found and (by_cli or bool(own & command.given.keys()))


def _own(files: Mapping[str, str]) -> str | None:
    """Name of the first file with a mark; None without such a file."""
    endings = (".yaml", ".yml", ".json")
    named = (
        n for n in files if n.endswith(endings) and MARKS & parsed(files[n]).keys()
    )
    return next(named, None)


def _rows(given: Mapping[str, Any]) -> dict[str, str]:
    """Rows are padded to their longest text unless they are packed.

    Source: LLaMA-Factory 0.9.5 data/loader.py and hparams/data_args.py; pre-training
    packs unless told, and neat_packing keeps the texts of a row apart.
    """
    if true(given, "neat_packing"):
        return {"padding": "packed"}
    packs = true(given, "packing", absent=given["stage"] == "pt")
    return {} if packs else {"padding": "longest"}


def _translated(given: Mapping[str, Any], others: Found, name: str) -> Found:
    """LLaMA-Factory's arguments as the files that accelerate's target writes."""
    known = keys().training_arguments
    training = {key: value for key, value in given.items() if key in known}
    on = not true(given, "disable_gradient_checkpointing")
    places = {**others.places, **_autocast(given)}
    if others.zero:
        places = {"distributed_type": "DEEPSPEED"}
    return replace(
        others,
        places=places,
        training=training | {"gradient_checkpointing": on},
        run=_run(given, name, by_deepspeed=bool(others.zero)),
        name=name,
    )


def _autocast(given: Mapping[str, Any]) -> dict[str, str]:
    """accelerate.yaml of a run that computes in the format of the weights."""
    mixed = true(given, "bf16") or true(given, "fp16")
    return {} if mixed or not true(given, "pure_bf16") else {"mixed_precision": "no"}


def _run(given: Mapping[str, Any], name: str, *, by_deepspeed: bool) -> dict[str, Any]:
    """run.yaml of the same run."""
    its: dict[str, Any] = {
        "seq_len": _length(given, name),
        "weights": _weights(given),
        "attention": ATTENTIONS.get(str(given.get("flash_attn")), "sdpa"),
    }
    if given["finetuning_type"] != "lora":
        return its
    its["adapters"] = _adapters(given)
    its["adapters_in_fp32"] = not by_deepspeed
    return its | ({"quantization": bits} if (bits := _quantized(given)) else {})


def _length(given: Mapping[str, Any], name: str) -> int:
    """Tokens of a row: packing that is asked for shortens those of stage pt by one.

    Source: LLaMA-Factory 0.9.5 hparams/data_args.py takes one off cutoff_len;
    data/processor/supervised.py fills rows up to one more, pretrain.py does not.
    """
    shorter = 1 if given["stage"] == "pt" and true(given, "packing") else 0
    return whole(given, "cutoff_len", name, least=1 + shorter) - shorter


def _weights(given: Mapping[str, Any]) -> str:
    """Format of the weights: adapters' base stays, other weights are raised to fp32."""
    if given["finetuning_type"] != "lora" and not true(given, "pure_bf16"):
        return "float32"
    return "float16" if true(given, "fp16") else "bfloat16"


def _adapters(given: Mapping[str, Any]) -> dict[str, Any]:
    target = str(given.get("lora_target", "all"))
    its: dict[str, Any] = {
        "r": given.get("lora_rank", 8),
        "lora_dropout": given.get("lora_dropout", 0.0),
        "target_modules": "all-linear" if target == "all" else _names(target),
    }
    its |= asked_for(given)
    saved = given.get("additional_target")
    return its | ({"modules_to_save": _names(str(saved))} if saved else {})


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _quantized(given: Mapping[str, Any]) -> dict[str, Any]:
    bits = given.get("quantization_bit")
    if bits == 8:
        return {"load_in_8bit": True}
    if bits != 4:
        return {}
    return {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": given.get("quantization_type", "nf4"),
        "bnb_4bit_use_double_quant": true(given, "double_quantization", absent=True),
    }


def _ignored(given: Mapping[str, Any]) -> Iterator[str]:
    its = (harmless("llamafactory") | earlier().harmless) - keys().training_arguments
    yield from (f"{name} {value}" for name, value in given.items() if name in its)


def _unknown(given: Mapping[str, Any]) -> Iterator[Unknown]:
    """Settings that are not read, and settings that are not priced."""
    for name in unknown_arguments(given):
        yield Unknown(name, why="no argument of LLaMA-Factory")
    own = arguments() - keys().training_arguments
    yield from unjudged(given, own, READ | UNPRICED | harmless("llamafactory"))
    for name in sorted(UNPRICED & given.keys()):
        if given[name] not in (None, False):
            yield Unknown(name, given[name], CHANGES)
    yield from _of_stage(given)
    if given.get("adapter_name_or_path") and not true(given, "create_new_adapter"):
        why = "says rank and layers of adapters in a folder that is not read"
        yield Unknown("adapter_name_or_path", given["adapter_name_or_path"], why)
    for name in ("freeze_vision_tower", "freeze_multi_modal_projector"):
        if given.get(name) in (False, "false"):
            yield Unknown(name, "false", CHANGES)
    for name, known in (
        ("flash_attn", ("auto", *ATTENTIONS)),
        ("finetuning_type", ("full", "lora")),
        ("quantization_bit", (4, 8)),
        ("quantization_method", ("bnb",)),
    ):
        if given.get(name) not in (None, *known):
            yield Unknown(name, given[name], NOT_PRICED)


def _by_ray(
    given: Mapping[str, Any], environment: Mapping[str, str]
) -> Iterator[Unknown]:
    """Ray, whose workers are the ranks, where no argument counts them.

    Source: LLaMA-Factory 0.9.5 hparams/training_args.py, RayArguments.
    """
    by_ray = environment.get("USE_RAY", "")
    if by_ray.lower() in ("1", "true", "y") and not given.get("ray_num_workers"):
        yield Unknown("USE_RAY", by_ray, "starts as many ranks as ray_num_workers says")


def _of_stage(given: Mapping[str, Any]) -> Iterator[Unknown]:
    """A reference that is another model than the policy before training."""
    if given["stage"] == "dpo" and given.get("ref_model"):
        yield Unknown("ref_model", given["ref_model"], NOT_PRICED)


def _projects(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Optimizer and rank of gradients that are projected; empty without."""
    for ours, word in projected.WORDS.items():
        if true(given, f"use_{word}"):
            rank = whole(given, f"{word}_rank", name, projected.RANK)
            return {"optimizer": ours, "projection_rank": rank}
    return {}


def _unpriced(given: Mapping[str, Any]) -> Iterator[Unknown]:
    """Settings of projected gradients that are not priced."""
    for word in projected.WORDS.values():
        if not true(given, f"use_{word}"):
            continue
        optim = given.get("optim", projected.OPTIM)
        if optim != projected.OPTIM:
            yield Unknown("optim", optim, f"is not priced under use_{word}")
        if (target := given.get(f"{word}_target", "all")) != "all":
            yield Unknown(f"{word}_target", target, NOT_PRICED)
        if true(given, f"{word}_layerwise"):
            yield Unknown(f"{word}_layerwise", why=NOT_PRICED)
