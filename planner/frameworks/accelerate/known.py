"""Keys that accelerate, transformers, TRL and PEFT read; nested ones pass unread."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

VERSION = "1.15.0"
"""The release of accelerate that files are written for. [text]"""
TRANSFORMERS, TRL, PEFT, DEEPSPEED = "5.23.0", "1.16.0", "0.21.2", "0.19.8"
"""Releases beside it. [text]"""
FILE = Path(__file__).with_name(f"keys-{VERSION}.json")
PREFIXES = {
    "fsdp_config": "fsdp_",
    "parallelism_config": "parallelism_config_",
    "fp8_config": "fp8_",
    "dynamo_config": "dynamo_",
}
"""What a key of a block of accelerate.yaml may be written without. [text]"""


class Keys(BaseModel):
    """Every key by the class that reads it.

    tests/frameworks/accelerate/keys.py makes the file.

    Attributes:
        versions: Of the libraries. [text]
        accelerate: Keys of accelerate.yaml by block; the empty name is the top. [text]
        training_arguments: Of transformers' Trainer. [text]
        sft_config: Of TRL's SFTTrainer. [text]
        lora_config: Of PEFT. [text]
        quantization: Of transformers' BitsAndBytesConfig. [text]
        distributed: Of transformers' DistributedConfig. [text]
        models: Model types with a causal language model. [text]
        split_models: Those of them with a plan for tensor ranks. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    versions: dict[str, str]
    accelerate: dict[str, frozenset[str]]
    training_arguments: frozenset[str] = Field(alias="TrainingArguments")
    sft_config: frozenset[str] = Field(alias="SFTConfig")
    lora_config: frozenset[str] = Field(alias="LoraConfig")
    quantization: frozenset[str] = Field(alias="BitsAndBytesConfig")
    distributed: frozenset[str] = Field(alias="DistributedConfig")
    models: frozenset[str]
    split_models: frozenset[str]


@cache
def keys() -> Keys:
    """What every library's own parser has. [-]."""
    return Keys.model_validate_json(FILE.read_text())


def unknown_keys(settings: Mapping[str, object]) -> Iterator[str]:
    """Keys of accelerate.yaml that accelerate refuses, or passes over in a block.

    Args:
        settings: Content of the file. [-]

    Yields:
        Paths. [text]

    References:
        accelerate 1.15.0 commands/launch.py, _validate_launch_command: a key of a
        block becomes an attribute that nobody reads where no option has its name.
    """
    known = keys().accelerate
    for name, value in settings.items():
        if name not in known[""]:
            yield str(name)
        elif name in known and isinstance(value, Mapping):
            prefix = PREFIXES.get(name, "")
            for key in map(str, value):
                full = key if key.startswith(prefix) else prefix + key
                if full not in known[name]:
                    yield f"{name}.{key}"


def unknown_arguments(given: Mapping[str, object]) -> Iterator[str]:
    """Arguments that neither Trainer nor SFTTrainer has.

    Args:
        given: Of a trainer. [-]

    Yields:
        Names. [text]
    """
    known = keys().training_arguments | keys().sft_config
    yield from (str(name) for name in given if name not in known)
