"""Arguments of Megatron-LM that change neither layout nor price."""

from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from hardware.yaml_text import parse_yaml
from planner.launch.megatron.known import VERSIONS, declared

FILE = Path(__file__).with_name("harmless.yaml")


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    heads: tuple[str, ...]
    names: frozenset[str]
    plain: dict[str, list[Any]]


@cache
def _file() -> _File:
    return _File.model_validate(parse_yaml(FILE.read_text()))


@cache
def _defaults() -> dict[str, list[Any]]:
    """What each release takes where an argument is not given, by name."""
    found: dict[str, list[Any]] = {}
    for version in VERSIONS:
        for one in declared(version).values():
            found.setdefault(one["dest"], []).append(one["default"])
    return found


def is_harmless(name: str, value: object) -> bool:
    """Whether an argument leaves the price as it is.

    Args:
        name: As the parser keeps it. [text]
        value: Of it. [-]

    Returns:
        False where it changes time or memory, and where nobody knows.
    """
    its = _file()
    if name in its.plain:
        return value in its.plain[name]
    known = name in its.names or name.startswith(its.heads)
    return known or value in _defaults().get(name, [])
