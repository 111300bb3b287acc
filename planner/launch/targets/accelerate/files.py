"""Sorts launch files by the library that reads each file."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import nan
from typing import Any

import yaml

from planner.errors import BadInputError
from planner.frameworks.accelerate.launch.known import (
    STARTERS,
    keys,
    under_todays_names,
)
from planner.frameworks.accelerate.switches import true
from planner.hardware.reading.documents import DocumentError, plain_json
from planner.hardware.reading.yaml_text import parse_yaml
from planner.launch.shell.runs import launch_of
from planner.launch.targets.accelerate.trainer import (
    Options,
    options_of,
)
from planner.launch.targets.deepspeed.settings import as_read

Fields = Mapping[str, Any]
OURS = frozenset({"trainer", "seq_len", "weights", "attention"})
"""Keys that run.yaml has. [text]"""
MARKS = frozenset(
    {
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
        "gradient_checkpointing",
        "num_train_epochs",
    }
)
"""Arguments that mark a trainer's file, which has at least one. [text]"""
BLOCKS = ("fsdp_config", "deepspeed_config", "parallelism_config")
"""Blocks of accelerate.yaml whose keys are options of its launcher too. [text]"""
SWITCHES = {
    "use_fsdp": "FSDP",
    "use_deepspeed": "DEEPSPEED",
    "multi_gpu": "MULTI_GPU",
    "use_megatron_lm": "MEGATRON_LM",
}
"""distributed_type by switch of accelerate's launcher. [text]"""
ZERO = frozenset({"zero_optimization", "train_micro_batch_size_per_gpu"})
"""Keys that mark a ds_config.json, which has at least one. [text]"""


@dataclass(frozen=True)
class Found:
    """Contents of launch files, by kind of file; empty for a kind without a file.

    Attributes:
        places: accelerate.yaml. [-]
        training: Arguments of a trainer, and the options of a launch script. [-]
        run: run.yaml. [-]
        zero: ds_config.json. [-]
        model: A Hugging Face config. [-]
        name: Name of the file for messages. [text]
        options: Options of launch scripts. [-]
    """

    places: Fields = field(default_factory=dict)
    training: Fields = field(default_factory=dict)
    run: Fields = field(default_factory=dict)
    zero: Fields = field(default_factory=dict)
    model: Fields = field(default_factory=dict)
    name: str = ""
    options: Options = field(default_factory=Options)

    @property
    def by_deepspeed(self) -> bool:
        """Tell if accelerate's plugin of DeepSpeed runs the job. [-]."""
        kind = str(self.places.get("distributed_type", "")).upper()
        return kind == "DEEPSPEED" or bool(self.zero)


def found(files: Mapping[str, str], words: Sequence[str] | None = None) -> Found:
    """Sort launch files.

    Args:
        files: Text by name. [text]
        words: Words of the command that starts the run whose options are read; None
            for all. [text]

    Raises:
        BadInputError: DeepSpeed refuses a value of its file.
    """
    its: dict[str, Any] = {}
    for name, text in files.items():
        content = {} if name.endswith((".py", ".md")) else parsed(text)
        kind = _kind(content)
        if kind and kind not in its:
            its[kind] = _as_read(kind, content, name)
            if kind in ("places", "training"):
                its.setdefault("name", name)
    options = options_of(files, _launcher(), words)
    given = under_todays_names(options.given, launch_of(files).file)
    said = launch_of(files).words if words is None else words
    places = _launched(said, given)
    if places:
        its["places"] = _joined(its.get("places", {}), places)
    if _BY_TRL.search(" ".join(said)):
        given = {"gradient_checkpointing": True} | given
    its.setdefault("name", launch_of(files).file)
    if given:
        its["training"] = {**its.get("training", {}), **given}
    if its.get("training"):
        its["training"] = _followed(its["training"], files)
    return Found(**its, options=options)


def _followed(training: Fields, files: Mapping[str, str]) -> Fields:
    """Arguments with the block that a file of fsdp_config holds, where it is given."""
    file = str(training.get("fsdp_config")).rpartition("/")[2]
    return (
        {**training, "fsdp_config": parsed(files[file])} if file in files else training
    )


def _as_read(kind: str, content: dict[str, Any], name: str) -> dict[str, Any]:
    """Content of a file as its reader takes it."""
    if kind == "zero":
        return as_read(content, name)
    return under_todays_names(content, name) if kind == "training" else content


_LAUNCH = re.compile(r"accelerate(\.commands\.|\s+)launch|(^|[\s/])trl\s")


_BY_TRL = re.compile(r"trl/scripts/\w+\.py|\btrl (sft|dpo|grpo|kto|reward)\b")
"""Commands of TRL's scripts, which checkpoint by default. [-]"""


@cache
def _launcher() -> frozenset[str]:
    """Options of `accelerate launch` that stand for keys of accelerate.yaml."""
    blocks = frozenset[str]().union(*(keys().accelerate[name] for name in BLOCKS))
    plain = {"mixed_precision", "num_processes", "use_cpu", *SWITCHES}
    return blocks - keys().training_arguments | plain


def launcher_options() -> frozenset[str]:
    """Options of accelerate's launcher. [-]."""
    return (_launcher() | STARTERS) - {"accelerate_config"}


def _launched(words: Sequence[str], given: dict[str, Any]) -> dict[str, Any]:
    """Keys of accelerate.yaml that a command line of `accelerate launch` gives.

    The launcher's options are removed from *given*, the options of all commands.
    """
    options = {name: given.pop(name) for name in _launcher() & given.keys()}
    if not _LAUNCH.search(" ".join(words)):
        return {}
    its: dict[str, Any] = {}
    for name, value in options.items():
        inside = next((b for b in BLOCKS if name in keys().accelerate[b]), None)
        if name in SWITCHES:
            its |= {"distributed_type": SWITCHES[name]} if true(options, name) else {}
        elif inside:
            its.setdefault(inside, {})[name] = value
        else:
            its[name] = value
    return its


def _joined(places: Fields, launched: Fields) -> dict[str, Any]:
    """accelerate.yaml with the options of its launcher, which win."""
    both = {**places, **launched}
    for name in BLOCKS:
        if isinstance(places.get(name), Mapping) and name in launched:
            both[name] = {**places[name], **launched[name]}
    return both


def parsed(text: str) -> dict[str, Any]:
    """Read JSON or YAML with names at the top; empty for anything else."""
    try:
        its = plain_json(text)
    except DocumentError:
        try:
            its = parse_yaml(text)
        except (yaml.YAMLError, ValueError):
            return {}
    return its if isinstance(its, dict) else {}


def _kind(content: Fields) -> str:
    names = content.keys()
    if "distributed_type" in names:
        return "places"
    if names >= OURS:
        return "run"
    if ZERO & names:
        return "zero"
    if "model_type" in names:
        return "model"
    return "training" if MARKS & names else ""


def whole(its: Fields, key: str, file: str, default: int = 1, *, least: int = 1) -> int:
    """Read a whole number from a file.

    Raises:
        BadInputError: The value is no whole number, or below *least*.
    """
    value = its.get(key)
    if value is None or value == "auto":
        return default
    found = number(value)
    if not found.is_integer() or found < least:
        allowed = f"{least}, {least + 1}, ..."
        raise BadInputError(
            "is no whole number", file=file, field=key, value=value, allowed=allowed
        )
    return int(found)


def part(its: Fields, key: str, file: str, default: float) -> float:
    """Read a share between 0 and 1 from a file."""
    value = its.get(key)
    found = default if value is None else number(value)
    if not 0 <= found <= 1:
        raise BadInputError(
            "is no share", file=file, field=key, value=value, allowed="0 to 1"
        )
    return found


def number(value: object) -> float:
    """Read a number as a file or a command line writes numbers."""
    if isinstance(value, bool):
        return nan
    try:
        return float(str(value))
    except ValueError:
        return nan


def block(its: Fields, name: str, prefix: str = "") -> dict[str, Any]:
    """Block of a file, with keys without prefix; empty where the file has none."""
    given = its.get(name)
    inside = given if isinstance(given, Mapping) else {}
    return {str(k).removeprefix(prefix): v for k, v in inside.items()}
