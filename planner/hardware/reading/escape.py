"""Escapes a user's text, one function for each language, so that it stays text.

Templates and writers put values into shell, YAML, Markdown and comments; HTML is
escaped by jinja2 itself, Python and JSON by ``repr`` and ``json.dumps``.
"""

import re
import shlex
from collections.abc import Sequence

import yaml

from planner.hardware.reading.characters import strange_in

_PLAIN = re.compile(r"[\w@%+=:,./-]*", re.ASCII)
_MARKDOWN = re.compile(r"([\\`<>|*\[\]])")
_BYTES = range(0xDC80, 0xDD00)
"""Characters in which Python holds the bytes of a name that is no UTF-8. [1]"""
WIDTH = 88
"""Columns of YAML that is written. [1]"""


def shown(text: object, keep: str = "") -> str:
    """Text for a terminal: no character moves the cursor, hides or turns the line.

    Returns:
        The text, other strange characters as Python spells them. [text]
    """
    plain = str(text)
    strange = set(strange_in(plain)).difference(keep)
    return plain.translate({ord(c): _spelt(c) for c in strange}) if strange else plain


def comment(text: object) -> str:
    """Text for one line of a comment in shell, YAML or Python, which ends with it."""
    return shown(" ".join(str(text).split()))


def shell_words(words: Sequence[object]) -> str:
    """Words of a command as a shell reads them back."""
    return shlex.join(str(word) for word in words)


def shell_default(name: str, text: object) -> str:
    """A shell's value of a variable, or a default that is taken as it stands.

    Returns:
        ``"${NAME:-text}"`` for plain text; else only the text inside is quoted, as an
        assignment allows. [text]
    """
    default = shown(text)
    if _PLAIN.fullmatch(default):
        return f'"${{{name}:-{default}}}"'
    return f"${{{name}:-{shlex.quote(default)}}}"


def yaml_text(
    value: object, head: Sequence[object] = (), *, short_in_one_line: bool = False
) -> str:
    """A value as YAML below comments."""
    above = "".join(f"# {shown(line)}".rstrip() + "\n" for line in head)
    flow = None if short_in_one_line else False
    return above + yaml.safe_dump(
        value, sort_keys=False, width=WIDTH, default_flow_style=flow
    )


def markdown(text: object) -> str:
    """Text in Markdown, in a table too: no element, link or column begins in it."""
    return _MARKDOWN.sub(r"\\\1", shown(" ".join(str(text).split())))


def _spelt(character: str) -> str:
    if ord(character) in _BYTES:
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()
