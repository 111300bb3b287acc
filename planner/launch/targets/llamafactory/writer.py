"""A plan as the YAML of `llamafactory-cli train`."""

from typing import Any

from planner.frameworks.accelerate.launch.known import keys
from planner.frameworks.accelerate.llamafactory.known import (
    ACCELERATE,
    DEEPSPEED,
    PEFT,
    TRANSFORMERS,
    VERSION,
)
from planner.frameworks.accelerate.variants import rates, written
from planner.frameworks.adapted import targets
from planner.launch.brief import Brief, Program, Starter
from planner.launch.targets.accelerate.arguments import arguments as of_trainer
from planner.launch.targets.accelerate.placement import DS_FILE
from planner.launch.targets.accelerate.plan import (
    attention,
    deepspeed,
    recompute,
    stack,
)
from planner.launch.targets.llamafactory import projected
from planner.launch.targets.trainers.writer import program
from planner.specs.frameworks.lacks import states_rows

RELEASES = {
    "VERSION": VERSION,
    "TRANSFORMERS": TRANSFORMERS,
    "ACCELERATE": ACCELERATE,
    "PEFT": PEFT,
    "DEEPSPEED": DEEPSPEED,
}
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
    starter = RANKS if brief.layout.gpus > 1 or deepspeed(brief) else ALONE
    return program("llamafactory", brief, arguments(brief), starter, RELEASES)


def arguments(brief: Brief) -> dict[str, Any]:
    """Content of train.yaml."""
    stated = states_rows(brief.training)
    neat = stated and brief.training.rows == "packed"
    settings: dict[str, Any] = {
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
        settings["packing"] = neat
    if neat:
        settings["neat_packing"] = True
    if brief.weights:
        settings["model_name_or_path"] = brief.weights
    if deepspeed(brief):
        settings["deepspeed"] = DS_FILE
    settings |= _adapters(brief) | _quantized(brief) | _trainer(brief)
    return settings | projected.written(brief.training)


def _pure(brief: Brief) -> bool:
    """Tell if trained weights stay in bf16; else they are raised to fp32 on the GPU.

    Under DeepSpeed the weights become bf16 anyway, after they lay in fp32 on the GPU.
    At ZeRO 3 they are made in bf16, and LLaMA-Factory refuses the switch.
    """
    training = brief.training
    half = training.method == "full" and training.precision == "bf16"
    return half and stack(brief) != "hf-amp" and brief.layout.zero_stage < 3


def _trainer(brief: Brief) -> dict[str, Any]:
    """Arguments of transformers' Trainer, as accelerate's own files have them."""
    known = keys().training_arguments - CHECKPOINTED
    return {name: v for name, v in of_trainer(brief).items() if name in known}


def _adapters(brief: Brief) -> dict[str, Any]:
    if brief.training.method == "full":
        return {}
    lora, names = brief.training.lora, targets(brief.asked)
    return {
        "lora_rank": lora.rank,
        "lora_alpha": 2 * lora.rank,
        "lora_dropout": lora.dropout,
        "lora_target": "all" if names == "all-linear" else ",".join(names),
        **written(lora),
        **rates(lora),
    }


def _quantized(brief: Brief) -> dict[str, Any]:
    training = brief.training
    if training.method != "qlora":
        return {}
    if training.weight_format == "int8":
        return {"quantization_method": "bnb", "quantization_bit": 8}
    return {
        "quantization_method": "bnb",
        "quantization_bit": 4,
        "quantization_type": training.weight_format,
        "double_quantization": training.double_quantization,
    }
