"""Characters that do something in place of being shown."""

import unicodedata

_BIDI = frozenset(
    map(chr, (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)
_STRANGE = frozenset({"Cc", "Cs", "Zl", "Zp"})


def is_strange(character: str) -> bool:
    """Tell if a character does something in place of being shown.

    Returns:
        True of control characters, halves of pairs, ends of lines and marks of
        direction.
    """
    return character in _BIDI or unicodedata.category(character) in _STRANGE


def strange_in(text: str) -> list[str]:
    """Characters of a text that do something in place of being shown, in order."""
    return [] if text.isprintable() else [c for c in text if is_strange(c)]
