"""Model families and flavours that torchtitan has, read from data."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from planner.hardware.reading.yaml_text import parse_yaml
from planner.models.architecture import Architecture
from planner.models.registry import from_config

FILE = Path(__file__).with_name("families.yaml")
VERSION = "0.3.0"
Builder = Literal["llama3", "qwen3", "deepseek_v3"]


class Router(BaseModel):
    """Choice of experts where a model's fields do not give it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    score: Literal["softmax", "sigmoid"]
    renormalised: bool
    scale: float


class Family(BaseModel):
    """Settings that a family's name implies, beside the sizes of blocks."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    builder: Builder
    base: float
    router: Router | None = None
    source: str


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    families: dict[str, Family]
    flavours: dict[Builder, dict[str, dict[str, Any]]]


@cache
def _file() -> _File:
    return _File.model_validate(parse_yaml(FILE.read_text()))


def families() -> Mapping[str, Family]:
    """Families by Hugging Face model type. [-]."""
    return _file().families


def flavours() -> Mapping[Builder, Mapping[str, Mapping[str, Any]]]:
    """Hugging Face fields of every flavour, by module and name. [-]."""
    return _file().flavours


@cache
def shapes() -> Mapping[tuple[Builder, str], Architecture]:
    """Layers of every flavour, by module and name. [-]."""
    return {
        (module, name): from_config(dict(fields), source=str(FILE), name=name)
        for module, every in flavours().items()
        for name, fields in every.items()
    }
