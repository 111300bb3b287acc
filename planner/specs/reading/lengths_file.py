"""Lengths of texts from a file: a number in each line, or JSON with its length."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from planner.errors import BadInputError
from planner.hardware.reading.documents import DocumentError, read_text
from planner.specs.lengths import MOST_BARS, LengthShare

FIELD = "training.lengths.file"
LARGEST = 1 << 27
"""Characters of a file of lengths; ten million texts have about 60 million. [1]"""
FORMS = 'a whole number of tokens in each line, or JSON with one: {"length": 512}'


def read_lengths(path: Path) -> tuple[LengthShare, ...]:
    """Read the lengths of a data set's texts.

    More different lengths than a histogram has are rounded up to as many.

    Args:
        path: File with one text in each line; empty lines count for nothing. [-]
    """
    try:
        lines = read_text(path, most=LARGEST).splitlines()
    except DocumentError as error:
        raise _refused(error.problem, path) from error
    counts = Counter(_lengths(lines, path))
    if not counts:
        raise _refused("has no lengths", path)
    width = 1 if len(counts) <= MOST_BARS else -(-max(counts) // MOST_BARS)
    bars: Counter[int] = Counter()
    for length, count in counts.items():
        bars[-(-length // width) * width] += count
    total = bars.total()
    return tuple(
        LengthShare(length=length, share=count / total)
        for length, count in sorted(bars.items())
    )


def _lengths(lines: list[str], path: Path) -> Iterator[int]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _length(line.strip(), number, path)


def _length(text: str, number: int, path: Path) -> int:
    """Length that a line says. [token]."""
    try:
        said = json.loads(text)
    except ValueError:
        said = None
    length = said.get("length") if isinstance(said, dict) else said
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise _refused(f"line {number} has no length: {text[:40]}", path)
    return length


def _refused(why: str, path: Path) -> BadInputError:
    return BadInputError(why, field=FIELD, value=str(path), allowed=FORMS)
