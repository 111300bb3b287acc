"""Model families that Megatron's GPTModel can train, read from data."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from planner.hardware.reading.yaml_text import parse_yaml

FILE = Path(__file__).with_name("families.yaml")
Options = dict[str, str | float | bool]


class Family(BaseModel):
    """Settings that a family's name implies, beside the sizes of blocks."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    activation: str
    base: float | None = None
    arguments: Options = {}
    routing: Options = {}
    source: str


class Activation(BaseModel):
    """Activation that GPTModel has, and the options that select the activation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gated: bool
    arguments: Options = {}


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    families: dict[str, Family]
    activations: dict[str, Activation]


@cache
def _file() -> _File:
    return _File.model_validate(parse_yaml(FILE.read_text()))


def families() -> Mapping[str, Family]:
    """Families by Hugging Face model type. [-]."""
    return _file().families


def activations() -> Mapping[str, Activation]:
    """Activations by Hugging Face name. [-]."""
    return _file().activations


def activation_of(family: Family, model: Mapping[str, object]) -> str:
    """Activation that a model's fields name, else the activation of the family."""
    return str(model.get("hidden_act") or family.activation)
