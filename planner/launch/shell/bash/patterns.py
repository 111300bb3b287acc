"""Patterns of bash: globs as regular expressions, and what ${...} does with them."""

import re

_EXTENDED = re.compile(r"[@?*+!]\(")


def is_extended(pattern: str) -> bool:
    """Tell if a pattern has the alternatives of `extglob`. [-]."""
    return bool(_EXTENDED.search(pattern))


def escaped(text: str) -> str:
    """Pattern that a text alone fits. [text]."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", text)


def expression(pattern: str, *, longest: bool = True) -> str:
    """Regular expression of a glob.

    Args:
        pattern: The glob; a backslash quotes the next character. [text]
        longest: False where stars take as little as they can. [-]
    """
    star = ".*" if longest else ".*?"
    found, at = "", 0
    while at < len(pattern):
        char, bracket = pattern[at], _BRACKET.match(pattern, at)
        if char == "\\" and at + 1 < len(pattern):
            found, at = found + re.escape(pattern[at + 1]), at + 2
        elif bracket:
            found, at = found + _set(bracket), bracket.end()
        else:
            found += {"*": star, "?": "."}.get(char, re.escape(char))
            at += 1
    return found


def _set(bracket: re.Match[str]) -> str:
    """Regular expression of a set of characters."""
    inside = re.sub(r"\\(.)", r"\1", bracket["inside"])
    inside = re.sub(r"([\\\[\]^&~|])", r"\\\1", _CLASS.sub(_characters, inside))
    return f"[{'^' if bracket['no'] else ''}{inside}]"


def _characters(match: re.Match[str]) -> str:
    return _CLASSES[match[1]]


_CLASSES = {
    "digit": "0-9",
    "alpha": "a-zA-Z",
    "alnum": "a-zA-Z0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
    "space": " \t\n\r\f\v",
    "blank": " \t",
    "word": "a-zA-Z0-9_",
}
_CLASS = re.compile(rf"\[:({'|'.join(_CLASSES)}):\]")
_BRACKET = re.compile(
    r"\[(?P<no>[!^])?(?P<inside>\]?(?:\[:\w+:\]|\\.|[^]\\])*)\]", re.DOTALL
)


def fits(text: str, pattern: str) -> bool:
    """Tell if a text fits a glob as a whole. [-]."""
    return re.fullmatch(expression(pattern), text, re.DOTALL) is not None


def without(text: str, sign: str, pattern: str) -> str:
    """Text without a start (#, ##) or an end (%, %%) that fits a glob."""
    lengths = range(len(text) + 1)
    for length in lengths if len(sign) == 1 else reversed(lengths):
        cut = len(text) - length
        part = text[:length] if sign[0] == "#" else text[cut:]
        if fits(part, pattern):
            return text[length:] if sign[0] == "#" else text[:cut]
    return text


def replaced(text: str, sign: str, pattern: str, other: str) -> str:
    """Text with what fits a glob replaced."""
    if not pattern:
        return {"/#": other + text, "/%": text + other}.get(sign, text)
    before, after = {"/#": (r"\A", ""), "/%": ("", r"\Z")}.get(sign, ("", ""))
    found = re.compile(f"{before}{expression(pattern)}{after}", re.DOTALL)
    every = sign == "//" and text

    def other_or(match: re.Match[str]) -> str:
        return other if match[0] or not every else ""

    return found.sub(other_or, text, count=0 if every else 1)


def pythonic(expression: str) -> str:
    """Regular expression of POSIX as Python writes it; sets differ."""
    found, at = "", 0
    while at < len(expression):
        bracket = _PLAIN_BRACKET.match(expression, at)
        if expression[at] == "\\":
            found, at = found + expression[at : at + 2], at + 2
        elif bracket:
            found, at = found + _set(bracket), bracket.end()
        else:
            found, at = found + expression[at], at + 1
    return found


_PLAIN_BRACKET = re.compile(
    r"\[(?P<no>\^)?(?P<inside>\]?(?:\[:\w+:\]|[^]])*)\]", re.DOTALL
)
