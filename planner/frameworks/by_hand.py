"""Fields of a stack that a job set by hand, beside what they replace."""

from collections.abc import Iterator, Mapping
from typing import Any

from planner.specs.frameworks.framework import Framework

ALIASES = {"attention": "attention_kernel"}
"""Field of the profile that a short key of a stack block stands for. [text]"""

NAMES = ("name", "version")
"""Keys of a stack block that choose the stack and its release. [text]"""


def by_hand(
    usual: Framework, framework: Framework, stack: Mapping[str, Any]
) -> Iterator[str]:
    """Say which fields of a stack are not the framework's own."""
    for name, value in stack.items():
        if name in NAMES:
            before = getattr(usual.profile, name)
            if str(value) != before:
                yield f"{name} {value} ({before})"
        elif name == "recipe" and isinstance(value, Mapping):
            for key, own in value.items():
                yield from _word(f"recipe.{key}", own, framework.recipe, key)
        else:
            yield from _word(name, value, framework.profile, ALIASES.get(name, name))


def _word(name: str, value: object, default: object, field: str) -> Iterator[str]:
    """Field that differs, with the replaced value where that value is plain."""
    before = getattr(default, field, None)
    if value != before:
        plain = isinstance(before, bool | int | float | str)
        yield f"{name} {_short(value)}" + (f" ({_short(before)})" if plain else "")


def _short(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping | list | tuple):
        return "as given"
    return f"{value:g}" if isinstance(value, int | float) else str(value)
