"""Tokens of a micro-batch's rows where texts differ in length.

Rows are padded to the longest text of their micro-batch, and ranks that wait for each
other last as long as the longest row among them.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from planner.cost.meshes import Ints, Meshes, Number
from planner.cost.pricing import Pricing
from planner.specs.lengths import Draws

Grid = npt.NDArray[np.float64]
CELLS = 128
"""Parts of the longest length, in whole numbers of which lengths are summed. [1]"""
SUMMED = 32
"""Micro-batches of a step whose lengths are summed exactly; the sum of more is taken
to be normal. [1]"""
DEVIATIONS = np.linspace(-8.0, 8.0, 1601)
"""Deviations at which a normal distribution is held. [1]"""


@dataclass(frozen=True)
class Rows:
    """Rows that the step waits for, in the mean over steps."""

    tokens: Number
    """Tokens of a row, padding included. [token], shape (meshes,) or one number"""
    span: Number
    """Tokens that a token attends among: the mean square of what attends to itself
    over its mean. [token], shape (meshes,) or one number"""


def rows_of(pricing: Pricing, meshes: Meshes) -> Rows:
    """Rows that set the time of a micro-batch.

    Args:
        pricing: The job: lengths of its texts, and how rows are filled.

    Returns:
        Tokens of a row; one number where micro-batches are alike. [token]
    """
    training = pricing.training
    draws = training.uneven
    if draws is None:
        return Rows(training.seq_len, training.span)
    keys = np.stack(_waiting(pricing, meshes), axis=1)
    keys_seen, at = np.unique(keys, axis=0, return_inverse=True)
    moments = np.array([slowest(draws, *map(int, key)) for key in keys_seen])
    tokens, squares = moments.reshape(-1, 2)[at.reshape(-1)].T
    return Rows(tokens, squares / tokens)


def _waiting(pricing: Pricing, meshes: Meshes) -> tuple[Ints, Ints, Ints]:
    """Texts that wait for each other in a micro-batch, groups of them, micro-batches.

    Ranks that share parameters (ZeRO-3) or experts wait in every layer, ranks that
    reduce gradients of every micro-batch in each of these, and all once a step.
    """
    inner = meshes.tp * meshes.cp
    grouped = pricing.recipe.gradients_reduced_per_group & (meshes.zero == 2)
    waits = (meshes.zero == 3) | grouped
    shard = np.where(waits, -(-meshes.dp_shard // meshes.cp), 1)
    ranks = np.maximum(shard, meshes.ep * meshes.etp // inner)
    ranks = np.clip(ranks, 1, meshes.dp)
    return meshes.micro_batch * ranks, meshes.dp // ranks, meshes.micro_batches


@cache
def slowest(
    draws: Draws, together: int, groups: int, batches: int
) -> tuple[float, float]:
    """Mean and mean square of the rows of the group that is last in a step.

    A group's row is the longest of some texts. Groups run apart for some micro-batches
    and then wait for the one with the most tokens.

    Args:
        draws: Lengths of the texts. [token]
        together: Texts of a micro-batch of all ranks of a group. [1]
        batches: Micro-batches between two waits. [1]

    Returns:
        Tokens of a row, and their square. [token] and [token^2]

    Leaves out that attention takes longer in one long row than in two short ones of as
    many tokens, when it says which group is last.
    """
    row = draws.greatest(together)
    if groups == 1 or len(draws.lengths) == 1:
        return _moments(row)
    bound = _moments(draws.greatest(together * groups))
    if batches == 1:
        return bound
    moments = (_summed if batches <= SUMMED else _normal)(row, groups, batches)
    return min(moments[0], bound[0]), min(moments[1], bound[1])


def _moments(row: Draws) -> tuple[float, float]:
    return row.mean, row.span * row.mean


def _summed(row: Draws, groups: int, batches: int) -> tuple[float, float]:
    """Rows of the group with the greatest sum, from the sum's distribution."""
    cell = row.lengths[-1] / CELLS
    share, square = _on_grid(row, cell)
    before = np.ones(1)
    for _ in range(batches - 1):
        before = np.convolve(before, share)
    sums = np.convolve(before, share)
    below = np.minimum(np.cumsum(sums), 1.0) ** groups
    last = np.diff(below, prepend=0.0)
    there = sums > 0
    squares = np.convolve(before, square)[there] / sums[there]
    tokens = cell * np.arange(len(sums)) / batches
    weight = last[there] / last[there].sum()
    return float(weight @ tokens[there]), float(weight @ squares)


def _on_grid(row: Draws, cell: float) -> tuple[Grid, Grid]:
    """Shares, and shares times squares, at whole numbers of cells of the same mean."""
    at = np.array(row.lengths) / cell
    low = np.minimum(at.astype(np.int64), CELLS - 1)
    high = (at - low) * np.array(row.shares)
    shares = np.zeros(CELLS + 1)
    np.add.at(shares, low, np.array(row.shares) - high)
    np.add.at(shares, low + 1, high)
    return shares, shares * (cell * np.arange(CELLS + 1)) ** 2


def _normal(row: Draws, groups: int, batches: int) -> tuple[float, float]:
    """Rows of the group with the greatest sum, where the sum is normal.

    Squares follow the sum on the line of least squares.
    """
    length, share = np.array(row.lengths), np.array(row.shares)
    mean, square, cube = (float(share @ length**n) for n in (1, 2, 3))
    variance = max(square - mean**2, 0.0)
    beyond = float(np.sqrt(variance / batches)) * greatest_deviation(groups)
    slope = (cube - square * mean) / variance if variance else 0.0
    return mean + beyond, square + slope * beyond


@cache
def greatest_deviation(count: int) -> float:
    """Mean of the greatest of several standard normal numbers."""
    density = np.exp(-(DEVIATIONS**2) / 2)
    below = np.cumsum(density) / density.sum()
    last = np.diff(below**count, prepend=0.0)
    return float(last @ DEVIATIONS)
