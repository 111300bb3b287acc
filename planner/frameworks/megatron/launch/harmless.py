"""Arguments of Megatron-LM that change neither layout nor price."""

from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from hardware.reading.yaml_text import parse_yaml
from planner.frameworks.megatron.launch.known import VERSIONS, declared

FILE = Path(__file__).parent / "lists" / "harmless.yaml"


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
    """Default values of an argument, one for each release, by name."""
    found: dict[str, list[Any]] = {}
    for version in VERSIONS:
        for one in declared(version).values():
            found.setdefault(one["dest"], []).append(one["default"])
    return found


def is_harmless(name: str, value: object) -> bool:
    """Tell if an argument leaves the price unchanged.

    Args:
        name: Name of the argument as the parser keeps it. [text]
        value: Value of the argument. [-]

    Returns:
        False where the argument changes time or memory, or may change them.
    """
    its = _file()
    if name in its.plain:
        return value in its.plain[name]
    known = name in its.names or name.startswith(its.heads)
    return known or value in _defaults().get(name, [])
