"""Long steps as a start, a block that repeats, and an end: found in short steps."""

from dataclasses import dataclass
from math import lcm

import numpy as np
from numpy.typing import NDArray

from planner.schedules.order import MOST_OPERATIONS, operation_count

Ints = NDArray[np.int64]
UNFOLDED = "gpipe"
"""Schedule whose step has no middle: all forwards come before all backwards."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Place of the block in the table of a short step, and its repeats in the whole.

    The whole step's table is the short step's with ``repeats - 1`` more copies of
    rows ``start`` to ``stop`` behind them. In each copy, and in all
    that follows, references (the source aside) are ``rows`` later than before.
    """

    start: int
    """First row of the block. [1]"""
    stop: int
    """First row behind the block. [1]"""
    repeats: int
    """Repeats of the block in the whole step. [1]"""
    times: Ints
    """Number of times that each node's duration counts. [1], shape (nodes,)"""
    cut: Ints
    """Nodes before the block that the block, or all that follows, waits for; ``rows``
    later, those before the end. [1], shape (cut,)"""

    @property
    def rows(self) -> int:
        """Rows of the block. [1]."""
        return self.stop - self.start

    def weights(self) -> Ints:
        """Repeats of each node of the short step in the whole step.

        Returns:
            Repeats for the block, 1 for all others. [1], shape (nodes,)
        """
        weights = np.ones_like(self.times)
        weights[self.start : self.stop] = self.repeats
        return weights


def period_of(schedule: str, p: int, v: int, every: int | None) -> int:
    """Micro-batches after which the order of operations repeats.

    One micro-batch; a group of p where chunks interleave; one each way in dualpipe;
    and a whole number of groups where gradients travel after every group.

    Args:
        every: Micro-batches of one reduce-scatter of a virtual stage; None where
            gradients travel once a step, or at the end of the step. [1]
    """
    ways = 2 if schedule == "dualpipe" else 1
    groups = p if schedule == "interleaved" and v > 1 else 1
    return ways * lcm(groups, every or 1)


def short_step(schedule: str, p: int, v: int, m: int, every: int | None) -> int:
    """Micro-batches of the short step that starts, repeats and ends as a long one.

    The remainder of m after whole periods, and enough periods. In their middle the
    pipeline has filled, and has not begun to drain.

    Args:
        schedule: One of ``SCHEDULES``. [text]
        every: Micro-batches of one reduce-scatter, as in ``period_of``. [1]
    """
    if schedule == UNFOLDED:
        return m
    period = period_of(schedule, p, v, every)
    shortest = 4 * p + 3 * period
    return m if m <= shortest + period else shortest + (m - shortest) % period


def squarings(cut: int, repeats: int) -> int:
    """Choose how often the block's matrix is squared before it is applied in turn.

    Returns:
        The b of the least ``b cut^3 + (b + repeats / 2^b) cut^2``. [1]
    """
    exponents = range(repeats.bit_length())
    return min(exponents, key=lambda b: b * cut + b + (repeats >> b))


NODE = 4
"""Cost of a node, in sums of two paths: lookups, and its share of memory. [1]"""


def pays(p: int, v: int, m: int, short: int, period: int) -> bool:
    """Say if the powers of the block take less time than the whole step.

    A cut has two nodes a rank: its last operation, and one result on its way.

    Returns:
        True where folding is estimated to pay. [bool]
    """
    cut, repeats = 2 * p, 1 + (m - short) // period
    most = squarings(cut, repeats)
    sums = (most * cut + most + (repeats >> most)) * cut**2
    nodes = operation_count(p, v, short) + cut * operation_count(p, v, period)
    return sums + NODE * nodes < NODE * operation_count(p, v, m)


def folds(schedule: str, p: int, v: int, m: int, every: int | None) -> bool:
    """Say if a step is short, or has a short step that stands for it.

    Args:
        schedule: One of ``SCHEDULES``. [text]
        every: Micro-batches of one reduce-scatter, as in ``period_of``. [1]

    Returns:
        True where ``MOST_OPERATIONS`` are enough for the step, or for the short
        step and the one period more that shows the block. [bool]
    """
    short = short_step(schedule, p, v, m, every)
    period = 0 if short == m else period_of(schedule, p, v, every)
    return operation_count(p, v, short + period) <= MOST_OPERATIONS


def inserted(table: Ints, longer: Ints, start: int) -> int:
    """Check that one table is another with a block once more, from a row on.

    Args:
        table: Rows of a step, its block from ``start`` on. [1], shape (nodes, 4)
        longer: Rows of a step of one more period. [1], shape (more nodes, 4)

    Returns:
        Rows of the block; 0 where the longer table is anything else. [1]
    """
    rows = len(longer) - len(table)
    behind = table[start:]
    if rows <= 0 or not np.array_equal(longer[: start + rows], table[: start + rows]):
        return 0
    # The source ends at 0, so nothing waits for it; on the own rank it is alone.
    at_source = behind[:, 1] == 0
    if not behind[:, 0].all() or behind[at_source, 2].any():
        return 0
    later = behind.copy()
    later[:, :2] += rows * (behind[:, :2] > 0)
    return rows if np.array_equal(longer[start + rows :], later) else 0


def cut_before(table: Ints, start: int, stop: int) -> Ints:
    """Nodes before a block that the block, its copies or what follows waits for.

    Args:
        table: Rows of a short step. [1], shape (nodes, 4)
    """
    rows = stop - start
    inside, behind = table[start:stop, :2], table[stop:, :2]
    inputs = {*inside[inside < start].tolist()}
    inputs |= {node - rows for node in behind[behind < stop].tolist() if node}
    for node in sorted(inputs - {0}):
        inputs.update(range(node, start, rows))
    return np.array(sorted(inputs - {0}), dtype=np.int64)
