"""Settings of ds_config.json that no price holds, in words."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from planner.frameworks.deepspeed.launch.known import every
from planner.launch.targets.deepspeed.settings import OPTIMIZERS, optimizer_named
from planner.launch.unknown import CHANGES, NOT_PRICED, Unknown

HALVES = ("bf16", "fp16")
"""Blocks of formats of computation. [text]"""
WIRES = {"fp32": ("fp32",), "fp16": ("fp32",), "bf16": ("fp32", "bf16")}
"""Formats that gradients travel in at a known price, by that of computation. [text]"""
NAMES = {
    **dict.fromkeys(("float16", "half", "torch.float16"), "fp16"),
    **dict.fromkeys(("float32", "float", "torch.float32"), "fp32"),
    **dict.fromkeys(("bfloat16", "torch.bfloat16"), "bf16"),
}
"""The short name of a format (runtime/config.py, DtypeEnum). [text]"""
OPEN = ("none", "auto")
"""Values that leave a setting to its default, or to Trainer's arguments. [text]"""


def judged(settings: Mapping[str, object]) -> Iterator[Unknown]:
    """Settings that DeepSpeed does not know, or that no price holds."""
    for path, name, value, its in every(settings):
        if not its.knows(name):
            yield Unknown(path, why="no key of DeepSpeed")
        elif name in its.priced and _word(value) not in (
            *OPEN,
            *map(_word, its.priced[name]),
        ):
            shown = value if isinstance(value, str) else json.dumps(value)
            yield Unknown(path, shown, CHANGES)
    yield from _formats(settings)
    kind, _ = optimizer_named(settings)
    if kind and kind not in OPTIMIZERS:
        yield Unknown("optimizer.type", kind, NOT_PRICED)


def _word(value: object) -> str:
    return str(value).lower()


def _formats(settings: Mapping[str, Any]) -> Iterator[Unknown]:
    """Formats of gradients that are not priced beside the format of computation.

    Source: DeepSpeed 0.19.8 runtime/engine.py, get_data_types.
    """
    half = next((name for name in HALVES if _enabled(settings, name)), "fp32")
    kept = {"fp16": "fp16"}.get(half, "fp32")
    for path, priced in (
        ("data_types.grad_accum_dtype", (kept,)),
        ("communication_data_type", WIRES[half]),
    ):
        block, _, name = path.rpartition(".")
        inside = settings.get(block) if block else settings
        value = inside.get(name) if isinstance(inside, Mapping) else None
        if value is not None and NAMES.get(str(value), str(value)) not in priced:
            yield Unknown(path, value, f"{CHANGES} beside {half}")


def _enabled(settings: Mapping[str, Any], name: str) -> bool:
    block = settings.get(name)
    return isinstance(block, Mapping) and block.get("enabled") is True
