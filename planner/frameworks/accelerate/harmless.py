"""Arguments of trainers' programs that nothing is read from, and nothing hangs on."""

from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from planner.hardware.reading.yaml_text import parse_yaml

FILE = Path(__file__).with_name("harmless.yaml")


class _Harmless(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    arguments: dict[str, frozenset[str]]


@cache
def _lists() -> _Harmless:
    return _Harmless.model_validate(parse_yaml(FILE.read_text()))


def harmless(program: str) -> frozenset[str]:
    """Arguments of a program that change no layout, time or memory."""
    return _lists().arguments[program]
