"""Keys of ds_config.json that DeepSpeed reads; DeepSpeed's parser passes others."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

VERSION = "0.19.8"
"""Release of DeepSpeed that files are written for. [text]"""
FILE = Path(__file__).with_name("keys.json")
ANY = "*"
"""Mark of a block with any keys, such as parameters of an optimizer. [text]"""
MARKS = frozenset(
    {
        "zero_optimization",
        "train_micro_batch_size_per_gpu",
        "train_batch_size",
        "tensor_parallel",
    }
)
"""Keys that mark a ds_config.json, which has at least one. [text]"""
LAYOUT = frozenset(
    {
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "gradient_accumulation_steps",
        "zero_optimization",
        "tensor_parallel",
        "sequence_parallel_size",
        "pipeline",
        "expert_parallel",
        "activation_checkpointing",
        "bf16",
        "fp16",
        "optimizer",
    }
)
"""Keys that a layout or a training block is read from. [text]"""
TRAINER = {
    "train_micro_batch_size_per_gpu": "per_device_train_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
}
"""Trainer's argument behind `auto`, by key. [text]"""
DEFAULTS = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 1}
"""Values that Trainer takes where an argument is not given. [1]"""


@cache
def known() -> dict[str, list[str]]:
    """Keys by block; the empty name is the top of the file.

    Returns:
        Names; a key without a block of that path has a plain value. [text]

    References:
        DeepSpeed 0.19.8 deepspeed/runtime/constants.py, runtime/config.py,
        runtime/zero/config.py, runtime/zero/offload_config.py,
        runtime/tensor_parallel/config.py, runtime/activation_checkpointing/config.py,
        module_inject/auto_ep_presets/base.py.
    """
    every: dict[str, list[str]] = json.loads(FILE.read_text())
    return every


def unknown(settings: Mapping[str, object], block: str = "") -> Iterator[str]:
    """Keys that DeepSpeed passes over without a word, or refuses.

    Args:
        settings: Settings of a file, or of a block in a file. [-]
        block: Path of that block, with dots. [text]

    Yields:
        Paths of keys. [text]
    """
    for name, value in settings.items():
        path = f"{block}.{name}" if block else name
        if name not in known()[block]:
            yield path
        elif isinstance(value, Mapping) and known().get(path, [ANY]) != [ANY]:
            yield from unknown(value, path)
