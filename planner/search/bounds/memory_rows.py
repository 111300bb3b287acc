"""Memory rows of a candidate that can decide, as lines of its program."""

import numpy as np

from planner.cost.meshes import Ints
from planner.cost.pipeline.linear import Linear
from planner.cost.pipeline.memory_rows import MemoryRows, passing_rows
from planner.cost.reach import Mask
from planner.search.bounds.memory_bounds import most_layers
from planner.specs.table import StageCosts


def memory_lines(costs: StageCosts) -> list[Linear]:
    """Lines ``line <= 0`` of the memory at the moments that can decide.

    The memory leaves out the transients of layers, which only add to it. Rows that
    hold anyway are left out. A row holds if the rank's largest load fits on the
    dearest chunks. A row also follows from another row of the rank with factors and
    constant at least as large, since counts are never negative.

    Returns:
        Memory less the budget, rank by rank. [block]
    """
    lines: list[tuple[int, Linear]] = []
    for rows in passing_rows(costs):
        open_rows = rows.take(_fullest(costs, rows) > 0)
        for row in open_rows.take(~_implied(open_rows)).each():
            constant = row.line.constant + row.end_at_work - row.budget
            lines.append((row.rank, Linear(constant, row.line.factors)))
    return [line for _, line in sorted(lines, key=lambda pair: pair[0])]


def _constants(rows: MemoryRows) -> Ints:
    """Memory of the ends less the budget. [block], shape (rows,)."""
    return rows.constants + rows.end_at_work - rows.budget


def _fullest(costs: StageCosts, rows: MemoryRows) -> Ints:
    """Largest value of every row: the largest load, dearest chunks first. [block]."""
    prices = -np.sort(-rows.factors.max(axis=(2, 3)), axis=1)
    room = np.maximum(most_layers(costs), 0)[rows.rank][:, None]
    before = np.arange(costs.vpp) * costs.most_layers
    layers = np.clip(room - before, 0, costs.most_layers)
    most: Ints = _constants(rows) + (np.maximum(prices, 0) * layers).sum(axis=1)
    return most


def _implied(rows: MemoryRows) -> Mask:
    """True where another row of the rank is at least as large in every term."""
    implied = np.zeros(len(rows.rank), dtype=bool)
    flat = rows.factors.reshape(len(implied), int(np.prod(rows.factors.shape[1:])))
    terms = np.concatenate([_constants(rows)[:, None], flat], axis=1)
    for rank in np.unique(rows.rank):
        mine = np.flatnonzero(rows.rank == rank)
        below = (terms[mine, None] <= terms[None, mine]).all(axis=2)
        equal = below & below.T
        # of equal rows the first stays
        implied[mine] = ((below & ~equal) | np.tril(equal, -1)).any(axis=1)
    return implied
