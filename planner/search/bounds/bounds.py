"""Lower bounds on the step time, and proofs that a candidate cannot fit.

The bounds come in three tiers, each with a proof in place. These are arithmetic on
columns for the whole space, Lagrangian path bounds for one candidate, and the solver.
"""

from dataclasses import dataclass

import numpy as np

from planner.cost.meshes import Floats, Ints
from planner.cost.pipeline.linear import Linear, path_lines
from planner.cost.pipeline.path_columns import PathColumns
from planner.cost.reach import Mask
from planner.cost.table.table import CostTable
from planner.search.bounds.columns import Columns, Folds, columns_of, most_on_rank
from planner.search.bounds.least import least_values
from planner.search.bounds.paths import ShapePaths
from planner.search.bounds.pool_bounds import weighted
from planner.search.bounds.rank_load_bounds import (
    cases_of,
    loaded_bound,
    weighted_bound,
)
from planner.search.space.space import Space
from planner.specs.table import StageCosts

SLICE = 1 << 18
"""Candidates whose columns are held at once. [1]"""


@dataclass(frozen=True)
class SpaceBounds:
    """First-tier answers for every candidate."""

    step: Floats
    """Lower bound on the step, straggler factor included. [s]"""
    fits: Ints
    """0 where no split can fit the memory, else 1. [1]"""


def space_bounds(table: CostTable, space: Space) -> SpaceBounds:
    """Bound every candidate with a few array operations.

    Returns:
        Lower bounds on the step and the memory verdict. [s] and [1]
    """
    folds = Folds.of(table)
    bounds = SpaceBounds(np.zeros(len(space)), np.zeros(len(space), dtype=np.int64))
    for start in range(0, len(space), SLICE):
        block = slice(start, start + SLICE)
        part = space.take(np.arange(*block.indices(len(space))))
        columns = columns_of(table, part, folds)
        slowdown = table.slowdown[part.mesh]
        bounds.step[block] = _time_bound(columns) * slowdown / 1e9
        bounds.fits[block] = may_fit(part, columns)
    return bounds


def _time_bound(c: Columns) -> Floats:
    """Lower bound on the simulated step. [ns].

    With ``S`` the work of one micro-batch over all stages, cheapest menu entry:

    1. Every rank runs its share of m micro-batches alone. The optimizer starts
       after all ranks' work. The largest time is at least the mean,
       ``T >= (m S + optimizer) / p``, and the host's work follows.
    2. 1F1B with m > p: ``T >= (m + p - 1) S / p``. The rows of all ranks are
       ``sum_{j<r} t_j + (m - k_r) t_r + 2 sum_{j>r} t_j``. Weights that make every
       coefficient equal combine them (cost model, E.3.2). GPipe has the rows
       ``sum_j t_j + (m - 1) t_r``, whose mean is this bound for any m. With m <= p the
       first micro-batch goes to the end and back, and rank r has the backwards of all
       others left: ``sum_j t_j + (m - 1) b_r``, whose mean is ``S + (m - 1) B / p``.
    3. A rank starts after the first chunks of the ranks before it and ends
       after their backwards: ``T >= sum_{q<r} t_{q,0} + m t_r``. In the mean over
       r, each rank q >= 1 adds at least ``(p-1-q)/p`` of a cheapest layer: only the
       ends may be empty. Where the backward is split, a rank may end with a weight
       gradient. Then only the forwards before the rank count. Where two directions
       meet, rank r starts after the ranks between r and the nearer end: ``p / 2``
       ranks, twice.

    The optimizer may be added to 2 and 3 as well. It starts after every rank's
    compute, and the largest update is at least the mean.
    """
    mean = c.m * c.work / c.p
    near = c.p // c.copies
    fill = np.where(near > 2, (near - 1) * (near - 2) / (2.0 * near), 0.0) * c.layer
    plain = (c.v == 1) & (c.copies == 1) & ~c.split
    lap = (c.p - c.m) * c.work / c.p + (c.m - 1) * c.back / c.p
    drained = np.where(c.m > c.p, (c.p - 1) * c.work / c.p, np.maximum(lap, fill))
    bubble = np.where(plain, drained, fill)
    return np.floor(mean + bubble + c.tail)


def may_fit(space: Space, c: Columns) -> Ints:
    """0 where the ranks together cannot hold the model's layers.

    At some backward of rank r, K_r chunk activations are in flight, at most ``C_r`` of
    one chunk (:func:`planner.cost.pipeline.in_flight.least_in_flight`). No schedule is
    unrolled for that; the memory rows come with each candidate.

    Take N layers of a kind on the rank, at most ``most`` a chunk. Their activations
    are at least ``saved (most K_r - C_r (v most - N))``, so ``N <= (budget -
    transient - saved (most K_r - C_r v most)) / (static + saved C_r)``. If these
    limits add up to less than the kind's layers, nothing fits. Ends and other kinds
    only add memory, so the limits stay valid without them.
    """
    fits = np.ones(len(space), dtype=bool)
    for layers, static, saved in c.kinds:
        at = np.flatnonzero(fits)
        fits[at] = _holds(c, at, layers, static, saved)
    return fits.astype(np.int64)


def _holds(c: Columns, at: Ints, layers: int, static: Floats, saved: Floats) -> Mask:
    """Tell if the ranks together can hold a kind's layers, rank by rank.

    A candidate is settled as soon as no later rank can change the verdict. It fails
    where the ranks hold too little even if all later ranks are full. A rank is full
    where ``budget - transient >= most (saved K_r + v static)``. K_r falls with r, so
    all later ranks are then full, too.
    """
    holds = np.zeros(len(at), dtype=bool)
    open_, total = np.arange(len(at)), np.zeros(len(at))
    for rank in range(int(c.p.max(initial=1))):
        here = at[open_]
        most = most_on_rank(c, here, rank, static, saved)
        full = c.v[here] * c.most[here]
        total = total + most
        could = (total + (c.p[here] - rank - 1) * full) / c.copies[here]
        settled = (most == full) | (could < layers) | (c.p[here] == rank + 1)
        holds[open_[settled]] = could[settled] >= layers
        open_, total = open_[~settled], total[~settled]
    return holds


@dataclass(frozen=True)
class Relaxation:
    """Second-tier answer for one candidate."""

    bound: int
    """Lower bound on the simulated step. [ns]"""
    cuts: tuple[Linear, ...]
    """Valid inequalities that gave the bound. [ns]"""


def relax(
    costs: StageCosts,
    enough: int | None = None,
    paths: ShapePaths | None = None,
    *,
    hopeless: int | None = None,
) -> Relaxation:
    """Bound one candidate by paths, minimised over every split.

    Each path is linear in the layer counts. So the least value of a path over a
    superset of the splits is a bound. The least value of the paths' mean is a bound,
    too: light stages of one path are heavy stages of another. In addition
    :func:`loaded_bound` uses that layers are whole. The largest bound counts. On
    several pools multipliers that others have found are better than any mean.

    Args:
        costs: The inner problem.
        enough: A bound above this rules the candidate out: stop there. [ns]
        paths: Paths that the search has found already.
        hopeless: A bound above this, by paths that take no graph, rules the
            candidate out at once. [ns]

    Returns:
        The bound and the path inequalities, none where the bound is enough. [ns]
    """
    paths = paths or ShapePaths()
    if hopeless is not None and not paths.knows(costs):
        bound = max(path_bounds(costs, paths.of_work(costs), hopeless))
        if bound > hopeless:
            return Relaxation(bound, ())
    learned = weighted_bound(costs, paths)
    if enough is not None and learned > enough:
        return Relaxation(learned, ())
    known = paths.of(costs)
    mean, loaded = (
        (0, 0) if learned and costs.hosts else path_bounds(costs, known, enough)
    )
    if enough is not None and mean > enough:
        return Relaxation(mean, ())
    lines = path_lines(costs, known.counts, known.p2p)
    cases = cases_of(costs, paths).bound
    return Relaxation(max(mean, loaded, learned, cases), lines.each())


def path_bounds(
    costs: StageCosts, paths: PathColumns, enough: int | None = None
) -> tuple[int, int]:
    """Bounds by the paths' mean and by the ranks that carry many layers.

    Args:
        costs: The inner problem.
        paths: Families of one path through every rank.
        enough: A mean above this makes the second bound needless. [ns]

    Returns:
        Both bounds; the second is 0 where it is not needed. [ns]
    """
    sums = paths.sums()
    totals = path_lines(costs, sums.counts, sums.p2p)
    mean = int((-(-least_values(costs, totals) // paths.pp)).max())
    if enough is not None and mean > enough:
        return mean, 0
    lines = path_lines(costs, paths.counts, paths.p2p)
    if costs.hosts:
        whole, weight = weighted(costs, lines, paths.rank)
        mean = max(mean, int((-(-least_values(costs, whole) // weight)).max()))
    return mean, loaded_bound(costs, lines, paths.rank)
