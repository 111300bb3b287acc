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

    Returns:
        The expression. [text]
    """
    star = ".*" if longest else ".*?"
    found, at = "", 0
    while at < len(pattern):
        char, end = pattern[at], pattern.find("]", at + 2)
        if char == "\\" and at + 1 < len(pattern):
            found, at = found + re.escape(pattern[at + 1]), at + 2
        elif char == "[" and end > 0:
            inside = pattern[at + 1 : end].replace("\\", "\\\\")
            negated = inside[0] in "!^"
            inside = inside[1:] if negated else inside
            inside = _CLASS.sub(lambda m: _CLASSES.get(m[1], ""), inside)
            found += f"[{'^' if negated else ''}{inside}]"
            at = end + 1
        else:
            found += {"*": star, "?": "."}.get(char, re.escape(char))
            at += 1
    return found


_CLASS = re.compile(r"\[:(\w+):")
_CLASSES = {"digit": "0-9", "alpha": "a-zA-Z", "alnum": "a-zA-Z0-9", "space": r"\s"}


def fits(text: str, pattern: str) -> bool:
    """Tell if a text fits a glob as a whole. [-]."""
    return re.fullmatch(expression(pattern), text, re.DOTALL) is not None


def without(text: str, sign: str, pattern: str) -> str:
    """Text without a start (#, ##) or an end (%, %%) that fits a glob.

    Args:
        text: The value. [text]
        sign: `#` or `%` for the shortest part, twice for the longest. [text]
        pattern: The glob. [text]

    Returns:
        The rest. [text]
    """
    lengths = range(len(text) + 1)
    for length in lengths if len(sign) == 1 else reversed(lengths):
        cut = len(text) - length
        part = text[:length] if sign[0] == "#" else text[cut:]
        if fits(part, pattern):
            return text[length:] if sign[0] == "#" else text[:cut]
    return text


def replaced(text: str, sign: str, pattern: str, other: str) -> str:
    """Text with what fits a glob replaced.

    Args:
        text: The value. [text]
        sign: `/` for the first, `//` for all, `/#` and `/%` at an end. [text]
        pattern: The glob. [text]
        other: What stands in its place. [text]

    Returns:
        The new text. [text]
    """
    if not pattern:
        return text
    before, after = {"/#": (r"\A", ""), "/%": ("", r"\Z")}.get(sign, ("", ""))
    found = re.compile(f"{before}{expression(pattern)}{after}", re.DOTALL)
    return found.sub(lambda _: other, text, count=0 if sign == "//" else 1)
