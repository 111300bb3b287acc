"""Keys of ds_config.json by their use; DeepSpeed's parser passes others."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from planner.hardware.reading.yaml_text import parse_yaml

VERSION = "0.19.8"
"""Release of DeepSpeed that files are written for. [text]"""
FILE = Path(__file__).with_name("keys.yaml")
MARKS = frozenset(
    {
        "zero_optimization",
        "train_micro_batch_size_per_gpu",
        "train_batch_size",
        "tensor_parallel",
    }
)
"""Keys that mark a ds_config.json, which has at least one. [text]"""
TRAINER = {
    "train_micro_batch_size_per_gpu": "per_device_train_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
}
"""Trainer's argument behind `auto`, by key. [text]"""
DEFAULTS = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 1}
"""Values that Trainer takes where an argument is not given. [1]"""


class Block(BaseModel):
    """Keys of one block.

    Attributes:
        read: Keys that a job is read from. [text]
        priced: Values that are priced, by key; any other value is refused. [-]
        harmless: Keys that no layout, time or memory hangs on. [text]
        others: True where the block has other keys, which are harmless. [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    read: frozenset[str] = frozenset()
    priced: dict[str, tuple[bool | int | str, ...]] = {}
    harmless: frozenset[str] = frozenset()
    others: bool = False

    def knows(self, name: str) -> bool:
        """Tell if the block has a key. [-]."""
        known = self.read | self.priced.keys() | self.harmless
        return self.others or name in known


class _Keys(BaseModel):
    source: str
    blocks: dict[str, Block]


@cache
def blocks() -> dict[str, Block]:
    """Keys by block; the empty name is the top of the file."""
    return _Keys.model_validate(parse_yaml(FILE.read_text())).blocks


def unknown(settings: Mapping[str, object], block: str = "") -> Iterator[str]:
    """Keys that DeepSpeed passes over without a word, or refuses."""
    for path, name, _, its in every(settings, block):
        if not its.knows(name):
            yield path


def harmless(settings: Mapping[str, object]) -> Iterator[str]:
    """Settings at the top of a file that no layout, time or memory hangs on."""
    top = blocks()[""].harmless
    yield from (f"{k} {json.dumps(v)}" for k, v in settings.items() if k in top)


def every(
    settings: Mapping[str, object], block: str = ""
) -> Iterator[tuple[str, str, object, Block]]:
    """Every setting of a file, down to the blocks that hold any keys.

    Yields:
        Path, name and value of a setting, and the block that may know it. [-]
    """
    its = blocks().get(block)
    if its is None:
        return
    for name, value in settings.items():
        path = f"{block}.{name}" if block else name
        yield path, name, value, its
        if isinstance(value, Mapping):
            yield from every(value, path)
