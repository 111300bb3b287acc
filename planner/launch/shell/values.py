"""Values of a shell in which a part may be unknown, such as a variable nobody set."""

import re
from collections.abc import Iterable
from typing import NoReturn

from planner.errors import BadInputError

QUOTED, LOOSE, END = "\ue000", "\ue001", "\ue002"
"""Marks around an unknown part: one word, any number of words, its end. [text]"""
PART = re.compile(f"[{QUOTED}{LOOSE}]([^{END}]*){END}")
"""An unknown part, and its source as a script writes it. [text]"""
HOST = "$(host "
"""Start of the source of a host's name, which is one word. [text]"""
_COMMAND = re.compile(r"\$\((?!\()|`")
_NAME = re.compile(r"\$\{?[#!]?(\w+)")


def unknown(source: str) -> str:
    """Value of which its source alone is known."""
    return f"{QUOTED}{plain(source)}{END}"


def known(*texts: str) -> bool:
    """Tell if values have no unknown part. [-]."""
    return not any(PART.search(text) for text in texts)


def plain(text: str) -> str:
    """Value as a script writes it, without marks. [text]."""
    return PART.sub(r"\1", text)


def loose(text: str) -> str:
    """Value of one unknown part, which may be any number of words. [text]."""
    return PART.sub(rf"{LOOSE}\1{END}", text)


def unset(text: str) -> tuple[str, ...]:
    """Variables and commands in words, whose values no file holds.

    Args:
        text: Words of a launcher; unknown parts stand as a script writes them. [text]
    """
    command = _COMMAND.search(text)
    before = text[: command.start()] if command else text
    names = [match.group(1) for match in _NAME.finditer(before)]
    return tuple(dict.fromkeys([*names, *(["$(...)"] if command else [])]))


def fill_words(names: Iterable[str]) -> str:
    """Options by which a user fills variables that no file sets."""
    plain = [name for name in names if not name.startswith("$(")]
    each = [f"--env {name}=VALUE" for name in plain]
    return " ".join(each) or "a script with the value in place of the command"


class UnsetError(BadInputError):
    """A setting whose value no file holds.

    Attributes:
        names: Variables that it depends on. [text]
    """

    names: tuple[str, ...] = ()


def refuse_unset(field: str, value: str, *, file: str) -> NoReturn:
    """Refuse a setting whose value the files do not hold.

    Raises:
        BadInputError: Always; names the variables, and the options that fill them.
    """
    names = unset(value)
    error = UnsetError(
        "is set by no file",
        file=file,
        field=field,
        value=value,
        allowed=fill_words(names),
    )
    error.names = names
    raise error
