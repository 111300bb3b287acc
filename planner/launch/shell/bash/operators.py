"""Operators of parameter expansion: parts of a value, and values that are changed."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

from planner.launch.shell.bash.arithmetic import computed
from planner.launch.shell.bash.patterns import (
    escaped,
    is_extended,
    replaced,
    without,
)
from planner.launch.shell.bash.state import Shell
from planner.launch.shell.values import PART, known

ALL = ("@", "*")
"""Names and indices of all elements. [text]"""


@dataclass(frozen=True)
class Part:
    """Part of a word.

    Attributes:
        text: The text. [text]
        quoted: True where quotes keep it whole. [-]
        split: True where it is the value of an expansion, which is split. [-]
    """

    text: str
    quoted: bool = False
    split: bool = False


Parts = list[Part | None]
"""Parts of a word; None where a word ends."""


class Operand(Protocol):
    """Reads the source between two places of an expansion."""

    def __call__(self, start: int, end: int, *, quoted: bool) -> Parts:
        """Parts of the source. [-]."""


@dataclass(frozen=True)
class Asked:
    """An expansion, and how to read what stands within it.

    Attributes:
        source: The expansion as a script writes it. [text]
        form: Its name, index and operator. [-]
        shell: State of the shell. [-]
        operand: Reads the source between two places. [-]
        in_quotes: True within double quotes. [-]
    """

    source: str
    form: re.Match[str]
    shell: Shell
    operand: Operand
    in_quotes: bool

    @property
    def name(self) -> str:
        """Name of the variable. [text]."""
        return self.form["plain"] or self.form["name"]

    @property
    def sign(self) -> str:
        """Operator; empty without any. [text]."""
        return self.form["sign"] or ""

    @property
    def index(self) -> str | None:
        """Source in brackets; None without any. [text]."""
        return self.form["index"]

    def rest(self, *, quoted: bool) -> Parts:
        """Parts behind the operator. [-]."""
        return self.operand(self.form.end(), len(self.source) - 1, quoted=quoted)

    def unsaid(self, value: str) -> str:
        """This expansion of a value that is unknown."""
        if not self.sign and not self.form["length"] and not self.form["through"]:
            return value
        cause = PART.search(value)
        names = cause[1] if cause else f"${{{self.name}}}"
        own = re.fullmatch(r"\$\{(\w+)\}", names)
        if own is None:
            return self.shell.unsaid(names)
        start = self.form.end("index") + 1 if self.index else self.form.end("name")
        before = self.source[: self.form.start("name")]
        return self.shell.unsaid(f"{before}{own[1]}{self.source[start:]}")

    def value(self, text: str) -> Parts:
        """Parts that are a value. [-]."""
        return [Part(text, quoted=self.in_quotes, split=not self.in_quotes)]


def joined(found: Iterable[Part | None]) -> str:
    """Text of the parts of a word that is not split. [text]."""
    return "".join(" " if part is None else part.text for part in found)


def as_pattern(found: Iterable[Part | None]) -> str:
    """Glob of the parts of a word. [text]."""
    each = (part for part in found if part is not None)
    return "".join(
        escaped(p.text) if p.quoted and known(p.text) else p.text for p in each
    )


def refuse(source: str, shell: Shell) -> NoReturn:
    """Refuse an expansion."""
    shell.refuse(source, "is an expansion that is not followed")


def sliced(asked: Asked, elements: list[str], places: Sequence[int] = ()) -> list[str]:
    """Elements of `${X:start:count}`.

    Args:
        asked: The expansion. [-]
        elements: Elements of an array, or characters. [text]
        places: Index of each element; empty where they lie without a gap. [1]
    """
    text = joined(asked.rest(quoted=True))
    first, colon, count = text.partition(":")
    start = _whole(first, asked)
    of_words = asked.name in ALL
    if of_words:
        elements = [asked.shell.zero or f"./{asked.shell.name}", *elements]
    places = places or range(len(elements))
    end = max(places, default=-1) + 1
    start = start + end if start < 0 else start
    length = _whole(count, asked) if colon else end
    several = of_words or asked.index in ALL
    if "?" in text or (length < 0 and (several or end + length < start)):
        refuse(asked.source, asked.shell)
    if start < 0:
        return []
    kept = [its for place, its in zip(places, elements, strict=True) if place >= start]
    return kept[:length] if length >= 0 else kept[: len(kept) + length]


def _whole(text: str, asked: Asked) -> int:
    value = computed(text, asked.shell)
    if not known(value):
        asked.shell.refuse(asked.source, "hangs on a variable that no file sets")
    return int(value)


def changed(asked: Asked, text: str) -> str:
    """Value after a pattern, or in other letters. [text]."""
    sign = asked.sign
    if not known(text):
        return asked.unsaid(text)
    if sign[0] in "^,":
        if joined(asked.rest(quoted=True)):
            refuse(asked.source, asked.shell)
        change: Callable[[str], str] = str.upper if sign[0] == "^" else str.lower
        return change(text) if len(sign) == 2 else change(text[:1]) + text[1:]
    if sign == "@":
        refuse(asked.source, asked.shell)
    if sign[0] == "/":
        return _replaced(asked, text)
    glob = as_pattern(asked.rest(quoted=False))
    return without(text, sign, _plain(asked, glob))


def _replaced(asked: Asked, text: str) -> str:
    start, end = asked.form.end(), len(asked.source) - 1
    slash = re.search(r"(?<!\\)/", asked.source[start:end])
    middle = start + slash.start() if slash else end
    glob = as_pattern(asked.operand(start, middle, quoted=False))
    other = joined(asked.operand(min(middle + 1, end), end, quoted=False))
    if re.search(r"[&\\]", other):
        # Versions of bash differ: since 5.2 this is what the pattern fits.
        refuse(asked.source, asked.shell)
    return replaced(text, asked.sign, _plain(asked, glob), other)


def _plain(asked: Asked, glob: str) -> str:
    if not known(glob) or is_extended(glob):
        asked.shell.refuse(asked.source, "has a pattern that is not followed")
    return glob
