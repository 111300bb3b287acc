"""A plan as the YAML of `llamafactory-cli train`."""

import json
from collections.abc import Iterator
from typing import Any

from planner.frameworks.accelerate.launch.known import keys
from planner.frameworks.accelerate.llamafactory.known import (
    ACCELERATE,
    DEEPSPEED,
    PEFT,
    TRANSFORMERS,
    VERSION,
)
from planner.frameworks.accelerate.rows import first_steps
from planner.frameworks.accelerate.variants import rates, written
from planner.frameworks.adapted import targets
from planner.hardware.reading.escape import yaml_text
from planner.launch.brief import Brief, LaunchFile, Program, Starter, Variable
from planner.launch.targets.accelerate.arguments import arguments as of_trainer
from planner.launch.targets.accelerate.placement import DS_FILE, zero
from planner.launch.targets.accelerate.plan import (
    attention,
    deepspeed,
    of_attention,
    recompute,
    stack,
)
from planner.launch.targets.accelerate.writer import environment
from planner.launch.targets.llamafactory import projected
from planner.launch.text.rates import RATE, learning_rate
from planner.specs.frameworks.lacks import states_rows

TRAIN, MODEL = "train.yaml", "config.json"
HEAD = "Arguments of `llamafactory-cli train`; name=value behind the file changes one."
FLASH = {
    "sdpa": "sdpa",
    "flash_attention_2": "fa2",
    "flash_attention_3": "fa3",
    "eager": "disabled",
}
"""flash_attn by attn_implementation. [text]"""
RANKS = Starter(
    (
        'env FORCE_TORCHRUN=1 NNODES="$NNODES" NODE_RANK="$NODE_RANK"',
        'NPROC_PER_NODE="$GPUS_PER_NODE"',
        'MASTER_ADDR="$MASTER_ADDR" MASTER_PORT="$MASTER_PORT"',
        "llamafactory-cli train",
    )
)
"""LLaMA-Factory's launcher, which starts torchrun."""
ALONE = Starter(
    (
        'env FORCE_TORCHRUN=0 CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0}"',
        "llamafactory-cli train",
    )
)
"""One process without torchrun, which would wrap the model in DDP and its buckets."""
CHECKPOINTED = frozenset({"gradient_checkpointing", "gradient_checkpointing_kwargs"})
"""Arguments of Trainer that LLaMA-Factory has words of its own for. [text]"""


def write(brief: Brief) -> Program:
    """Write the program: LLaMA-Factory's YAML, DeepSpeed's file and the model."""
    return Program(
        files=tuple(_files(brief)),
        starter=RANKS if brief.layout.gpus > 1 or deepspeed(brief) else ALONE,
        words=(
            f'{TRAIN} model_name_or_path="$MODEL" output_dir="$CHECKPOINTS"',
            'dataset_dir="$DATASET_DIR" dataset="$DATASET" max_steps="$TRAIN_STEPS"',
            f"learning_rate={RATE}",
        ),
        check=("max_steps=20", "logging_steps=1", "save_steps=1000"),
        versions=tuple(_versions(brief)),
        environment=tuple(environment(brief)),
        blanks=tuple(_blanks(brief)),
        first=first_steps(brief.training, *_FIRST),
    )


_FIRST = (
    "The log says `Upcasting trainable params to float32` where adapters, or the "
    "weights of stack hf-amp, train in fp32, and not otherwise.",
    "`train_runtime` over the steps is the step, with the first steps in it.",
    "stage pt cuts texts into whole sequences, as priced; stage sft pads its packs.",
)


def _files(brief: Brief) -> Iterator[LaunchFile]:
    yield LaunchFile(TRAIN, yaml_text(arguments(brief), [HEAD]))
    fields = {k: v for k, v in brief.model.items() if k != "name"}
    yield LaunchFile(MODEL, json.dumps(fields, indent=2) + "\n")
    if deepspeed(brief):
        yield LaunchFile(DS_FILE, json.dumps(zero(brief), indent=2) + "\n")


def arguments(brief: Brief) -> dict[str, Any]:
    """Content of train.yaml."""
    stated = states_rows(brief.training)
    neat = stated and brief.training.rows == "packed"
    found: dict[str, Any] = {
        "stage": "sft" if neat else "pt",
        "do_train": True,
        "finetuning_type": "full" if brief.training.method == "full" else "lora",
        "pure_bf16": _pure(brief),
        "flash_attn": FLASH[str(attention(brief))],
        "disable_gradient_checkpointing": recompute(brief.layout) != "full",
        "use_reentrant_gc": False,
        "cutoff_len": brief.training.seq_len,
    }
    if stated:
        # Stage pt packs unless told, and a token is taken off cutoff_len where told:
        # stage sft fills its rows up to it again, stage pt does not.
        found["packing"] = neat
    if neat:
        found["neat_packing"] = True
    if brief.weights:
        found["model_name_or_path"] = brief.weights
    if deepspeed(brief):
        found["deepspeed"] = DS_FILE
    found |= _adapters(brief) | _quantized(brief) | _trainer(brief)
    return found | projected.written(brief.training)


def _pure(brief: Brief) -> bool:
    """Tell if trained weights stay in bf16; else they are raised to fp32 on the GPU.

    Under DeepSpeed the weights become bf16 anyway, after they lay in fp32 on the GPU.
    At ZeRO 3 they are made in bf16, and LLaMA-Factory refuses the switch.
    """
    its = brief.training
    half = its.method == "full" and its.precision == "bf16"
    return half and stack(brief) != "hf-amp" and brief.layout.zero_stage < 3


def _trainer(brief: Brief) -> dict[str, Any]:
    """Arguments of transformers' Trainer, as accelerate's own files have them."""
    known = keys().training_arguments - CHECKPOINTED
    return {name: v for name, v in of_trainer(brief).items() if name in known}


def _adapters(brief: Brief) -> dict[str, Any]:
    if brief.training.method == "full":
        return {}
    its, names = brief.training.lora, targets(brief.asked)
    return {
        "lora_rank": its.rank,
        "lora_alpha": 2 * its.rank,
        "lora_dropout": its.dropout,
        "lora_target": "all" if names == "all-linear" else ",".join(names),
        **written(its),
        **rates(its),
    }


def _quantized(brief: Brief) -> dict[str, Any]:
    its = brief.training
    if its.method != "qlora":
        return {}
    if its.weight_format == "int8":
        return {"quantization_method": "bnb", "quantization_bit": 8}
    return {
        "quantization_method": "bnb",
        "quantization_bit": 4,
        "quantization_type": its.weight_format,
        "double_quantization": its.double_quantization,
    }


def _versions(brief: Brief) -> Iterator[str]:
    yield f"llamafactory=={VERSION}"
    yield "torch==2.13.0"
    yield f"transformers=={TRANSFORMERS}"
    yield f"accelerate=={ACCELERATE}"
    yield f"peft=={PEFT}"
    if deepspeed(brief):
        yield f"deepspeed=={DEEPSPEED}"
    words = str(of_trainer(brief)["optim"])
    package = projected.PACKAGES.get(brief.training.optimizer)
    quantized = brief.training.method == "qlora"
    if quantized or "bnb" in words or "paged" in words or package:
        yield "bitsandbytes==0.50.2"
    if package:
        yield package
    yield from of_attention(brief, "flash-attn")


def _blanks(brief: Brief) -> Iterator[Variable]:
    kind = brief.training.precision
    why = f"Hugging Face name or folder of {kind} weights and a tokenizer; no spaces."
    yield Variable("MODEL", brief.weights, why, required=True)
    why = "Folder of dataset_info.json, which names your texts; no spaces."
    yield Variable("DATASET_DIR", "data", why)
    why = "Name of your texts in dataset_info.json."
    yield Variable("DATASET", "", why, required=True)
    yield learning_rate(brief, anew=False)
    why = "Folder for checkpoints; no spaces."
    yield Variable("CHECKPOINTS", "checkpoints", why)
    yield Variable("TRAIN_STEPS", str(brief.training_steps), "Optimizer steps.")
