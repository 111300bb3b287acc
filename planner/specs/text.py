"""Text of an answer as JSON, for people and for programs."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

WIDTH = 128
"""Most columns of a value on one line. [1]"""


def json_text(answer: BaseModel) -> str:
    """JSON of an answer, in which a value that fits stays on one line.

    A plan of 16,384 GPUs has hundreds of stages, each a short object: with every field
    on a line of its own nobody finds the layout among them.
    """
    fields = json.loads(answer.model_dump_json(by_alias=True))
    return "".join(_parts(fields, 0, 0)) + "\n"


def _parts(value: Any, depth: int, used: int) -> Iterator[str]:
    """Pieces of a value's text, of which the first stands behind `used` columns."""
    short = json.dumps(value, ensure_ascii=False)
    fits = 2 * depth + used + len(short) < WIDTH
    if fits or not isinstance(value, list | dict) or not value:
        yield short
        return
    start, end = "{}" if isinstance(value, dict) else "[]"
    separator = f"{start}\n"
    for name, member in _members(value):
        yield f"{separator}{'  ' * (depth + 1)}{name}"
        yield from _parts(member, depth + 1, len(name))
        separator = ",\n"
    yield f"\n{'  ' * depth}{end}"


def _members(value: list[Any] | dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Members of a list or an object, each behind the text of its name."""
    if isinstance(value, list):
        yield from (("", member) for member in value)
    else:
        yield from ((f"{json.dumps(k)}: ", member) for k, member in value.items())
