"""Settings of torchtitan by name: read, without effect, or unknown."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from planner.hardware.reading.yaml_text import parse_yaml

FILE = Path(__file__).with_name("settings.yaml")
Kind = Literal["used", "harmless", "unknown"]
Values = dict[str, Any]
"""Value of every setting by `section.name`; `model`, `precision`, `dispatcher`,
`loss` and `activation_checkpoint` stand for settings in other forms."""
WORDS = (
    "model",
    "precision",
    "dispatcher",
    "loss",
    "activation_checkpoint",
    "order",
    "gathers",
    "parallelism.context_parallel_rotate_method",
)
"""Keys of Values that are no settings of release 0.3.0. [text]"""


class Registered(BaseModel):
    """A configuration of the package's own registry."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: tuple[str, str]
    loss: str
    activation_checkpoint: str
    precision: str = "bf16"
    training: Values
    parallelism: Values = {}
    compile: Values = {}


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    used: frozenset[str]
    unread: frozenset[str]
    plain: dict[str, list[Any]]
    harmless: frozenset[str]
    harmless_sections: frozenset[str]
    renamed: dict[str, str]
    schedules: dict[str, str]
    registry: dict[str, Registered]


@cache
def _file() -> _File:
    return _File.model_validate(parse_yaml(FILE.read_text()))


def schedules() -> Mapping[str, str]:
    """The planner's name of a schedule by PyTorch's. [text]."""
    return _file().schedules


def registry() -> Mapping[str, Registered]:
    """Configurations of the package's own registry by name. [-]."""
    return _file().registry


def registered(name: str) -> Values:
    """A configuration of the package's own registry."""
    one = _file().registry[name]
    found: Values = {
        "model": ("flavour", *one.model),
        "loss": one.loss,
        "activation_checkpoint": one.activation_checkpoint,
        "precision": one.precision,
    }
    for section in ("training", "parallelism", "compile"):
        values = getattr(one, section)
        found |= {f"{section}.{key}": value for key, value in values.items()}
    return found


def kind_of(name: str, value: object) -> Kind:
    """Kind of a setting: read, without effect on the price, or unknown."""
    its = _file()
    if name in its.plain and value not in its.plain[name]:
        return "unknown"
    if name in its.used or name in WORDS:
        return "used"
    section = name.partition(".")[0]
    harmless = (
        name in its.harmless | its.plain.keys() or section in its.harmless_sections
    )
    return "harmless" if harmless else "unknown"


def renamed(name: str) -> str:
    """Name in release 0.3.0 of a setting of an older release."""
    return _file().renamed.get(name, name)
