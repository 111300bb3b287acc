"""Breaches of rules as records: who reads them needs no sentence."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from planner.specs.frameworks.lacks import View
from planner.specs.layouts.layout import Layout


@dataclass(frozen=True)
class Breach:
    """A rule that a layout breaks.

    Attributes:
        field: Field to change, as a path below `layout` or `spec`. [text]
        value: Value of that field. [-]
        sentence: The breach in words, with its numbers. [text]
        allowed: Values that the rule lists in place of that value. [text]
    """

    field: str
    value: object
    sentence: str
    allowed: str = ""

    @classmethod
    def of(cls, layout: Layout, name: str, sentence: str, allowed: str = "") -> Self:
        """Breach by one field of a layout; its value is read there."""
        value = View(layout).value(name)
        return cls(f"layout.{name}", value, sentence, allowed)


Broken = Iterator[tuple[str, ...]]
"""Results of rules: the field of a layout, the sentence, and allowed values if any."""
Breaches = Iterator[Breach]
