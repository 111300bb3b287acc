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
