"""training.yaml: TrainingArguments of transformers, SFTConfig where TRL trains."""

from typing import Any

from planner.frameworks.accelerate.rows import of_trl
from planner.frameworks.accelerate.stack import (
    OF_BITSANDBYTES,
    OPTIMIZERS,
    OVER_SHARDS,
)
from planner.launch.brief import Brief
from planner.launch.targets.accelerate.plan import (
    deepspeed,
    fsdp,
    mixed_precision,
    offloads_by_trl,
    option,
    recompute,
    shards,
    with_trl,
)

LIGER = ("rope", "swiglu", "rms_norm", "cross_entropy")
"""Kernels of Liger that the plan does not price. [text]"""


def optim(brief: Brief) -> str | None:
    """TrainingArguments.optim of a plan.

    Returns:
        Word of the optimizer; None where Trainer has no such optimizer. [text]
    """
    name = brief.training.optimizer
    if shards(brief) and name in OF_BITSANDBYTES:
        return OVER_SHARDS.get(name)
    if name == "adamw" and deepspeed(brief):
        return "adamw_torch"
    return OPTIMIZERS.get(name)


def arguments(brief: Brief) -> dict[str, Any]:
    """Fields of the trainer's arguments."""
    its = brief.layout
    checkpointing = recompute(its) == "full" and not fsdp(brief)
    found: dict[str, Any] = {
        "per_device_train_batch_size": its.micro_batch,
        "gradient_accumulation_steps": its.grad_accum,
        "max_steps": brief.training_steps,
        "bf16": mixed_precision(brief) == "bf16",
        "fp16": mixed_precision(brief) == "fp16",
        "optim": optim(brief),
        "gradient_checkpointing": checkpointing,
        "dataloader_drop_last": True,
    }
    if checkpointing:
        found["gradient_checkpointing_kwargs"] = {"use_reentrant": False}
    return found | _formats(brief) | _loss(brief) | _trl(brief) | _recipe(brief)


def _formats(brief: Brief) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if brief.training.precision == "tf32":
        found["tf32"] = True
    if brief.training.optimizer == "sgd-momentum":
        found["optim_args"] = "momentum=0.9"
    if deepspeed(brief):
        return found
    each = option(brief, "accumulation", "sync_each_batch") == "sync_each_batch"
    kwargs = {"sync_each_batch": each}
    found["accelerator_config"] = {"gradient_accumulation_kwargs": kwargs}
    found["ddp_find_unused_parameters"] = False
    return found


def _loss(brief: Brief) -> dict[str, Any]:
    if option(brief, "loss", "hf") != "liger":
        return {}
    kernels = dict.fromkeys(LIGER, False) | {"fused_linear_cross_entropy": True}
    return {"use_liger_kernel": True, "liger_kernel_config": kernels}


def _trl(brief: Brief) -> dict[str, Any]:
    if not with_trl(brief):
        return {}
    moved = {"activation_offloading": offloads_by_trl(brief)}
    return of_trl(brief.training) | moved


def _recipe(brief: Brief) -> dict[str, Any]:
    """Hyperparameters that no plan decides: ordinary values, for users to change."""
    tuned = brief.training.method != "full"
    return {
        "lr_scheduler_type": "cosine",
        "warmup_steps": 0.02,
        "weight_decay": 0.0 if tuned else 0.1,
        "adam_beta2": 0.999 if tuned else 0.95,
        "max_grad_norm": 1.0,
        "logging_steps": 10,
        "save_steps": 500,
        "seed": 0,
        "report_to": "none",
        "disable_tqdm": True,
    }
