"""Keys of a measured row that no block has: misspelt keys are refused."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel

from planner.errors import BadInputError
from planner.hardware.reading.nearest import nearest

ALIKE = 0.8
"""Likeness of a key to a known one from which it is that key misspelt. [1]"""


def unread_keys(fields: Mapping[str, Any], model: type[BaseModel]) -> list[str]:
    """Keys of a row that no block has, which are kept all the same.

    Raises:
        BadInputError: A key is misspelt or no text, or a block holds no fields.
    """
    return list(_unread(fields, model, ""))


def _unread(
    fields: Mapping[str, Any], model: type[BaseModel], inside: str
) -> Iterator[str]:
    known = model.model_fields
    for key, value in fields.items():
        where = f"{inside}{key}"
        if key not in known:
            _refuse_misspelt(key, [name for name in known if name not in fields], where)
            yield where
        elif (block := _block(known[key].annotation)) and value is not None:
            if not isinstance(value, dict):
                raise BadInputError(
                    "not a legal value",
                    field=where,
                    value=value,
                    allowed="a block of fields",
                )
            if block.model_config.get("extra") != "forbid":
                yield from _unread(value, block, f"{where}.")


def _refuse_misspelt(key: Any, absent: list[str], where: str) -> None:
    """Refuse a key that is like an absent known key, or is no text."""
    if not isinstance(key, str):
        raise BadInputError("a key has to be text", field=where, value=key)
    same = [name for name in absent if sorted(name) == sorted(key.lower())]
    near = same[0] if same else nearest(key.lower(), absent, ALIKE)
    if near:
        raise BadInputError(f"no such key; did you mean {near}?", field=where)


def _block(annotation: Any) -> type[BaseModel] | None:
    """The block that a field holds; None where it holds none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_block, get_args(annotation))), None)
