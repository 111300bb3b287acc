"""Stacks and options of accelerate's room, as accelerate's writer reads a job."""

from planner.models.asked import Asked

DEEPSPEED_STACK = "hf-trainer"
"""The stack that runs under accelerate's plugin of DeepSpeed. [text]"""
BF16_STACK = "hf-bf16"
"""The stack whose weights, gradients and moments are bf16. [text]"""
STACKS = ("hf-fsdp2", BF16_STACK, "hf-amp", DEEPSPEED_STACK)
"""Stacks that files can be written for. [text]"""
OPTIMIZERS = {
    "adamw": "adamw_torch_fused",
    "adamw-8bit": "adamw_bnb_8bit",
    "paged-adamw": "paged_adamw_32bit",
    "paged-adamw-8bit": "paged_adamw_8bit",
    "lion": "lion_32bit",
    "sgd": "sgd",
    "sgd-momentum": "sgd",
    "adafactor": "adafactor",
}
"""TrainingArguments.optim by name. [text]"""
OF_BITSANDBYTES = ("adamw-8bit", "paged-adamw", "paged-adamw-8bit", "lion")
"""Optimizers whose kernels know no DTensor. [text]"""
OVER_SHARDS = {"adamw-8bit": "adamw_torch_8bit"}
"""TrainingArguments.optim over DTensor: torchao replaces bitsandbytes. [text]"""


def stack(asked: Asked) -> str:
    """Name of a job's stack; accelerate's first stack for another framework's job."""
    return str(asked.stack.get("name", "")) if _own(asked) else STACKS[0]


def _own(asked: Asked) -> bool:
    return asked.framework == "accelerate"


def option(asked: Asked, name: str, default: str) -> str:
    """Word of a setting in the job's stack block."""
    return str(asked.words.get(name, default)) if _own(asked) else default


def deepspeed(asked: Asked) -> bool:
    """Tell if the job runs under accelerate's plugin of DeepSpeed. [-]."""
    return stack(asked) == DEEPSPEED_STACK


def chunked(asked: Asked) -> bool:
    """Tell if the job asks for TRL's loss in chunks. [-]."""
    return option(asked, "loss", "hf") == "chunked"
