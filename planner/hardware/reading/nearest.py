"""Names that are spelt nearly as a name that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches

MOST = 3
"""Names that are worth a look. [1]"""
LEAST = 0.6
"""Share of letters in common, from which two names are alike. [1]"""


def alike(name: str, known: Iterable[str], cutoff: float = LEAST) -> list[str]:
    """List the known names that are spelt most like a name."""
    return get_close_matches(name, list(known), n=MOST, cutoff=cutoff)


def nearest(name: str, known: Iterable[str], cutoff: float = LEAST) -> str | None:
    """Find the known name that is spelt most like a name.

    Returns:
        The name, None where no name is alike. [text]
    """
    return next(iter(alike(name, known, cutoff)), None)
