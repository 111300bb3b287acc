"""Prints the keys that each library's own parser has, as one JSON object."""

import dataclasses
import inspect
import json
import sys
from typing import Any

import accelerate
import peft
import transformers
import trl
from accelerate.commands.config.config_args import ClusterConfig
from accelerate.commands.launch import launch_command_parser
from peft import LoraConfig
from transformers import BitsAndBytesConfig, TrainingArguments
from transformers.distributed import DistributedConfig
from transformers.models.auto import configuration_auto, modeling_auto
from trl import (
    DatasetMixtureConfig,
    DPOConfig,
    ModelConfig,
    ScriptArguments,
    SFTConfig,
)

BLOCKS = {
    "fsdp_config": "fsdp_",
    "parallelism_config": "parallelism_config_",
    "fp8_config": "fp8_",
    "dynamo_config": "dynamo_",
}
OF_DEEPSPEED = ("deepspeed", "zero", "offload", "gradient_")


def fields(kind: type[Any]) -> list[str]:
    """Fields of a dataclass that its constructor takes."""
    return sorted(field.name for field in dataclasses.fields(kind) if field.init)


def blocks() -> dict[str, list[str]]:
    """Keys of accelerate.yaml by block: those that the launch parser has."""
    options = [action.dest for action in launch_command_parser()._actions]
    found = {"": fields(ClusterConfig)}
    for block, prefix in BLOCKS.items():
        found[block] = sorted(name for name in options if name.startswith(prefix))
    found["deepspeed_config"] = sorted(
        name for name in options if name.startswith(OF_DEEPSPEED)
    )
    return found


def split_models(names: dict[str, str]) -> list[str]:
    """Model types with a plan for tensor ranks, below the name `model`."""
    found = []
    for kind, name in names.items():
        config = configuration_auto.CONFIG_MAPPING[kind]
        if not getattr(config, "base_model_tp_plan", None):
            continue
        module = getattr(transformers, name, None)
        if getattr(module, "base_model_prefix", "") == "model":
            found.append(kind)
    return sorted(found)


def main() -> None:
    """Print all of them."""
    names = dict(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    quantised = set(inspect.signature(BitsAndBytesConfig).parameters) - {"kwargs"}
    json.dump(
        {
            "versions": {
                module.__name__: module.__version__
                for module in (accelerate, transformers, peft, trl)
            },
            "accelerate": blocks(),
            "TrainingArguments": fields(TrainingArguments),
            "SFTConfig": fields(SFTConfig),
            "DPOConfig": fields(DPOConfig),
            "ModelConfig": fields(ModelConfig),
            "ScriptArguments": fields(ScriptArguments),
            "DatasetMixtureConfig": fields(DatasetMixtureConfig),
            "LoraConfig": fields(LoraConfig),
            "BitsAndBytesConfig": sorted(quantised),
            "DistributedConfig": fields(DistributedConfig),
            "models": sorted(names),
            "split_models": split_models(names),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
