"""Turns what pydantic refuses into one message that a user can act on."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from planner.errors import BadInputError, did_you_mean
from planner.hardware.reading.nearest import nearest
from planner.specs.counted import counted

ANSWERS = "planner/"
"""Start of the schema of every answer. [text]"""

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "tuple": "a list",
    "dict": "a block of fields",
    "model": "a block of fields",
}
"""Name of a pydantic type in a YAML file."""
_URGENCY = {"extra_forbidden": 0, "value_error": 1, "missing": 3}
"""Order of errors: a misspelt key also makes a field missing, so it is told first."""
_OTHER_URGENCY = 2
_UNION_TAGS = {"bool", "int", "str", "Span"}
"""Parts of a pydantic location that name a member of a union, not a field."""


def explained(
    error: ValidationError, model: type[BaseModel], *, file: str, inside: str = ""
) -> BadInputError:
    """The most helpful of pydantic's errors, in words of the spec.

    A misspelt key comes before a broken rule, and a wrong value before a missing
    field. A deeper field comes before the block that holds it. The rest is counted.

    Args:
        error: Error that pydantic raised. [-]
        model: Type that was read. [-]
        file: File, or option, that the data came from. [text]
        inside: Dotted path of the block that was read, empty for a whole file. [text]
    """
    errors = error.errors(include_url=False)
    first = min(errors, key=_order)
    path = _path(first)
    message, allowed = _words(first, model, [e for e in errors if _path(e) == path])
    if others := _others(errors, path):
        message += f" ({counted(others, 'more field')} wrong)"
    return BadInputError(
        message,
        file=file,
        field=".".join(map(str, [inside, *path] if inside else path)) or None,
        value=_shown(first),
        allowed=allowed,
    )


def field_names(model: type[BaseModel]) -> list[str]:
    """Names of a block's fields as a user writes them.

    Returns:
        Names. [text], shape (fields,)
    """
    return [field.alias or name for name, field in model.model_fields.items()]


def _others(errors: Sequence[ErrorDetails], path: Sequence[str | int]) -> int:
    """Number of wrong fields other than a field and the blocks that hold it."""
    wrong = {tuple(map(str, _path(error))) for error in errors}
    told = list(map(str, path))
    return sum(list(field) != told[: len(field)] for field in wrong)


def _order(error: ErrorDetails) -> tuple[int, int]:
    """Most helpful first: by kind of error, then the deepest field."""
    return _URGENCY.get(error["type"], _OTHER_URGENCY), -len(_path(error))


def _path(error: ErrorDetails) -> list[str | int]:
    """Fields and list indices on the way to the wrong field."""
    parts = error["loc"]
    return [p for i, p in enumerate(parts) if isinstance(p, int) or _is_key(p, i)]


def _is_key(part: str, depth: int) -> bool:
    # Union members read `tuple[int, ...]`, `constrained-float` or `Span`; they never
    # open a path.
    tag = "[" in part or part in _UNION_TAGS or part.startswith("constrained-")
    return depth == 0 or not tag


def _words(
    error: ErrorDetails, model: type[BaseModel], same: Sequence[ErrorDetails]
) -> tuple[str, str | None]:
    """Words for the error, and for the allowed values."""
    path = _path(error)
    if error["type"] == "extra_forbidden":
        block = _block_at(model, path[:-1])
        return f"no such key; {did_you_mean(str(path[-1]), field_names(block))}", None
    if error["type"] == "value_error":
        return str(error["ctx"]["error"]), None
    if error["type"] == "missing":
        return "this field is missing", None
    if error["type"] == "invalid_key":
        return "a key has to be text", None
    allowed = " or ".join(dict.fromkeys(_allowed(item) for item in same))
    return f"not a legal value{_nearest(error)}", allowed


def _allowed(error: ErrorDetails) -> str:
    """Words for the allowed values, from the type of the error or its message."""
    if "expected" in error.get("ctx", {}):
        return str(error["ctx"]["expected"])
    kind, _, rest = error["type"].partition("_")
    if kind in _KINDS and rest in {"type", "parsing", "from_float", "attributes_type"}:
        return _KINDS[kind]
    return error["msg"].removeprefix("Input should be ")


def _nearest(error: ErrorDetails) -> str:
    """Half a sentence that names the nearest word of an enumeration."""
    words = re.findall(r"'([^']+)'", str(error.get("ctx", {}).get("expected", "")))
    close = nearest(str(error["input"]).lower(), words, 0.5)
    return f"; did you mean {close}?" if close else ""


def _shown(error: ErrorDetails) -> object:
    """The value, where it helps to find the place."""
    value = error["input"]
    if error["type"] == "missing" or isinstance(value, dict):
        return None
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return value


def _block_at(model: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel]:
    """Type of the block that a path leads to."""
    for part in path:
        if isinstance(part, str):
            by_name = dict(zip(field_names(model), model.model_fields, strict=True))
            annotation = model.model_fields[by_name[part]].annotation
            model = next(_models_in(annotation))
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Blocks that an annotation mentions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def refuse_answer(fields: Mapping[str, object], file: str) -> None:
    """Refuse what a command wrote of a job in place of a job."""
    schema = str(fields.get("schema", ""))
    if schema.startswith(ANSWERS):
        raise BadInputError(
            "is an answer of planner, not a job",
            file=file,
            field="schema",
            value=schema,
            allowed="a job, such as the block spec of the answer in a file of its own; "
            "planner emit and planner diff read plans",
        )
