"""Keys that accelerate, transformers, TRL and PEFT read; nested ones pass unread."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from hardware.reading.yaml_text import parse_yaml
from planner.errors import BadInputError

VERSION = "1.15.0"
"""Release of accelerate that files are written for. [text]"""
TRANSFORMERS, TRL, PEFT, DEEPSPEED = "5.23.0", "1.16.0", "0.21.2", "0.19.8"
"""Releases of the other libraries that files are written for. [text]"""
FILE = Path(__file__).with_name(f"keys-{VERSION}.json")
PREFIXES = {
    "fsdp_config": "fsdp_",
    "parallelism_config": "parallelism_config_",
    "fp8_config": "fp8_",
    "dynamo_config": "dynamo_",
}
"""Prefix that a key may omit, by block of accelerate.yaml. [text]"""


class Keys(BaseModel):
    """Every key by the class that reads it.

    tests/frameworks/accelerate/keys.py makes the file.

    Attributes:
        versions: Releases of the libraries. [text]
        accelerate: Keys of accelerate.yaml by block; the empty name is the top. [text]
        training_arguments: Arguments of transformers' Trainer. [text]
        sft_config: Arguments of TRL's SFTTrainer. [text]
        dpo_config: Arguments of TRL's DPOTrainer. [text]
        of_weights: Fields of TRL's ModelConfig. [text]
        of_script: Fields of TRL's ScriptArguments. [text]
        of_mixture: Fields of TRL's DatasetMixtureConfig. [text]
        lora_config: Fields of PEFT's LoraConfig. [text]
        quantization: Fields of transformers' BitsAndBytesConfig. [text]
        distributed: Fields of transformers' DistributedConfig. [text]
        models: Model types with a causal language model. [text]
        split_models: Model types with a plan for tensor ranks. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    versions: dict[str, str]
    accelerate: dict[str, frozenset[str]]
    training_arguments: frozenset[str] = Field(alias="TrainingArguments")
    sft_config: frozenset[str] = Field(alias="SFTConfig")
    dpo_config: frozenset[str] = Field(alias="DPOConfig")
    of_weights: frozenset[str] = Field(alias="ModelConfig")
    of_script: frozenset[str] = Field(alias="ScriptArguments")
    of_mixture: frozenset[str] = Field(alias="DatasetMixtureConfig")
    lora_config: frozenset[str] = Field(alias="LoraConfig")
    quantization: frozenset[str] = Field(alias="BitsAndBytesConfig")
    distributed: frozenset[str] = Field(alias="DistributedConfig")
    models: frozenset[str]
    split_models: frozenset[str]


class Earlier(BaseModel):
    """Arguments that earlier releases had, and today's have not.

    Attributes:
        source: Releases that the names are from. [text]
        renamed: Name of today, by the earlier one. [text]
        harmless: Arguments that change no layout, time or memory. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    renamed: dict[str, str]
    harmless: frozenset[str]


@cache
def earlier() -> Earlier:
    """Read the arguments of earlier releases. [-]."""
    text = Path(__file__).with_name("earlier.yaml").read_text()
    return Earlier.model_validate(parse_yaml(text))


def under_todays_names(given: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Arguments under the names that today's releases have.

    Args:
        given: Values by argument. [-]
        file: File that they are from, for the message. [text]

    Returns:
        Values by argument of today. [-]

    Raises:
        BadInputError: An argument stands under both names, with two values.
    """
    its: dict[str, Any] = {}
    for name, value in given.items():
        today = earlier().renamed.get(str(name), str(name))
        if its.setdefault(today, value) != value:
            raise BadInputError(
                "is given twice, under its earlier name too",
                file=file,
                field=name,
                value=value,
                allowed=f"{today} alone",
            )
    return its


@cache
def keys() -> Keys:
    """Read the keys that the parsers of the libraries accept. [-]."""
    return Keys.model_validate_json(FILE.read_text())


OLDER_OF_PAIRS = frozenset(
    {
        "base_model_attribute_name",
        "force_use_ref_model",
        "generate_during_eval",
        "is_encoder_decoder",
        "label_pad_token_id",
        "max_completion_length",
        "max_prompt_length",
        "max_target_length",
        "model_adapter_name",
        "padding_value",
        "ref_adapter_name",
        "ref_model_init_kwargs",
        "reference_free",
        "rpo_alpha",
        "tools",
        "use_liger_loss",
        "use_logits_to_keep",
        "use_num_logits_to_keep",
    }
)
"""Arguments of DPOTrainer in earlier releases. [text]

Source: trl 0.9 to 0.29, trl/trainer/dpo_config.py."""


def trainer_arguments() -> frozenset[str]:
    """Arguments of Trainer, SFTTrainer and DPOTrainer. [text]."""
    its = keys()
    of_trl = its.sft_config | its.dpo_config | OLDER_OF_PAIRS
    return its.training_arguments | of_trl


def unknown_keys(settings: Mapping[str, object]) -> Iterator[str]:
    """Keys of accelerate.yaml that accelerate refuses, or passes over in a block.

    Args:
        settings: Content of accelerate.yaml. [-]

    Yields:
        Paths of keys. [text]

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
    """Arguments that no trainer has.

    Args:
        given: Values by argument of a trainer. [-]

    Yields:
        Names of arguments. [text]
    """
    known = trainer_arguments() | earlier().harmless
    yield from (str(name) for name in given if name not in known)
