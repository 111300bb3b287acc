"""Parameter expansion of bash: `$X`, `${X:-d}`, `${X[i]}`, `${X%.*}` and the like."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from planner.launch.shell.bash.arithmetic import computed
from planner.launch.shell.bash.patterns import (
    escaped,
    is_extended,
    replaced,
    without,
)
from planner.launch.shell.bash.state import Shell
from planner.launch.shell.values import PART, known, plain

_FORM = re.compile(
    r"\$(?P<plain>\w+|[@*#?$!_-])$"
    r"|\$\{(?P<length>\#)?(?P<through>!)?(?P<name>\w+|[@*#?$!-])"
    r"(?:\[(?P<index>(?:[^][]|\[[^]]*\])*)\])?"
    r"(?P<sign>:?[-=+?]|\#\#?|%%?|//?(?:(?<!//)[#%])?|\^\^?|,,?|:|@)?",
    re.DOTALL,
)
_ALL = ("@", "*")
_OTHERS = ("$", "!", "-", "_", "RANDOM", "SECONDS", "LINENO", "PPID", "BASHPID")
"""Variables that the shell sets anew. [text]"""


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
class _Asked:
    """An expansion: its form, and how to read what stands within it."""

    source: str
    form: re.Match[str]
    shell: Shell
    operand: Operand
    in_quotes: bool

    @property
    def name(self) -> str:
        return self.form["plain"] or self.form["name"]

    @property
    def sign(self) -> str:
        return self.form["sign"] or ""

    @property
    def index(self) -> str | None:
        return self.form["index"]

    def rest(self, *, quoted: bool) -> Parts:
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


def parameter(source: str, shell: Shell, operand: Operand, *, in_quotes: bool) -> Parts:
    """Parts that an expansion stands for.

    Args:
        source: The expansion, as `$X` or `${X...}`. [text]
        shell: State of the shell. [-]
        operand: Reads the source behind a sign. [-]
        in_quotes: True within double quotes. [-]

    Returns:
        Parts; None between the elements of `"$@"`. [-]
    """
    form = _FORM.match(source)
    if form is None:
        shell.refuse(source, "is an expansion that is not followed")
    asked = _Asked(source, form, shell, operand, in_quotes)
    if form["through"] and form["index"] in _ALL:
        array = shell.array(asked.name)
        keys = [shell.unsaid(source)] if array is None else list(array)
        return _several(asked, keys)
    if form["through"]:
        return _through(asked)
    if asked.name in _ALL or asked.index in _ALL:
        return _all(asked)
    value = _value(asked)
    if form["length"]:
        text = value or ""
        return asked.value(str(len(text)) if known(text) else asked.unsaid(text))
    return _signed(asked, value)


def _through(asked: _Asked) -> Parts:
    """Value of the variable that another one names."""
    name = asked.shell.value(asked.name)
    if not isinstance(name, str) or not re.fullmatch(r"\w+", name):
        return asked.value(asked.unsaid(name if isinstance(name, str) else ""))
    source = f"${{{name}{asked.source[asked.form.end('name') :]}"
    return parameter(source, asked.shell, asked.operand, in_quotes=asked.in_quotes)


def _value(asked: _Asked) -> str | None:
    """Value of a single variable, element or parameter; None where it is unset."""
    shell, name = asked.shell, asked.name
    if asked.index is not None:
        return _element(asked)
    if name in shell.settled() or not (_special(shell, name) or name.isdigit()):
        value = shell.value(name)
        return value.get("0") if isinstance(value, dict) else value
    return _positional(shell, int(name)) if name.isdigit() else _special(shell, name)


def _special(shell: Shell, name: str) -> str | None:
    """Value of a parameter that the shell itself sets; None for another one."""
    if name in _OTHERS:
        return shell.unsaid("$(...)")
    if name == "#":
        return _count(shell)
    if name == "?":
        return str(shell.status) if shell.status is not None else shell.unsaid("$(?)")
    return f"./{shell.name}" if name == "BASH_SOURCE" else None


def _count(shell: Shell) -> str:
    known_ones = shell.bound or shell.record.arguments
    return str(len(shell.words)) if known_ones else shell.unsaid("$(#)")


def _positional(shell: Shell, at: int) -> str | None:
    if at == 0:
        return f"./{shell.name}"
    if at <= len(shell.words):
        return shell.words[at - 1]
    return None if shell.bound else shell.unsaid(f"${{{at}}}")


def _element(asked: _Asked) -> str | None:
    array = asked.shell.array(asked.name)
    if array is None:
        return asked.shell.unsaid(f"${{{asked.name}}}")
    index = index_of(asked.name, asked.index or "0", asked)
    if not known(index):
        return index
    if index.startswith("-") and array and asked.name not in asked.shell.maps:
        index = str(max(map(int, array)) + 1 + int(index))
    return array.get(index)


def index_of(name: str, source: str, asked: _Asked) -> str:
    """Index of an element: any text in a map, else arithmetic. [text]."""
    start = asked.form.start("index")
    text = joined(asked.operand(start, start + len(source), quoted=True))
    if name in asked.shell.maps:
        return text.strip("'\"")
    return computed(text, asked.shell)


def _all(asked: _Asked) -> Parts:
    """Elements of an array, or the positional parameters."""
    shell, form = asked.shell, asked.form
    elements = _elements(asked)
    if elements is None:
        source = f"${{{asked.name}}}" if asked.index else "$(@)"
        unsaid = shell.unsaid(source if not form["length"] else f"${{#{asked.name}}}")
        return [Part(unsaid, split=True)]
    if form["length"]:
        return asked.value(str(len(elements)))
    sign = asked.sign
    if sign in (":-", "-", ":+", "+", ":=", "=", ":?", "?"):
        empty = not elements or (sign[0] == ":" and not any(elements))
        if (sign[-1] == "+") == (not empty) or (empty and sign[-1] != "+"):
            return _default(asked)
        return _several(asked, elements)
    if sign == ":":
        return _several(asked, _slice(asked, elements))
    if sign:
        elements = [_changed(asked, each) for each in elements]
    return _several(asked, elements)


def _elements(asked: _Asked) -> list[str] | None:
    shell = asked.shell
    if asked.index is not None:
        array = shell.array(asked.name)
        return None if array is None else list(array.values())
    if not shell.bound and not shell.record.arguments:
        return None
    return list(shell.words)


def _several(asked: _Asked, elements: Sequence[str]) -> Parts:
    star = (asked.index or asked.name) == "*"
    if star and asked.in_quotes:
        shell = asked.shell
        given = shell.value("IFS") if "IFS" in shell.settled() else " "
        between = given[:1] if isinstance(given, str) else " "
        return [Part(between.join(elements), quoted=True)]
    found: Parts = []
    for element in elements:
        found += [None] if found else []
        found += asked.value(element)
    return found


def _signed(asked: _Asked, value: str | None) -> Parts:
    sign = asked.sign
    if not sign:
        return asked.value(value or "")
    if sign[-1] in "-=+?" and sign not in ("//", "/"):
        return _default_or(asked, value)
    text = value or ""
    if sign == ":":
        its = _slice(asked, list(text)) if known(text) else None
        return asked.value(asked.unsaid(text) if its is None else "".join(its))
    return asked.value(_changed(asked, text))


def _default_or(asked: _Asked, value: str | None) -> Parts:
    """Value of `${X:-d}` and its kin; an unset variable takes the default.

    What nobody has set has the default that the script gives it; whether it is set
    at all is asked for by `+`.
    """
    sign, shell = asked.sign, asked.shell
    there = _is_there(asked, value)
    if sign[-1] == "+":
        if there is None:
            source = asked.unsaid(value or "")
            there = shell.choose(plain(source))
        return _default(asked) if there else asked.value("")
    if there or (there is None and value and not _nobody(asked, value)):
        return asked.value(value or "")
    if sign[-1] == "?":
        return asked.value(value or "")
    found = _default(asked)
    if there is None and value and not joined(found):
        shell.record.blanks.setdefault(asked.name)
        if asked.name in shell.record.open:
            return asked.value(value)
    if sign[-1] == "=":
        shell.assign(asked.name, joined(found))
    return found


def _nobody(asked: _Asked, value: str) -> bool:
    """Tell if a value is that of the variable itself, which nobody sets."""
    part = PART.fullmatch(value)
    return part is not None and part[1] == f"${{{asked.name}}}"


def _is_there(asked: _Asked, value: str | None) -> bool | None:
    """Tell if a variable is set, and not empty with a colon; None where unknown."""
    if value is None:
        return False
    if asked.sign[0] != ":":
        return None if _nobody(asked, value) else True
    rest = PART.sub("", value)
    return bool(rest) if known(value) or rest else None


def _default(asked: _Asked) -> Parts:
    """Words behind `:-` or `:+`, which are split where nothing quotes them."""
    found = asked.rest(quoted=asked.in_quotes)
    if asked.in_quotes:
        return found or [Part("", quoted=True)]
    return [p and replace(p, split=not p.quoted) for p in found]


def _slice(asked: _Asked, elements: list[str]) -> list[str]:
    """Elements of `${X:start:count}`."""
    text = joined(asked.rest(quoted=True))
    first, colon, count = text.partition(":")
    start = _whole(first, asked)
    of_words = asked.name in _ALL
    if of_words:
        elements = [f"./{asked.shell.name}", *elements]
    start = start + len(elements) if start < 0 else start
    if not colon:
        return elements[start:]
    length = _whole(count, asked)
    return elements[start : start + length if length >= 0 else length]


def _whole(text: str, asked: _Asked) -> int:
    value = computed(text, asked.shell)
    if not known(value):
        asked.shell.refuse(asked.source, "hangs on a variable that no file sets")
    return int(value)


def _changed(asked: _Asked, text: str) -> str:
    """Value after a pattern, or in other letters."""
    sign = asked.sign
    if not known(text):
        return asked.unsaid(text)
    if sign[0] in "^,":
        change: Callable[[str], str] = str.upper if sign[0] == "^" else str.lower
        return change(text) if len(sign) == 2 else change(text[:1]) + text[1:]
    if sign == "@":
        asked.shell.refuse(asked.source, "is an expansion that is not followed")
    if sign[0] == "/":
        return _replaced(asked, text)
    glob = as_pattern(asked.rest(quoted=False))
    return without(text, sign, _plain(asked, glob))


def _replaced(asked: _Asked, text: str) -> str:
    start, end = asked.form.end(), len(asked.source) - 1
    slash = re.search(r"(?<!\\)/", asked.source[start:end])
    middle = start + slash.start() if slash else end
    glob = as_pattern(asked.operand(start, middle, quoted=False))
    other = joined(asked.operand(min(middle + 1, end), end, quoted=False))
    return replaced(text, asked.sign, _plain(asked, glob), other)


def _plain(asked: _Asked, glob: str) -> str:
    if not known(glob) or is_extended(glob):
        asked.shell.refuse(asked.source, "has a pattern that is not followed")
    return glob
