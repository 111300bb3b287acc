"""The largest whole number that still fits, by galloping and halving."""

from collections.abc import Callable


def largest(fits: Callable[[int], bool], *, most: int, start: int = 1) -> int:
    """Find the largest number for which a monotone condition holds.

    Gallops from a start in steps of 1, 2, 4 and so on until two numbers enclose the
    answer. Then halves the gap. An answer at distance d from the start takes about
    ``2 log2(d) + 2`` questions.

    Args:
        fits: True up to some number, false above it. [-]
        start: First number tried; a start near the answer saves questions. [1]

    Returns:
        The largest number from 1 to the highest that fits, 0 where none does. [1]
    """
    at, step = max(1, min(start, most)), 1
    if fits(at):
        low, high = at, at + 1
        while high <= most and fits(high):
            step *= 2
            low, high = high, min(high + step, most) if high < most else most + 1
    else:
        low, high = at - 1, at
        while low >= 1 and not fits(low):
            step *= 2
            low, high = max(low - step, 0), low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
