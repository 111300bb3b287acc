"""The training block of a measured row."""

import re
from math import prod
from typing import get_args

from planner.calibration.mapping.software import StackRule
from planner.calibration.notes.rules import rules
from planner.calibration.rows.rows import Row
from planner.calibration.rows.unsupported import UnsupportedError
from planner.calibration.rows.vocabulary import OptimizerWords
from planner.errors import did_you_mean
from planner.specs.layouts.layout import PartialLayout
from planner.specs.training import LoraSpec, Method, Precision, Target, TrainingSpec

PRECISIONS: tuple[tuple[str, Precision], ...] = (
    (r"nvfp4|mxfp4|\bfp4", "nvfp4"),
    (r"mxfp8|fp8[-_]?mx", "mxfp8"),
    (r"fp8|float8|e4m3|hybrid", "fp8"),
    (r"bf16|bfloat16", "bf16"),
    (r"fp16|float16|half|\bamp\b|o[12]\b", "fp16"),
    (r"tf32|tensorfloat", "tf32"),
    (r"fp32|float32|^32\b|single", "fp32"),
)
"""Patterns of a number format, the narrowest first."""
_OPTIMIZERS = {
    "adam": "adamw",
    "sgd": "sgd-momentum",
    "galore": "galore-adamw",
    "apollo": "apollo-adamw",
}


def training_of(row: Row, layout: PartialLayout, rule: StackRule) -> TrainingSpec:
    """One optimizer step of a row.

    Raises:
        UnsupportedError: A number format or a layer without a name here, or sequences
            of which only the upper length is known.
    """
    if getattr(row.job, "packed", None) is False:
        raise UnsupportedError(
            "job: sequences are not packed, so that real ones are shorter than "
            f"seq_len {row.job.seq_len} by an unknown part"
        )
    words = row.normalised.optimizer
    cut = (layout.dp, layout.micro_batch, layout.grad_accum)
    return TrainingSpec.model_validate(
        {
            "seq_len": row.job.seq_len,
            "global_batch": prod(part or 1 for part in cut),
            "precision": _precision(row, rule),
            "optimizer": _optimizer(words),
            "state_bits": None if words.state_bits == 32 else words.state_bits,
            "optimizer_in_backward": words.in_backward,
            **({"projection_rank": words.rank} if words.rank else {}),
            "method": _method(row),
            "lora": LoraSpec() if _method(row) == "full" else _lora(row, rule),
            "document": _document(row, rule),
        }
    )


def _optimizer(words: OptimizerWords) -> str:
    """The optimizer; SGD inside the backward is LOMO's, without a momentum.

    Source: Lv et al. 2023, arXiv 2306.09782.
    """
    if words.name == "sgd" and words.in_backward:
        return "sgd"
    return _OPTIMIZERS.get(words.name, words.name)


def _document(row: Row, rule: StackRule) -> int | None:
    """Mean length of packed documents that attend to themselves alone."""
    packing, text = rules().packing, row.job.text("task")
    tuned = bool(re.search(r"sft|lora|peft|finetun|fine-tun", text))
    return packing.document if tuned and rule.stack in packing.stacks else None


def _precision(row: Row, rule: StackRule) -> Precision:
    """Number format of the linear layers; NVIDIA's containers multiply fp32 as tf32."""
    for text in (row.job.precision.lower(), row.job.text("precision_detail")):
        for pattern, word in PRECISIONS:
            if re.search(pattern, text):
                wide = word == "fp32" and rule.room == "megatron"
                return "tf32" if wide or "tf32" in text else word
    raise UnsupportedError(f"job: precision {row.job.precision!r} is not known")


def _method(row: Row) -> Method:
    text = row.job.text("task")
    if "qlora" in text:
        return "qlora"
    return "lora" if "lora" in text or "peft" in text else "full"


def _lora(row: Row, rule: StackRule) -> LoraSpec:
    """Adapters as stated, by name or in words, else by the stack's habit."""
    said = row.job.lora or {}
    named, rank = said.get("targets"), said.get("rank")
    size = rank if isinstance(rank, int) else LoraSpec().rank
    spec = LoraSpec(rank=size, dropout=float(said.get("dropout") or 0.0))
    if isinstance(named, list):
        return spec.model_copy(update={"targets": _known(named)})
    text = str(named or "").lower()
    beyond = bool(re.search(r"all|mlp|fc|gate|up|down|ffn", text))
    if not text and rule.stack in rules().adapters.qkv:
        return spec.model_copy(update={"targets": ("qkv",)})
    targets = "attention" if text and not beyond else "all"
    return spec.model_copy(update={"targets": targets})


def _known(named: list[object]) -> tuple[str, ...]:
    """Names of linear layers, all of which a job may name."""
    known = get_args(Target)
    for name in named:
        if name not in known:
            near = did_you_mean(str(name), known)
            raise UnsupportedError(f"job: lora.targets: no such layer {name!r}; {near}")
    return tuple(map(str, named))
