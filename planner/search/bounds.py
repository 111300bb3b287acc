"""Lower bounds on the step time, and proofs that a candidate cannot fit.

Three tiers, each proven where it stands: arithmetic on columns for the whole
space, Lagrangian path bounds for one candidate, and the solver.
"""

from dataclasses import dataclass

import numpy as np

from planner.cost.linear import Linear, Lines, path_lines
from planner.cost.meshes import Floats, Ints
from planner.cost.pipeline import stages_by_rank
from planner.cost.reach import Mask, reach_of
from planner.cost.table import CostTable
from planner.search.blocks import block_work
from planner.search.memory import most_layers
from planner.search.paths import PathColumns, ShapePaths, shape_of
from planner.search.schedules import COPIES, FOLDS, SPLITS
from planner.search.space import Space
from planner.specs.table import StageCosts


@dataclass(frozen=True)
class SpaceBounds:
    """First-tier answers for every candidate."""

    step: Floats
    """Lower bound on the step, straggler factor included. [s]"""
    fits: Ints
    """0 where no split can fit the memory, else 1. [1]"""


@dataclass(frozen=True)
class _Columns:
    """Table columns spread over the candidates. Times in ns, memory in blocks."""

    p: Ints
    v: Ints
    m: Ints
    most: Ints
    work: Floats
    """Forward and backward of the whole model for one micro-batch. [ns]"""
    layer: Floats
    """Cheapest layer: forward and backward, forward alone where it is split. [ns]"""
    split: Mask
    """Weight gradients are operations of their own. [bool]"""
    folded: Mask
    """Chunks lie in a V. [bool]"""
    copies: Ints
    """How often the ranks hold the model. [1]"""
    transient: Floats
    budget: Floats
    kinds: tuple[tuple[int, Floats, Floats], ...]
    """(layers, static, saved) of every layer kind, cheapest menu entry. [block]"""


def space_bounds(table: CostTable, space: Space) -> SpaceBounds:
    """Bound every candidate with a few array operations.

    Args:
        table: Priced meshes.
        space: Candidates on them.

    Returns:
        Lower bounds on the step and the memory verdict. [s] and [1]
    """
    columns = _columns(table, space)
    nanoseconds = _time_bound(table, space, columns)
    slowdown = table.slowdown[space.mesh]
    return SpaceBounds(nanoseconds * slowdown / 1e9, _may_fit(space, columns))


def _columns(table: CostTable, space: Space) -> _Columns:
    mesh, pick = space.mesh, space.menu
    layers = table.workload.model.layers
    counts = np.zeros(len(table.workload.kinds))
    for kind, count in table.workload.runs:
        counts[kind] += count
    entry = np.where(pick < 0, len(table.menu), pick)
    place = entry * len(table) + mesh

    def cheapest(values: Ints, weight: Floats | None) -> Floats:
        def fold(columns: Ints) -> Floats:
            if weight is None:
                least: Floats = columns.min(axis=0).astype(np.float64)
                return least
            return np.tensordot(weight, columns, axes=1)

        known = np.concatenate([fold(values), fold(values.min(axis=1))[None]])
        return known.ravel()[place]

    both = table.forward + table.backward
    split = SPLITS[space.schedules]
    ends = table.embedding, table.head
    edge = sum(end.forward + end.backward for end in ends)
    v, copies = space.vpp, COPIES[space.schedules]
    stages = table.meshes.pp[mesh] * v // copies
    return _Columns(
        p=table.meshes.pp[mesh],
        v=v,
        m=table.meshes.micro_batches[mesh],
        most=-(-layers // stages) + table.extra_layers,
        work=cheapest(both, counts)
        + np.asarray(edge)[mesh]
        + block_work(table, table.meshes.pp[mesh], v, pick, mesh),
        layer=np.where(split, cheapest(table.forward, None), cheapest(both, None)),
        split=split,
        folded=FOLDS[space.schedules],
        copies=copies,
        transient=cheapest(table.transient, None),
        budget=table.budget[mesh].astype(np.float64),
        kinds=tuple(
            (
                int(counts[kind]),
                unit.static[mesh].astype(np.float64),
                cheapest(table.saved[kind : kind + 1], None),
            )
            for kind, unit in enumerate(table.units)
        ),
    )


def _time_bound(table: CostTable, space: Space, c: _Columns) -> Floats:
    """Lower bound on the simulated step. [ns].

    With ``S`` the work of one micro-batch over all stages, cheapest menu entry:

    1. Every rank runs its share of m micro-batches alone, and its optimizer
       after all ranks' work: the largest is at least the mean,
       ``T >= (m S + optimizer) / p``, and the host's work follows.
    2. 1F1B with m > p: ``T >= (m + p - 1) S / p``, by combining the rows
       ``sum_{j<r} t_j + (m - k_r) t_r + 2 sum_{j>r} t_j`` of all ranks with
       weights that make every coefficient equal (cost model, E.3.2). GPipe has
       the rows ``sum_j t_j + (m - 1) t_r``, whose mean it is for any m.
    3. A rank starts after the first chunks of the ranks before it and ends
       after their backwards: ``T >= sum_{q<r} t_{q,0} + m t_r``. Averaged over
       r, each rank q >= 1 adds at least ``(p-1-q)/p`` of one cheapest layer,
       since only the ends may hold none. Where the backward is split a rank may
       end with a weight gradient, after which nothing follows: only the forwards
       before it count. Where two directions meet, rank r starts after those of the
       ranks between it and the nearer end: ``p / 2`` ranks, twice.

    The optimizer may be added to 2 and 3 as well: it starts after every rank's
    compute and its largest is at least its mean.
    """
    units = table.units
    optimizer = (table.embedding.unit.optimizer + table.head.unit.optimizer) * 1.0
    for kind, count in table.workload.runs:
        optimizer = optimizer + count * units[kind].optimizer
    tail = c.copies * optimizer[space.mesh] / c.p + table.overhead
    mean = c.m * c.work / c.p
    near = c.p // c.copies
    fill = np.where(near > 2, (near - 1) * (near - 2) / (2.0 * near), 0.0) * c.layer
    plain = (c.v == 1) & (c.m > c.p) & ~c.split
    bubble = np.where(plain, (c.p - 1) * c.work / c.p, fill)
    return np.floor(mean + bubble + tail)


def _may_fit(space: Space, c: _Columns) -> Ints:
    """0 where the ranks together cannot hold the model's layers.

    At the first backward of rank r, K_r chunk activations are in flight (exact,
    from the order: ``min(m, p - r)``, which GPipe's m is at least, and
    ``min(m v, 2(p-r-1) + (v-1)p + 1)``; zb-h1 reaches ``min(m, p)``; in a V rank r
    has at least ``min(m, 2p-1) + 1``, what rank 0 has, and DualPipe is two V of p / 2
    ranks and m / 2 micro-batches),
    at most ``C_r`` of one chunk. With N layers of a kind on the rank, at most
    ``most`` a chunk, their activations are at least ``saved (most K_r -
    C_r (v most - N))``, so ``N <= (budget - transient - saved (most K_r -
    C_r v most)) / (static + saved C_r)``. If the sum of these over the ranks is
    below the kind's layers, nothing fits. Ends and other kinds only add memory,
    so leaving them out keeps this a bound.
    """
    fits = np.ones(len(space), dtype=bool)
    for layers, static, saved in c.kinds:
        at = np.flatnonzero(fits)
        fits[at] = _holds(c, at, layers, static, saved)
    return fits.astype(np.int64)


def _holds(c: _Columns, at: Ints, layers: int, static: Floats, saved: Floats) -> Mask:
    """Whether the ranks together can hold a kind's layers, rank by rank.

    A candidate is settled as soon as no later rank can change the verdict: where
    its ranks hold too little even if all later ones are full, and where a rank is
    full, ``budget - transient >= most (saved K_r + v static)``, since K_r falls
    with r and all later ones are full too.
    """
    holds = np.zeros(len(at), dtype=bool)
    open_, total = np.arange(len(at)), np.zeros(len(at))
    for rank in range(int(c.p.max(initial=1))):
        here = at[open_]
        most = _most_on_rank(c, here, rank, static, saved)
        full = c.v[here] * c.most[here]
        total = total + most
        could = (total + (c.p[here] - rank - 1) * full) / c.copies[here]
        settled = (most == full) | (could < layers) | (c.p[here] == rank + 1)
        holds[open_[settled]] = could[settled] >= layers
        open_, total = open_[~settled], total[~settled]
    return holds


def _most_on_rank(
    c: _Columns, at: Ints, rank: int, static: Floats, saved: Floats
) -> Floats:
    """Most layers of one kind that a rank can hold. [1]."""
    p, v, m, most = c.p[at], c.v[at], c.m[at], c.most[at]
    deep = np.minimum(m * v, 2 * (p - rank - 1) + (v - 1) * p + 1)
    p, m = p // c.copies[at], m // c.copies[at]
    deep = np.where(c.folded[at], np.minimum(m, 2 * p - 1) + 1, deep)
    flat = np.minimum(m, np.where(c.split[at], p, p - rank))
    held = np.where(v > 1, deep, flat)
    cycles = np.where(c.folded[at], 2, -(-held // (p * v)))
    one_chunk = np.where(v > 1, np.minimum(m, p * cycles), held)
    room = c.budget[at] - c.transient[at]
    room = room - saved[at] * most * (held - one_chunk * v)
    each = np.maximum(static[at] + saved[at] * one_chunk, 1.0)
    return np.clip(np.floor(room / each), 0, v * most)


@dataclass(frozen=True)
class Relaxation:
    """Second-tier answer for one candidate."""

    bound: int
    """Lower bound on the simulated step. [ns]"""
    cuts: tuple[Linear, ...]
    """Valid inequalities that gave it. [ns]"""


def relax(
    costs: StageCosts,
    enough: int | None = None,
    paths: ShapePaths | None = None,
    *,
    hopeless: int | None = None,
) -> Relaxation:
    """Bound one candidate by paths, minimised over every split.

    Each path is linear in the layer counts, so its least value over a superset
    of the splits is a bound; so is that of the paths' mean, where one path's
    light stages are another's heavy ones; so is :func:`loaded_bound`, which
    knows that layers are whole. The largest counts.

    Args:
        costs: The inner problem.
        enough: A bound above this rules the candidate out: stop there. [ns]
        paths: Paths that the search has found already.
        hopeless: The same, but already with the paths that take no graph. [ns]

    Returns:
        The bound and the path inequalities, none where the bound is enough. [ns]
    """
    paths = paths or ShapePaths()
    if hopeless is not None:
        bound = max(path_bounds(costs, paths.of_work(costs), hopeless))
        if bound > hopeless:
            return Relaxation(bound, ())
    learned = weighted_bound(costs, paths)
    if enough is not None and learned > enough:
        return Relaxation(learned, ())
    known = paths.of(costs)
    mean, loaded = path_bounds(costs, known, enough)
    if enough is not None and mean > enough:
        return Relaxation(mean, ())
    lines = path_lines(costs, known.counts, known.p2p)
    return Relaxation(max(mean, loaded, learned), lines.each())


def weighted_bound(costs: StageCosts, paths: ShapePaths) -> int:
    """Bound by the multipliers that other candidates of the shape have found.

    A mean of paths at any weights is at most the step, whatever the costs.

    Args:
        costs: The inner problem.
        paths: What the search knows of its shape.

    Returns:
        The best of these bounds; 0 without any. [ns]
    """
    means = paths.means.get(shape_of(costs), [])
    if not means:
        return 0
    counts = np.array([mean.counts for mean in means])
    lines = path_lines(costs, counts, np.array([mean.p2p for mean in means]))
    weights = np.array([mean.weight for mean in means])
    return int((-(-least_values(costs, lines) // weights)).max())


def path_bounds(
    costs: StageCosts, paths: PathColumns, enough: int | None = None
) -> tuple[int, int]:
    """Bounds by the paths' mean and by the ranks that carry many layers.

    Args:
        costs: The inner problem.
        paths: Families of one path through every rank.
        enough: A mean above this makes the second one needless. [ns]

    Returns:
        Both bounds; 0 for the second where it is not needed. [ns]
    """
    sums = paths.sums()
    totals = path_lines(costs, sums.counts, sums.p2p)
    mean = int((-(-least_values(costs, totals) // paths.pp)).max())
    if enough is not None and mean > enough:
        return mean, 0
    lines = path_lines(costs, paths.counts, paths.p2p)
    return mean, loaded_bound(costs, lines, paths.rank)


def loaded_bound(costs: StageCosts, lines: Lines, ranks: Ints) -> int:
    """Bound by the ranks that must carry many layers.

    Rank r holds at most ``c_r`` layers, by the class and by its memory, and of
    these places ``sum c - L`` stay empty (L those of every copy of the model). One
    of the ranks with ``c_r >= h`` that has fewer than h layers leaves at least
    ``c_r - h + 1`` empty, so no more of them can than the smallest of these that add
    up to the empty places, k. Of the paths through these ranks, each priced with at
    least h layers on its own rank, all but k therefore hold: the (k+1)-th largest
    is a bound, for every h.

    Args:
        costs: The inner problem.
        lines: Paths, as many through every rank.
        ranks: The rank that each goes through. [1], shape (lines,)

    Returns:
        The best of these bounds. [ns]
    """
    caps = most_layers(costs)
    empty = int(caps.sum()) - costs.held_layers
    bound = int(least_values(costs, lines).max())
    for load in range(-(-costs.held_layers // costs.pp), int(caps.max()) + 1):
        able = caps >= load
        spare = np.cumsum(np.sort(caps[able] - load + 1))
        lighter = int(np.searchsorted(spare, empty, side="right"))
        if lighter >= len(spare):
            continue
        values = least_values(costs, lines, ranks=ranks, load=load)
        by_rank = np.sort(values.reshape(-1, costs.pp).max(axis=0)[able])
        bound = max(bound, int(by_rank[-1 - lighter]))
    return bound


def least_values(
    costs: StageCosts, lines: Lines, *, ranks: Ints | None = None, load: int = 0
) -> Ints:
    """Least values of linear functions over a superset of the splits.

    Each layer kind is dealt out on its own to the cheapest stages that it can
    reach, at most ``most_layers`` a stage and as many a rank as fit its memory;
    stages that only one kind can reach first take their fewest of it. A rank may
    be made to hold *load* layers: of each kind then at least those that the other
    kinds cannot make up.

    Args:
        costs: The inner problem.
        lines: Linear functions of the counts.
        ranks: Of each the pipeline rank that must hold *load* layers. [1]
        load: Layers that it must hold. [1]

    Returns:
        Values that no split goes below. shape (lines,)
    """
    prices = lines.factors.min(axis=3)
    reach = reach_of(costs)
    value: Ints = lines.constants + (reach.low * prices).sum(axis=(1, 2))
    own = np.zeros((len(value), costs.stages), dtype=bool)
    if ranks is not None:
        held = stages_by_rank(costs)[ranks]
        own = (held[:, :, None] == np.arange(costs.stages)).any(axis=1)
    others = np.minimum(reach.totals, costs.most_layers * (own @ (reach.mask * 1)))
    for kind, count in enumerate(reach.totals.tolist()):
        low, price = reach.low[:, kind], prices[:, :, kind]
        places = _places(costs, price, reach.places[:, kind])
        elsewhere = others.sum(axis=1) - others[:, kind]
        most = (own * places).sum(axis=1)
        mine = np.clip(load - elsewhere - own @ low, 0, most)
        mine = mine if ranks is not None else np.zeros_like(value)
        left = count - int(low.sum()) - mine
        value = value + _fill(price, places, own, mine, left)
    return value


def _places(costs: StageCosts, prices: Ints, most: Ints) -> Ints:
    """Places of a kind above its fewest, by line; a rank's cheapest up to its cap.

    What a rank holds of a kind is at most its cap less the fewest that its stages
    hold of all kinds. Under limits by stage and by rank, which are nested, dealing
    to the cheapest first is best, and takes of a rank its cheapest places.
    """
    by_rank = stages_by_rank(costs)
    low = reach_of(costs).low.sum(axis=1)[by_rank].sum(axis=1)
    room = np.maximum(most_layers(costs) - low, 0)[:, None]
    order = np.argsort(prices[:, by_rank], axis=2, kind="stable")
    sorted_places = np.take_along_axis(most[by_rank][None], order, axis=2)
    before = np.cumsum(sorted_places, axis=2) - sorted_places
    taken = np.clip(room - before, 0, sorted_places)
    within = np.empty_like(taken)
    np.put_along_axis(within, order, taken, axis=2)
    places = np.empty((len(prices), costs.stages), dtype=np.int64)
    places[:, by_rank] = within
    return places


def _fill(prices: Ints, places: Ints, own: Mask, mine: Ints, left: Ints) -> Ints:
    """Fill the cheapest places, *mine* of them on one's own stages; price them."""
    order = np.argsort(prices, axis=1, kind="stable")
    room = np.take_along_axis(places, order, axis=1)
    taken = _cheapest(room * np.take_along_axis(own, order, axis=1), mine)
    taken = taken + _cheapest(room - taken, left)
    value: Ints = (taken * np.take_along_axis(prices, order, axis=1)).sum(axis=1)
    return value


def _cheapest(room: Ints, layers: Ints) -> Ints:
    """Places taken, from the first on, by so many layers. [1]."""
    before = np.cumsum(room, axis=1) - room
    taken: Ints = np.clip(layers[:, None] - before, 0, room)
    return taken
