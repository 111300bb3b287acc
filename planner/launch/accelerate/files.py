"""Finds among launch files which is which."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import nan
from typing import Any

import yaml

from planner.errors import BadInputError
from planner.frameworks.accelerate.known import keys
from planner.launch.shell import Script

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
"""Arguments of which one is in every file of a trainer. [text]"""
OF_SCRIPTS = frozenset(
    {
        "max_seq_length",
        "attn_implementation",
        "use_peft",
        "lora_r",
        "lora_alpha",
        "lora_dropout",
        "lora_target_modules",
    }
)
"""Options of TRL's and transformers' own scripts beyond the trainer's. [text]"""
ZERO = frozenset({"zero_optimization", "train_micro_batch_size_per_gpu"})
"""Keys of which one is in every ds_config.json. [text]"""


@dataclass(frozen=True)
class Found:
    """What the files hold, by what reads it; empty where no file is for it.

    Attributes:
        places: accelerate.yaml. [-]
        training: Arguments of a trainer, and the options of a launch script. [-]
        run: run.yaml. [-]
        zero: ds_config.json. [-]
        model: A Hugging Face config. [-]
        name: File that a message is about. [text]
    """

    places: Fields = field(default_factory=dict)
    training: Fields = field(default_factory=dict)
    run: Fields = field(default_factory=dict)
    zero: Fields = field(default_factory=dict)
    model: Fields = field(default_factory=dict)
    name: str = ""


def found(files: Mapping[str, str]) -> Found:
    """Sort launch files.

    Args:
        files: Text by name. [text]

    Returns:
        Their contents. [-]
    """
    its: dict[str, Any] = {}
    for name, text in files.items():
        content = {} if name.endswith((".py", ".md")) else parsed(text)
        kind = _kind(content)
        if kind and kind not in its:
            its[kind] = content
            if kind in ("places", "training"):
                its.setdefault("name", name)
    words = _options(files)
    if words:
        its["training"] = {**its.get("training", {}), **words}
    return Found(**its)


def parsed(text: str) -> dict[str, Any]:
    """JSON or YAML with names at the top; empty for anything else.

    Args:
        text: Of a file. [text]

    Returns:
        Its content. [-]
    """
    try:
        its = json.loads(text)
    except json.JSONDecodeError:
        try:
            its = yaml.safe_load(text)
        except yaml.YAMLError:
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


def _by_trl(text: str) -> bool:
    """Whether a launch script starts one of TRL's own, which checkpoint by default."""
    return bool(
        re.search(r"trl/scripts/\w+\.py|\btrl (sft|dpo|grpo|kto|reward)\b", text)
    )


def _options(files: Mapping[str, str]) -> dict[str, Any]:
    """Arguments of a trainer that a launch script gives on its command line."""
    known = keys().training_arguments | keys().sft_config | OF_SCRIPTS
    its: dict[str, Any] = {}
    for name, text in files.items():
        if not name.endswith(".sh"):
            continue
        if _by_trl(text):
            its["gradient_checkpointing"] = True
        for word, value in pairwise([*Script(text).words(), "--"]):
            option, _, inside = word.removeprefix("--").partition("=")
            if word.startswith("--") and option in known and "$" not in word + value:
                alone = value.startswith("--")
                given = inside or ("true" if alone else value)
                its[option] = _scalar(given)
    return its


def _scalar(text: str) -> Any:
    """A word of a command line as YAML; as it stands where it is none."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def whole(its: Fields, key: str, file: str, default: int = 1, *, least: int = 1) -> int:
    """A whole number of a file.

    Args:
        its: Content. [-]
        key: Its name. [text]
        file: For the message. [text]
        default: Where it is not given. [1]
        least: It is no smaller. [1]

    Returns:
        The number. [1]

    Raises:
        BadInputError: It is none.
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
    """A share of something in a file.

    Args:
        its: Content. [-]
        key: Its name. [text]
        file: For the message. [text]
        default: Where it is not given. [1]

    Returns:
        The share. [1]

    Raises:
        BadInputError: It is none.
    """
    value = its.get(key)
    found = default if value is None else number(value)
    if not 0 <= found <= 1:
        raise BadInputError(
            "is no share", file=file, field=key, value=value, allowed="0 to 1"
        )
    return found


def number(value: object) -> float:
    """A number, as a file or a command line has it.

    Args:
        value: Of YAML or JSON. [-]

    Returns:
        The number; not-a-number for anything else. [1]
    """
    if isinstance(value, bool):
        return nan
    try:
        return float(str(value))
    except ValueError:
        return nan


def true(value: object) -> bool:
    """Whether a value of YAML or of a command line means yes. [-]."""
    return value is True or str(value).lower() in ("true", "1", "yes")


def block(its: Fields, name: str, prefix: str = "") -> dict[str, Any]:
    """A block of a file, its keys without their prefix; empty where there is none.

    Args:
        its: Content. [-]
        name: Of the block. [text]
        prefix: What its keys may begin with. [text]

    Returns:
        Values by key. [-]
    """
    given = its.get(name)
    inside = given if isinstance(given, Mapping) else {}
    return {str(k).removeprefix(prefix): v for k, v in inside.items()}
