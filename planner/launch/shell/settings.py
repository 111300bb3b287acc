"""Settings by the words of a command."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from planner.hardware.reading.yaml_text import parse_yaml

_ASSIGNED = re.compile(r"\+{0,2}([A-Za-z_][\w.\-]*)=(.*)", re.DOTALL)


def settings_of(words: Sequence[str]) -> dict[str, Any]:
    """Settings that words give: `--name value`, `--name=value` and `name=value`.

    Returns:
        Values by name, with underscores for dashes; an option without a value is true,
        and the last of several options counts. [-]
    """
    return {name: value for name, value in _pairs(words) if name}


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Names with the values that follow; words without a name have none."""
    name, values = "", list[str]()
    for word in words:
        assigned = _ASSIGNED.fullmatch(word)
        if word.startswith("~"):
            # A setting that is taken away has a name of its own, which nobody knows.
            yield name, _value(values)
            yield word, True
            name, values = "", []
        elif word.startswith("--") or (assigned and (values or not name)):
            yield name, _value(values)
            option = word.removeprefix("--")
            name, equals, inside = option.partition("=")
            name = name.lstrip("+").replace("-", "_")
            values = [inside] if equals else []
        else:
            values.append(word)
    yield name, _value(values)


def _value(values: Sequence[str]) -> Any:
    """One value, several, or true where an option has none."""
    read = [scalar(value) for value in values]
    return True if not read else read[0] if len(read) == 1 else read


def scalar(text: str) -> Any:
    """Read a word of a command line as YAML; a word that is no YAML stays text."""
    try:
        return parse_yaml(text)
    except (yaml.YAMLError, ValueError):
        return text
