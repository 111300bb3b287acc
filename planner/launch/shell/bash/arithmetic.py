"""Arithmetic of bash: 64-bit whole numbers, C's operators, variables by name."""

import operator
import re
import string
from collections.abc import Callable
from typing import NoReturn

from planner.launch.shell.bash.state import FAILED, ExitError, Shell
from planner.launch.shell.values import PART, known, plain

_TOKEN = re.compile(
    rf"\s*(?:(?P<name>[A-Za-z_]\w*)(?P<index>\[[^][]*\])?|(?P<part>(?:\d+#)?{PART.pattern})"
    r"|(?P<number>\d[\w#@]*)"
    r"|(?P<sign>\*\*|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[-+*/%<>=!~&|^?:,()]))"
)
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Operators of two sides, the loosest first. [text]"""
_HALF = 1 << 63
_DIGITS = string.digits + string.ascii_lowercase + string.ascii_uppercase + "@_"
_ONE_CASE = 36
"""Largest base whose digits are letters of any case. [1]"""
Number = int | None
"""A whole number; None where it is unknown."""


def computed(text: str, shell: Shell) -> str:
    """Value of an arithmetic expression.

    Returns:
        Digits; the expression itself as an unknown value where a variable of it is
        unknown. [text]
    """
    reader = _Reader(text, shell)
    value = reader.whole()
    if value is not None:
        return str(value)
    source = plain(reader.shown())
    return shell.unsaid(f"$(({' '.join(source.split())}))")


class _Reader:
    """Reads an expression from left to right.

    Attributes:
        asleep: Branches around the place that are not taken. [1]
        parts: Sources of unknown variables, by name. [text]
    """

    def __init__(self, text: str, shell: Shell, depth: int = 0) -> None:
        self.text, self.shell, self.depth = text, shell, depth
        self.tokens = list(self._tokens())
        self.at, self.asleep = 0, 0
        self.parts: dict[str, str] = {}

    def _tokens(self) -> list[re.Match[str]]:
        found, at, text = list[re.Match[str]](), 0, self.text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self._refuse()
            found.append(match)
            at = match.end()
        return found

    def _refuse(self, why: str = "is no arithmetic of bash") -> NoReturn:
        self.shell.refuse(f"$(({plain(self.text)}))", why, "whole numbers")

    def shown(self) -> str:
        """Expression with the sources of unknown variables in place of their names."""

        def source(match: re.Match[str]) -> str:
            return self.parts.get(match[0], match[0])

        return re.sub(r"(?<![\w$\{])[A-Za-z_]\w*", source, self.text)

    def whole(self) -> Number:
        """Value of the whole expression; 0 of an empty one."""
        if not self.tokens:
            return 0
        value = self._comma()
        if self.at < len(self.tokens):
            self._refuse()
        return value

    def _sign(self, *signs: str) -> str:
        """Take the next token where it is one of *signs*."""
        sign = self.tokens[self.at]["sign"] if self.at < len(self.tokens) else None
        if sign not in signs:
            return ""
        self.at += 1
        return sign

    def _comma(self) -> Number:
        value = self._assignment()
        while self._sign(","):
            value = self._assignment()
        return value

    def _assignment(self) -> Number:
        start = self.at
        token = self.tokens[start] if start < len(self.tokens) else None
        if token is not None and token["name"]:
            self.at += 1
            sign = self._sign("=", *(f"{o}=" for o in _APPLY if f"{o}=" not in _APPLY))
            if sign:
                value = self._assignment()
                if sign != "=":
                    value = self._applied(sign[:-1], self._variable(token), value)
                return self._assign(token, value)
        self.at = start
        return self._choice()

    def _assign(self, token: re.Match[str], value: Number) -> Number:
        if self.asleep:
            return value
        name = token["name"]
        text = str(value) if value is not None else self.shell.unsaid(f"$(({name}))")
        if token["index"]:
            index = str(self._inner(token["index"][1:-1]))
            array = self.shell.array(name)
            self.shell.assign(name, {**(array or {}), index: text})
        else:
            self.shell.assign(name, text)
        return value

    def _choice(self) -> Number:
        test = self._level(0)
        if not self._sign("?"):
            return test
        yes = self._skipped(self._comma, unless=test != 0)
        if not self._sign(":"):
            self._refuse()
        no = self._skipped(self._choice, unless=test == 0 or test is None)
        if test is None:
            return None
        return yes if test else no

    def _skipped(self, part: Callable[[], Number], *, unless: bool) -> Number:
        """Read a part whose assignments count only where it is evaluated."""
        self.asleep += not unless
        value = part()
        self.asleep -= not unless
        return value

    def _level(self, level: int) -> Number:
        if level == len(_LEVELS):
            return self._power()
        left = self._level(level + 1)
        while sign := self._sign(*_LEVELS[level]):
            if sign in ("&&", "||"):
                left = self._logic(sign, left, level)
            else:
                left = self._applied(sign, left, self._level(level + 1))
        return left

    def _logic(self, sign: str, left: Number, level: int) -> Number:
        decided = left is not None and bool(left) == (sign == "||")
        right = self._skipped(lambda: self._level(level + 1), unless=not decided)
        if decided:
            return int(sign == "||")
        return None if left is None or right is None else int(bool(right))

    def _applied(self, sign: str, left: Number, right: Number) -> Number:
        if left is None or right is None or self.asleep:
            return None if left is None or right is None else 0
        if sign in ("/", "%") and right == 0:
            self._refuse("divides by 0")
        if sign == "**" and (right < 0 or right > 64):
            self._refuse("has an exponent below 0 or over 64")
        return _wrapped(_APPLY[sign](left, right))

    def _power(self) -> Number:
        base = self._unary()
        if not self._sign("**"):
            return base
        return self._applied("**", base, self._power())

    def _unary(self) -> Number:
        sign = self._sign("-", "+", "!", "~", "++", "--")
        if not sign:
            return self._primary()
        if sign in ("++", "--"):
            token = self.tokens[self.at] if self.at < len(self.tokens) else None
            if token is not None and token["name"]:
                self.at += 1
                return self._assign(token, self._stepped(token, sign))
        value = self._unary()
        if value is None:
            return None
        its = {"-": -value, "+": value, "!": int(not value), "~": ~value}
        return its.get(sign, value)

    def _stepped(self, token: re.Match[str], sign: str) -> Number:
        return self._applied(sign[0], self._variable(token), 1)

    def _primary(self) -> Number:
        if self._sign("("):
            value = self._comma()
            if not self._sign(")"):
                self._refuse()
            return value
        if self.at >= len(self.tokens):
            self._refuse()
        token = self.tokens[self.at]
        self.at += 1
        if token["number"]:
            return self._number(token["number"])
        if token["part"]:
            return None
        if not token["name"]:
            self._refuse()
        value = self._variable(token)
        if sign := self._sign("++", "--"):
            self._assign(token, self._applied(sign[0], value, 1))
        return value

    def _number(self, text: str) -> int:
        """Read a number: 0x is hexadecimal, a leading 0 octal, `B#` another base."""
        base, _, digits = text.rpartition("#")
        try:
            if base:
                return _wrapped(_in_base(digits, base))
            if text[:2] in ("0x", "0X"):
                return _wrapped(_in_base(text[2:] or "0", "16"))
            return _wrapped(_in_base(text, "8" if text[0] == "0" else "10"))
        except ValueError:
            why = "is no octal number" if text.isdigit() else "is no number"
            self.shell.refuse(f"$(({plain(self.text)}))", f"{text} {why}")

    def _variable(self, token: re.Match[str]) -> Number:
        name = token["name"]
        given = self.shell.value(name)
        if given is None and "nounset" in self.shell.options and not self.asleep:
            raise ExitError(FAILED)
        value = given or ""
        if isinstance(value, dict) or token["index"]:
            index = token["index"][1:-1] if token["index"] else "0"
            array = self.shell.counted(name)
            if array is None:
                return None
            value = array.get(str(self._inner(index)), "")
        if not known(value):
            self.parts[name] = value
            return None
        return self._inner(value)

    def _inner(self, text: str) -> Number:
        """Value of a variable, which is an expression itself."""
        if re.fullmatch(r"-?[1-9]\d*|0", text):
            return int(text)
        if self.depth > 32:
            self._refuse("has variables that name each other")
        inner = _Reader(text, self.shell, self.depth + 1)
        value = inner.whole()
        self.parts |= inner.parts
        return value


def _in_base(digits: str, base: str) -> int:
    """Number in a base of 2 to 64; case counts above 36.

    Raises:
        ValueError: The base or a digit is none.
    """
    by = int(base)
    every = _DIGITS[:by]
    if base[0] == "0" or not 2 <= by <= len(_DIGITS) or not digits:
        raise ValueError(base)
    value = 0
    for digit in digits if by > _ONE_CASE else digits.lower():
        value = value * by + every.index(digit)
    return value


def _wrapped(value: int) -> int:
    """Number of 64 bits that a result becomes."""
    return (value + _HALF) % (2 * _HALF) - _HALF


def _divided(left: int, right: int) -> int:
    """Quotient towards zero, as in C."""
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


_APPLY: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": lambda a, b: a - b * _divided(a, b),
    "**": pow,
    "<<": lambda a, b: a << (b % 64),
    ">>": lambda a, b: a >> (b % 64),
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
}
