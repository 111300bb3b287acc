"""A plan as the YAML of `axolotl train`."""

from dataclasses import replace
from typing import Any

from planner.frameworks.accelerate.axolotl.known import VERSION
from planner.frameworks.accelerate.stack import BF16_STACK
from planner.frameworks.accelerate.variants import rates, written
from planner.frameworks.adapted import targets
from planner.launch.brief import (
    BY_TORCHRUN,
    Brief,
    Program,
    Starter,
)
from planner.launch.targets.accelerate.arguments import arguments as of_trainer
from planner.launch.targets.accelerate.placement import DS_FILE, placement
from planner.launch.targets.accelerate.plan import (
    attention,
    deepspeed,
    fsdp,
    option,
    recompute,
    replicas,
    stack,
)
from planner.launch.targets.trainers.writer import program

TEXTS = "texts.jsonl"
ALONE = Starter(
    ('env CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-0}" python',),
)
"""One process without torchrun, which would wrap the model in DDP and its buckets."""
LIGER_PLUGIN = "axolotl.integrations.liger.LigerPlugin"
LIGER = ("rope", "rms_norm", "swiglu", "layer_norm", "cross_entropy")
"""Kernels of Liger that the plan does not price. [text]"""
KERNELS = tuple(f"lora_{part}_kernel" for part in ("mlp", "qkv", "o", "embedding"))
"""Kernels for adapters, on unless they are switched off, and not priced. [text]"""
SHARED = {
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "max_steps": "max_steps",
    "optim": "optimizer",
    "optim_args": "optim_args",
    "dataloader_drop_last": "dataloader_drop_last",
    "accelerator_config": "accelerator_config",
    "ddp_find_unused_parameters": "ddp_find_unused_parameters",
    "lr_scheduler_type": "lr_scheduler",
    "warmup_steps": "warmup_ratio",
    "weight_decay": "weight_decay",
    "adam_beta2": "adam_beta2",
    "max_grad_norm": "max_grad_norm",
    "logging_steps": "logging_steps",
    "save_steps": "save_steps",
    "seed": "seed",
}
"""Key by argument of Trainer; a share of steps is warmup_ratio. [text]"""


def write(brief: Brief) -> Program:
    """Write the program: axolotl's YAML, DeepSpeed's file and the model."""
    several = brief.layout.gpus > 1 or deepspeed(brief)
    starter, releases = BY_TORCHRUN if several else ALONE, {"VERSION": VERSION}
    run = program("axolotl", brief, arguments(brief), starter, releases)
    return replace(run, also=frozenset({BY_TORCHRUN} if several else ()))


def arguments(brief: Brief) -> dict[str, Any]:
    """Content of train.yaml."""
    pure = stack(brief) == BF16_STACK
    settings: dict[str, Any] = {
        "base_model": brief.weights or "model",
        "datasets": [{"path": TEXTS, "ds_type": "json", "type": "completion"}],
        "dataset_prepared_path": "prepared",
        "sequence_len": brief.training.seq_len,
        "sample_packing": brief.training.rows == "packed",
        "pad_to_sequence_len": brief.training.rows != "longest",
        "micro_batch_size": brief.layout.micro_batch,
        "bf16": not pure,
        "bfloat16": pure,
        "attn_implementation": attention(brief),
    }
    trainer = of_trainer(brief)
    settings |= {
        ours: trainer[name] for name, ours in SHARED.items() if name in trainer
    }
    return (
        settings | _checkpoints(brief) | _adapters(brief) | _loss(brief) | _place(brief)
    )


def _checkpoints(brief: Brief) -> dict[str, Any]:
    """Checkpoints of blocks, which fsdp_config makes under FSDP2."""
    if recompute(brief.layout) != "full" or fsdp(brief):
        return {"gradient_checkpointing": False}
    kwargs = {"use_reentrant": False}
    return {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": kwargs}


def _loss(brief: Brief) -> dict[str, Any]:
    if option(brief, "loss", "hf") != "liger":
        return {}
    others = dict.fromkeys((f"liger_{name}" for name in LIGER), False)
    fused = {"liger_fused_linear_cross_entropy": True}
    return {"plugins": [LIGER_PLUGIN], **others, **fused}


def _adapters(brief: Brief) -> dict[str, Any]:
    training, lora = brief.training, brief.training.lora
    if training.method == "full":
        return {}
    four = training.method == "qlora" and training.weight_format != "int8"
    names = targets(brief.asked)
    settings: dict[str, Any] = {
        "adapter": "qlora" if four else "lora",
        "load_in_4bit": four,
        "load_in_8bit": training.weight_format == "int8",
        "lora_r": lora.rank,
        "lora_alpha": 2 * lora.rank,
        "lora_dropout": lora.dropout,
        "peft_autocast_adapter_dtype": lora.precision == "fp32",
        **dict.fromkeys(KERNELS, False),
        **written(lora, "peft_"),
        **rates(lora),
    }
    every = names == "all-linear"
    settings |= (
        {"lora_target_linear": True} if every else {"lora_target_modules": names}
    )
    return settings | (_quantized(brief) if four else {})


def _quantized(brief: Brief) -> dict[str, Any]:
    training = brief.training
    kwargs: dict[str, Any] = {
        "bnb_4bit_quant_type": training.weight_format,
        "bnb_4bit_use_double_quant": training.double_quantization,
    }
    if fsdp(brief):
        # Shards need weights stored in the format of all others.
        kwargs["bnb_4bit_quant_storage"] = "bfloat16"
    return {"bnb_config_kwargs": kwargs}


def _place(brief: Brief) -> dict[str, Any]:
    """Shards: DeepSpeed's file, or FSDP2 with the ranks of a hybrid mesh."""
    if deepspeed(brief):
        return {"deepspeed": DS_FILE}
    if not fsdp(brief):
        return {}
    shards = placement(brief)["fsdp_config"]
    block = {key.removeprefix("fsdp_"): value for key, value in shards.items()}
    if brief.training.method == "qlora":
        # Weights that rank 0 quantises alone cannot be handed out.
        block["cpu_ram_efficient_loading"] = False
    settings = {"fsdp_version": block.pop("version"), "fsdp_config": block}
    if replicas(brief.layout) > 1:
        settings["dp_replicate_size"] = replicas(brief.layout)
        settings["dp_shard_size"] = brief.layout.dp_shard
    return settings
