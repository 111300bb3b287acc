"""Fields of ConfigContainer by option of Megatron-LM."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from planner.frameworks.megatron.bridge.known import fields
from planner.hardware.reading.yaml_text import parse_yaml

_FOLDER = Path(__file__).parent


class Paths(BaseModel):
    """Fields by option, and the options that are flags."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    paths: dict[str, list[str]]
    unwritten: frozenset[str]
    flags: list[str]
    refused: dict[str, list[Any]]
    """Fields that are not read, with the values that are what is priced. [-]"""
    always_on: frozenset[str]
    """Switches that are on in what is priced. [text]"""


@cache
def paths() -> Paths:
    """Fields of ConfigContainer by option of Megatron-LM. [-]."""
    return Paths.model_validate(parse_yaml((_FOLDER / "paths.yaml").read_text()))


def unknown_fields(overrides: Mapping[str, object]) -> tuple[str, ...]:
    """Overrides that ConfigContainer would pass over with a warning.

    References:
        Megatron-Bridge v0.6.0 training/utils/omegaconf_utils.py, _apply_overrides:
        an unknown key is skipped.
    """
    blocks = fields().blocks
    found = []
    for block, its in overrides.items():
        inside = its if isinstance(its, Mapping) else {"": its}
        known = blocks.get(block, [])
        found += [f"{block}.{name}" for name in inside if name not in known]
    return tuple(found)
