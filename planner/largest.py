"""The largest whole number that still fits, by doubling and halving."""

from collections.abc import Callable


def largest(fits: Callable[[int], bool], *, most: int, start: int = 1) -> int:
    """Find where a monotone condition stops to hold.

    Doubles from a start until the condition fails, then halves the gap: about
    ``2 log2(n)`` questions.

    Args:
        fits: True up to some number, false above it. [-]
        most: The highest number of interest. [1]
        start: Where to begin; near the answer it saves questions. [1]

    Returns:
        The largest number from 1 to the highest that fits, 0 where none does. [1]
    """
    low, high = 0, max(1, min(start, most))
    while high <= most and fits(high):
        low, high = high, min(2 * high, most) if high < most else most + 1
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
