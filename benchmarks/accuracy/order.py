"""Pairs of layouts in the measured order, by measured difference."""

from collections.abc import Iterable
from itertools import pairwise

from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.ranking import REPEATS, orders

DIFFERENCES = (REPEATS, 0.05, 0.1, 0.2, float("inf"))
"""Ends of the classes of measured differences. [1]"""


def by_difference(outcomes: Iterable[Outcome]) -> list[tuple[str, int, float | None]]:
    """Shares of pairs that are predicted in the measured order.

    Args:
        outcomes: Rows that count and are priced, shape (rows,). [-]

    Returns:
        For each class its name, the number of pairs and the share, shape (4,). [1]
    """
    found = orders(outcomes)
    table = []
    for low, high in pairwise(DIFFERENCES):
        right = [one.agrees > 0 for one in found if low < one.difference <= high]
        share = sum(right) / len(right) if right else None
        table.append((_named(low, high), len(right), share))
    return table


def _named(low: float, high: float) -> str:
    top = f" to {high:.0%}" if high < float("inf") else ""
    return f"over {low:.0%}{top}"
