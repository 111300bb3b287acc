"""Reads YAML text: plain data, no key twice, no endless nesting.

A YAML file says each key of a block once (YAML 1.2, section 3.2.1.3); PyYAML takes the
last of two without a word.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml

DEEPEST = 100
"""Blocks inside each other; no file of facts or jobs has ten. [1]"""
_FAST = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TWO_READINGS = re.compile(
    r"[-+]?(?:0[0-7_]+|0b[01_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)"
)
"""Octal with a zero alone, binary and sexagesimal numbers of YAML 1.1. [text]"""
_WORDS: Any = yaml.resolver.Resolver()


class DuplicateKeyError(yaml.MarkedYAMLError):
    """A block says one key twice; the mark is the second place."""

    def __init__(self, key: str, first: Any, second: Any) -> None:
        self.key, self.first, self.second = key, first.line + 1, second.line + 1
        problem = f"key {key!r} is given twice, first on line {self.first}"
        super().__init__(problem=problem, problem_mark=second)


class NumberError(yaml.MarkedYAMLError):
    """A number that releases of YAML read differently; the mark is its place."""

    def __init__(self, value: str, mark: Any) -> None:
        self.value, self.line = value, mark.line + 1
        self.why = "is another number in YAML 1.1 than in 1.2"
        problem = (
            f"{value} {self.why}; write a decimal number without a zero in front, or "
            "text in quotes"
        )
        super().__init__(problem=problem, problem_mark=mark)


class NestingError(yaml.MarkedYAMLError):
    """Blocks are nested deeper than `DEEPEST`."""


def parse_yaml(text: str) -> Any:
    """YAML as plain data, by the parser in C where there is one.

    Returns:
        Mappings, lists, numbers, dates and text; None for an empty text. [-]

    Raises:
        YAMLError: No YAML; a MarkedYAMLError has the line. DuplicateKeyError where a
            block has one key twice, NestingError beyond DEEPEST, NumberError for
            numbers that releases of YAML read differently.
        ValueError: A date that does not exist, or a number with too many digits.
    """
    try:
        _check(yaml.parse(text, Loader=_FAST))
        return yaml.load(text, Loader=_FAST)  # noqa: S506  # both are safe
    except (DuplicateKeyError, NestingError, NumberError):
        raise
    except yaml.YAMLError:
        # The slow parser names the place of an error better; it nests by recursion.
        _check(yaml.parse(text, Loader=yaml.SafeLoader))
        return yaml.safe_load(text)


class _Block:
    """An open list or mapping: the keys so far, and a flag that a key comes next."""

    def __init__(self, *, mapping: bool) -> None:
        self.keys: dict[str, list[yaml.ScalarEvent]] | None = {} if mapping else None
        self.at_key = True

    def step(self, event: yaml.NodeEvent) -> None:
        """Count a node of the block, and refuse a key that was there."""
        if self.keys is None:
            return
        if self.at_key and isinstance(event, yaml.ScalarEvent):
            alike = self.keys.setdefault(event.value, [])
            for first in alike:
                if _tag(first) == _tag(event):
                    mark = first.start_mark
                    raise DuplicateKeyError(event.value, mark, event.start_mark)
            alike.append(event)
        self.at_key = not self.at_key


def _check(events: Iterator[yaml.Event]) -> None:
    """Refuse keys that are there twice, and nesting that no parser survives."""
    inside: list[_Block] = []
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            inside.pop()
        if not isinstance(event, yaml.NodeEvent):
            continue
        _refuse_two_readings(event)
        if inside:
            inside[-1].step(event)
        if isinstance(event, yaml.CollectionStartEvent):
            inside.append(_Block(mapping=isinstance(event, yaml.MappingStartEvent)))
        if len(inside) > DEEPEST:
            mark: Any = event.start_mark
            problem = f"more than {DEEPEST} blocks stand inside each other"
            raise NestingError(problem=problem, problem_mark=mark)


def _refuse_two_readings(event: yaml.NodeEvent) -> None:
    """Refuse plain scalars that YAML 1.1 reads in base 8, 2 or 60, and 1.2 does not."""
    if isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
        if not _TWO_READINGS.fullmatch(event.value):
            return
        raise NumberError(event.value, event.start_mark)


def _tag(event: yaml.ScalarEvent) -> str:
    """Type of a scalar: `1` and `"1"` are two keys, `a` and `"a"` are one."""
    if event.tag is not None:
        return str(event.tag)
    return str(_WORDS.resolve(yaml.ScalarNode, event.value, event.implicit))
