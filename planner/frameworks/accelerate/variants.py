"""Variants of adapters in the words of PEFT's LoraConfig: rsLoRA, DoRA."""

from collections.abc import Iterator, Mapping
from typing import Any

from planner.models.asked import Asked
from planner.specs.frameworks.lacks import ONE_RATE, RATIO_FIELD, Lack
from planner.specs.training import LoraSpec

WORDS = {"use_rslora": "rslora", "use_dora": "dora"}
"""The planner's name of a variant by PEFT's. [text]"""
RATIO = "loraplus_lr_ratio"
"""Key of LoRA+'s ratio, the same here, in axolotl and in LLaMA-Factory. [text]"""


def written(lora: LoraSpec, prefix: str = "") -> dict[str, Any]:
    """Variants that a job asks for, as PEFT names them.

    Returns:
        True by name; empty for plain adapters. [-]
    """
    return {
        f"{prefix}{word}": True for word, own in WORDS.items() if getattr(lora, own)
    }


def rates(lora: LoraSpec) -> dict[str, Any]:
    """Ratio of learning rates that a job asks for, of axolotl and LLaMA-Factory.

    Returns:
        The ratio by its key; empty without one. [1]
    """
    return {RATIO: lora.loraplus_lr_ratio} if lora.loraplus_lr_ratio else {}


def asked_for(given: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Variants and ratio that a file gives."""
    found = {w: given[f"{prefix}{w}"] for w in WORDS if given.get(f"{prefix}{w}")}
    return found | ({RATIO: given[RATIO]} if given.get(RATIO) is not None else {})


def one_rate(asked: Asked) -> Iterator[Lack]:
    """LoRA+, which PEFT leaves to the optimizer that a trainer is given."""
    ratio = asked.training.lora.loraplus_lr_ratio
    if ratio:
        yield Lack(
            ONE_RATE,
            RATIO_FIELD,
            ratio,
            "none; targets axolotl and llamafactory have it",
        )


def by_trainer(asked: Asked, *, deepspeed: bool) -> Iterator[Lack]:
    """LoRA+ where DeepSpeed makes the optimizer, in place of the trainer."""
    ratio = asked.training.lora.loraplus_lr_ratio
    if ratio and deepspeed:
        yield Lack(
            "DeepSpeed's optimizer on the host has one learning rate",
            RATIO_FIELD,
            ratio,
            "none, or the optimizer on the GPU",
            when=lambda its: its.offload.optimizer > 0,
        )
