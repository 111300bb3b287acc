"""Reads a file of measured rows item by item, so that one broken item ends no other."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import yaml

from planner.errors import BadInputError
from planner.hardware.reading.yaml_text import DuplicateKeyError, parse_yaml
from planner.specs.reading.read import given_twice

Items = Iterator[Any | BadInputError]


def items_of(text: str, file: str) -> Items:
    """The items of a list, or the complaint about each.

    A list that is no YAML as a whole is cut where its items begin. Then each item is
    read by itself.

    Args:
        text: YAML, a list of rows. [text]
        file: Path of the file, for messages. [path]
    """
    try:
        content = _parsed(text, file)
    except BadInputError as error:
        parts = _cut(text)
        if len(parts) <= 1:
            yield error
            return
        for part in parts:
            yield from _alone(part, file)
        return
    if isinstance(content, list):
        yield from content
        return
    kind = "nothing" if content is None else f"a {type(content).__name__}"
    yield BadInputError(f"holds {kind}; a list of rows is needed", file=file)


def _alone(part: str, file: str) -> Items:
    """One item that was cut out of a file, its line numbers as they were."""
    try:
        content = _parsed(part, file)
    except BadInputError as error:
        yield error
        return
    yield from content if isinstance(content, list) else ()


def _cut(text: str) -> list[str]:
    """Pieces of a text, one per item, behind empty lines that keep line numbers."""
    starts = [match.start() for match in re.finditer(r"^-(?=\s)", text, re.MULTILINE)]
    return [
        "\n" * text.count("\n", 0, start) + text[start:end]
        for start, end in pairwise([*starts, len(text)])
    ]


def _parsed(text: str, file: str) -> Any:
    try:
        return parse_yaml(text)
    except DuplicateKeyError as error:
        raise given_twice(error, file) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        problem = error.problem or error.context
        raise BadInputError(
            f"cannot be read: {problem}",
            file=file,
            field=f"line {mark.line + 1}" if mark else None,
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadInputError(f"cannot be read: {error}", file=file) from error
