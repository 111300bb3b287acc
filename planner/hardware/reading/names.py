r"""Text that a user gives a thing: one pattern for names, one for lines of words.

A name goes into scripts, file heads, pages and messages. So a name holds nothing that
a shell, YAML, HTML or a terminal takes for its own. It has letters and digits of any
script, spaces, and a few marks. A line may hold any mark. A line has no character that
moves the cursor, ends the line or turns the direction of writing. Those are the Unicode
categories Cc, Cs, Zl and Zp, and the marks of UAX #9. The marks make text read as
something else: CVE-2021-42574.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from planner.hardware.reading.characters import strange_in

LONGEST_NAME = 128
"""Characters of a name; the longest that ships has 68. [1]"""
LONGEST_LINE = 4096
"""Characters of a path or a source, as PATH_MAX of Linux. [1]"""
MARKS = "._,:+=@#%()[]/-"
"""Marks that a name may hold beside letters, digits and spaces. [text]"""
_NAME = re.compile(rf"[^\W_](?:[\w {re.escape(MARKS)}]*[\w{re.escape(MARKS)}])?")


def plain_name(text: str) -> str:
    """Return a text if it is a name.

    Raises:
        ValueError: The text is empty, too long, or holds a character no name holds.
    """
    if len(text) <= LONGEST_NAME and _NAME.fullmatch(text):
        return text
    raise ValueError(
        f"{_shown(text)} is no name: {_trouble(text)}; a name has 1 to {LONGEST_NAME} "
        f"letters, digits, spaces and {' '.join(MARKS)}, begins with a letter or a "
        f"digit and does not end with a space; nearest: {name_like(text)}"
    )


def one_line(text: str) -> str:
    """Return a path, a source or a note if it is one line that can be shown.

    Raises:
        ValueError: The text is too long, or holds the end of a line or another
            character that is not shown.
    """
    if len(text) > LONGEST_LINE:
        raise ValueError(f"has {len(text)} characters; at most {LONGEST_LINE}")
    if strange_in(text):
        raise ValueError(f"{_shown(text)} is not one line: {_trouble(text)}")
    return text


def name_like(text: str, otherwise: str = "unnamed") -> str:
    """The nearest name to a text, such as a folder's name.

    Returns:
        A name: other characters become hyphens, and excess length is cut off. [text]
    """
    if len(text) <= LONGEST_NAME and _NAME.fullmatch(text):
        return text
    kept = re.sub(rf"[^\w {re.escape(MARKS)}]+", "-", text[: 4 * LONGEST_NAME])
    kept = re.sub(r"^[\W_]+", "", kept)[:LONGEST_NAME].rstrip(" -")
    return kept or otherwise


def _shown(text: str) -> str:
    """The text in quotes, every strange character spelt out."""
    return ascii(text[:40]) + (" ..." if len(text) > 40 else "")


def _trouble(text: str) -> str:
    """The first thing that is wrong with a text."""
    strange = next(iter(strange_in(text)), None)
    if strange is not None:
        return f"it holds U+{ord(strange):04X}, which is not shown"
    if len(text) > LONGEST_NAME:
        return f"it has {len(text)} characters"
    odd = next((c for c in text if not (c.isalnum() or c in " _" + MARKS)), None)
    return f"it holds {odd}" if odd else "it is empty or begins or ends with a mark"


Name = Annotated[
    str,
    AfterValidator(plain_name),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^[\p{L}\p{N}](.*\S)?$",
            "minLength": 1,
            "maxLength": LONGEST_NAME,
        }
    ),
]
"""Name that a user gives: one line that means nothing to any language. [text]"""
Line = Annotated[str, AfterValidator(one_line)]
"""A path, a source or a note: one line that a terminal shows as it is. [text]"""
