"""Fields of Megatron-Bridge's ConfigContainer, and the models that it can convert."""

import json
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

VERSION = "0.6.0"
"""Release of Megatron-Bridge that overrides are written for. [text]"""
_FILE = Path(__file__).with_name(f"megatron-bridge-{VERSION}-fields.json")


class Fields(BaseModel):
    """Fields of ConfigContainer's blocks, and the models that have a bridge."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    architectures: list[str]
    blocks: dict[str, list[str]]


@cache
def fields() -> Fields:
    """Fields of every block, and Hugging Face classes that have a bridge. [-]."""
    return Fields.model_validate(json.loads(_FILE.read_text()))
