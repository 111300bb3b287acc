"""Reads the YAML or the command of `trl sft` into a layout and training."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.errors import BadInputError
from planner.frameworks.accelerate.harmless import harmless
from planner.frameworks.accelerate.launch.known import (
    LENGTHS,
    NAMES_ONLY,
    TRL,
    earlier,
    keys,
    trainer_arguments,
    under_todays_names,
)
from planner.frameworks.accelerate.launch.known import (
    READ as OF_TRAINER,
)
from planner.frameworks.accelerate.switches import true
from planner.frameworks.accelerate.together import refuse_auto
from planner.frameworks.transformers import strange_attention
from planner.launch.brief import Reading
from planner.launch.shell.runs import launch_of
from planner.launch.shell.started import Started, changed, started
from planner.launch.targets.accelerate.files import (
    Found,
    found,
    launcher_options,
    parsed,
    whole,
)
from planner.launch.targets.accelerate.reader import reading_of
from planner.launch.targets.accelerate.trainer import (
    adapters_of,
    refuse_quantised,
)
from planner.launch.targets.trl.presets import with_preset
from planner.launch.unknown import CHANGES, NOT_PRICED, Unknown, absent, unjudged

MARKS = frozenset(
    {
        "accelerate_config",
        "beta",
        "dataset_mixer",
        "dataset_mixture",
        "dataset_name",
        "dataset_test_split",
        "dataset_train_split",
        "lora_target_modules",
        "loss_weights",
        "max_prompt_length",
        "precompute_ref_log_probs",
        "use_bnb_nested_quant",
        "use_peft",
    }
)
"""Arguments that mark TRL's YAML, which has at least one. [text]"""
PROGRAM = re.compile(r"(.*/)?trl|(.*/)?trl/scripts/\w+\.py|trl\.scripts\.\w+")
"""TRL's own program, and its scripts. [text]"""
SCRIPT = re.compile(r".*\.py")
"""Scripts that are TRL's where their options are of TRL's ModelConfig alone. [text]"""
OWN = re.compile(r"(.*/)?(sft|dpo)\.py")
"""TRL's scripts wherever they lie, which have an option of `MARKS`. [text]"""
OF_WEIGHTS = frozenset({"lora_r", "lora_target_modules", "use_peft"})
"""Options of ModelConfig that mark a script as TRL's. [text]"""
ALONE = ("trl", "sft")
"""Command of a YAML without one; its words start no other method. [text]"""
OTHERS = frozenset({"base_model", "finetuning_type", "micro_batch_size"})
"""Keys of other programs' YAML that has arguments of these names too. [text]"""
DEFAULTS: Mapping[str, Any] = {
    "dtype": "float32",
    "gradient_checkpointing": True,
    "gradient_accumulation_steps": 1,
    "packing": False,
    "lora_target_modules": ["q_proj", "v_proj"],
}
"""Values that TRL takes where an argument is not given. [-]

Adapters lie beside q_proj and v_proj in Llama, Mistral, Mixtral, Qwen and Gemma (peft
0.21.2 utils/constants.py, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING)."""
LENGTH = 1024
"""max_length where the file has none. [token]"""
RANK = 16
"""lora_r where the file has none. [1]"""
READ = frozenset(
    {
        "attn_implementation",
        "bnb_4bit_quant_type",
        "dtype",
        "load_in_4bit",
        "load_in_8bit",
        "lora_dropout",
        "lora_modules_to_save",
        "lora_r",
        "lora_target_modules",
        "packing",
        "precompute_ref_log_probs",
        "use_bnb_nested_quant",
        "use_dora",
        "use_peft",
        "use_rslora",
    }
)
"""Arguments of the script that a training block or a stack is read from. [text]"""
UNPRICED = frozenset({"lora_target_parameters"})
"""Arguments of the script that change time or memory, and are not read. [text]"""


def reads(files: Mapping[str, str]) -> bool:
    """Tell if a file is TRL's.

    Returns:
        True where a file has arguments that TRL's script has beyond Trainer's, or a
        command starts one of TRL's scripts.
    """
    return _own(files, _command(files)) is not None


def read(files: Mapping[str, str]) -> Reading:
    """Read TRL's YAML and the files beside it.

    Raises:
        BadInputError: No file is TRL's, or a value is wrong.
    """
    command = _command(files)
    name = _own(files, command)
    if name is None:
        raise BadInputError(
            "is no configuration of trl sft",
            file=", ".join(files),
            allowed=f"YAML with one of {', '.join(sorted(MARKS))}",
        )
    said = parsed(files[name]) if name in files else {}
    own = _given(changed(said, command.given), name)
    refuse_quantised(own, name)
    refuse_auto(own, name)
    given = {**DEFAULTS, **own}
    _refuse_wide(given, name)
    others = _others(files, given, command, name)
    reading = reading_of(_translated(given, others, name), "trl")
    return replace(
        reading,
        named=str(given.get("model_name_or_path", "")),
        ignored=(*reading.ignored, *_ignored(given)),
        unknown=(*reading.unknown, *_unknown(given), *_absent(given, others)),
    )


def _given(given: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Arguments under today's names; what is null has its default."""
    named = under_todays_names(given, file)
    return {name: value for name, value in named.items() if value is not None}


def _command(files: Mapping[str, str]) -> Started:
    """The command of TRL's that starts the run, if one does."""
    own = started(files, PROGRAM, READ | OF_TRAINER)
    for program, marks in ((SCRIPT, OF_WEIGHTS), (OWN, MARKS)):
        given = started(files, program, ()).given.keys()
        if not own.found and marks & given and not OTHERS & given:
            return started(files, program, READ | OF_TRAINER)
    return own


def _own(files: Mapping[str, str], command: Started) -> str | None:
    """Name of the first file with a mark, or else of the command; None without both."""
    for name, text in files.items():
        if name.endswith((".yaml", ".yml", ".json")):
            given = parsed(text).keys()
            if MARKS & given and not OTHERS & given:
                return name
    if not command.found:
        return None
    config = command.file.rpartition("/")[2]
    return config if config in files else launch_of(files).file


def _others(
    files: Mapping[str, str], given: Mapping[str, Any], command: Started, name: str
) -> Found:
    """Files beside TRL's; the launcher takes the options that the script has not."""
    of_launcher = {n: v for n, v in given.items() if n in launcher_options()}
    words = [w for n, v in of_launcher.items() for w in (f"--{n}", str(v))]
    rest = {n: text for n, text in files.items() if n != name}
    return found(
        with_preset(rest, given.get("accelerate_config")),
        (*command.launcher, *words) if command.found else (*ALONE, *words),
    )


def _script() -> frozenset[str]:
    """Arguments of the script beyond those of the trainers; env sets variables."""
    its = keys()
    own = its.of_weights | its.of_script | its.of_mixture
    return (own - trainer_arguments()) | _harmless()


def _refuse_wide(given: Mapping[str, Any], name: str) -> None:
    """Refuse frozen weights in fp32, TRL's default, which are not priced."""
    if given["dtype"] == "float32" and true(given, "use_peft"):
        raise BadInputError(
            "weights beside adapters are priced in 16 bits; TRL loads them in float32 "
            "unless told, at twice the memory",
            file=name,
            field="dtype",
            value=given["dtype"],
            allowed="bfloat16, float16, auto",
        )


def _translated(given: Mapping[str, Any], others: Found, name: str) -> Found:
    """TRL's arguments as the files that accelerate's target writes."""
    half = true(given, "bf16", absent=not true(given, "fp16"))
    training = {
        key: value for key, value in given.items() if key in trainer_arguments()
    }
    scaled = half or true(given, "fp16")
    places = {} if scaled or others.zero else {"mixed_precision": "no"}
    return replace(
        others,
        places=others.places or places,
        training={**training, "bf16": half},
        run=_run(given, name, by_deepspeed=_by_deepspeed(others)),
        name=name,
    )


def _by_deepspeed(its: Found) -> bool:
    kind = str(its.places.get("distributed_type", "")).upper()
    return bool(its.zero) or kind == "DEEPSPEED"


def _run(given: Mapping[str, Any], name: str, *, by_deepspeed: bool) -> dict[str, Any]:
    """run.yaml of the same run."""
    lengths = (key for key in LENGTHS if given.get(key) is not None)
    its: dict[str, Any] = {
        "seq_len": whole(given, next(lengths, "max_length"), name, LENGTH),
        "weights": _format(given["dtype"]),
        "attention": given.get("attn_implementation"),
        "loss": "chunked",
    }
    adapters, bits = adapters_of(given)
    if not adapters:
        return its
    named = adapters["target_modules"]
    one = list(named) == ["all-linear"]
    its["adapters"] = adapters | {
        "r": whole(given, "lora_r", name, RANK),
        "target_modules": "all-linear" if one else named,
    }
    its["adapters_in_fp32"] = not (by_deepspeed or bits)
    return its | ({"quantization": bits} if bits else {})


def _format(dtype: object) -> str:
    """Format of the weights; bfloat16 where the checkpoint decides it. [text]."""
    return str(dtype) if dtype in ("float32", "float16") else "bfloat16"


def _harmless() -> frozenset[str]:
    older = (earlier().harmless | NAMES_ONLY) - trainer_arguments()
    return harmless("trl") | older | {"accelerate_config", "env", "config"}


def _ignored(given: Mapping[str, Any]) -> Iterator[str]:
    its = _harmless()
    yield from (f"{name} {value}" for name, value in given.items() if name in its)


def _absent(given: Mapping[str, Any], others: Found) -> Iterator[Unknown]:
    """accelerate's file, which TRL starts its ranks with, where it is not there."""
    if given.get("accelerate_config") and not others.places:
        yield absent("accelerate_config", given["accelerate_config"])


def _unknown(given: Mapping[str, Any]) -> Iterator[Unknown]:
    """Settings that are not read, and settings that are not priced."""
    for name in map(str, given):
        if name not in trainer_arguments() | _script() | launcher_options():
            used = "; TRL has max_length" if name in LENGTHS else ""
            yield Unknown(name, why=f"no argument of TRL {TRL}{used}")
    yield from unjudged(given, _script(), READ | UNPRICED | _harmless())
    for name in sorted(UNPRICED & given.keys()):
        if given[name] not in (None, False):
            yield Unknown(name, given[name], CHANGES)
    kernel = given.get("attn_implementation")
    if strange_attention(kernel):
        yield Unknown("attn_implementation", kernel, NOT_PRICED)
    if given["dtype"] not in ("float32", "bfloat16", "float16"):
        yield Unknown("dtype", given["dtype"], NOT_PRICED)
