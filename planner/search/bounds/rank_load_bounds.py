"""Bounds by the layers that a rank carries: a whole number, within its memory."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from planner.cost.meshes import Ints
from planner.cost.pipeline.linear import Linear, Lines, path_lines
from planner.cost.pipeline.path_columns import WeightedPath
from planner.schedules.slots import Slots
from planner.search.bounds.boxes import Box, least_in_boxes
from planner.search.bounds.least import least_values
from planner.search.bounds.memory_bounds import most_layers
from planner.search.bounds.paths import ShapePaths, lessons_of
from planner.search.bounds.worst import SAFE, worst_step
from planner.specs.table import StageCosts

SPARE = 2
"""Layers below the mean load from which on a rank's next layers are priced. [1]"""
NEVER = np.iinfo(np.int64).max
"""Bound on no split at all. [ns]"""


def loaded_bound(costs: StageCosts, lines: Lines, ranks: Ints) -> int:
    """Bound by dealing the layers out, each to the rank where it costs least.

    Let ``g_r(h)`` be the least value of the paths through rank r with at least h layers
    on it; it never falls with h. Ranks with loads ``h_r`` make a step of at least
    ``max_r g_r(h_r)``. Let every rank offer the prices ``g_r(1), g_r(2), ...`` as far
    as its memory and the class go. Loads take as many prices as there are layers, L,
    each rank's from the first on. So their largest is at least the L-th smallest of
    all. Loads well below the mean are not priced, but taken as free.

    Args:
        costs: The inner problem.
        lines: Paths, as many through every rank.
        ranks: Rank that each path goes through. [1], shape (lines,)

    Returns:
        The L-th smallest price. [ns]
    """
    caps = most_layers(costs)
    load = max(costs.held_layers // costs.pp - SPARE, 0)
    left = costs.held_layers - int(np.minimum(caps, load).sum())
    prices = np.array([], dtype=np.int64)
    while load < caps.max():
        load += 1
        values = least_values(costs, lines, ranks=ranks, load=load)
        offered = values.reshape(-1, costs.pp).max(axis=0)[caps >= load]
        if len(prices) >= left and offered.min() >= prices[left - 1]:
            break
        prices = np.sort(np.concatenate([prices, offered]))
    least = int(least_values(costs, lines).max())
    return max(least, int(prices[left - 1])) if 0 < left <= len(prices) else least


def weighted_bound(costs: StageCosts, paths: ShapePaths) -> int:
    """Bound by the multipliers that other candidates of the shape have found.

    A mean of paths at any weights is at most the step, whatever the costs.

    Returns:
        The best of these bounds; 0 without any. [ns]
    """
    lines, weights = _means(costs, paths)
    if not len(weights):
        return 0
    return int((-(-least_values(costs, lines) // weights)).max())


def _means(costs: StageCosts, paths: ShapePaths) -> tuple[Lines, Ints]:
    """The weighted paths of a shape as lines, and their weights.

    Leaves out paths whose sums might overflow 64 bits: a step of days, at fine weights.
    """
    most = SAFE // worst_step(costs)
    known = paths.means.get(lessons_of(costs), [])
    means = [mean for mean in known if mean.weight <= most]
    slots = Slots(costs.pp, costs.vpp).n_slots
    counts = np.array([mean.counts for mean in means], dtype=np.int64)
    p2p = np.array([mean.p2p for mean in means], dtype=np.int64)
    lines = path_lines(costs, counts.reshape(-1, slots), p2p)
    return lines, np.array([mean.weight for mean in means], dtype=np.int64)


def proof_of(costs: StageCosts, mean: WeightedPath) -> tuple[Linear, int] | None:
    """A weighted path as a line that is at most the weight times the step.

    Returns:
        Line and weight; None where the sums might overflow 64 bits.
    """
    if not 0 < mean.weight <= SAFE // worst_step(costs):
        return None
    (line,) = path_lines(costs, mean.counts[None], np.array([mean.p2p])).each()
    return line, mean.weight


def last_loaded(costs: StageCosts, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    """Boxes of loads by the last rank with at least the mean load, rounded up.

    Some rank carries the mean or more. In each box a given rank is the last such rank:
    every rank after it carries less. Together the boxes hold every split within the
    given bounds on the loads.

    Args:
        costs: The inner problem.
        low: Fewest layers of every rank. [1], shape (pp,)
        high: Most layers of every rank. [1], shape (pp,)

    Returns:
        Last rank of each box, with fewest and most layers of every rank. Boxes are
        left out whose loads cannot add up to the model. [1]
    """
    mean = -(-costs.held_layers // costs.pp)
    ranks = np.arange(costs.pp)
    last = ranks[:, None]
    fewest = np.where(ranks == last, np.maximum(low, mean), low)
    most = np.where(ranks > last, np.minimum(high, mean - 1), high)
    holds = (fewest <= most).all(axis=1)
    holds &= fewest.sum(axis=1) <= costs.held_layers
    holds &= most.sum(axis=1) >= costs.held_layers
    return ranks[holds], fewest[holds], most[holds]


class Cases(NamedTuple):
    """Boxes that hold every split of the class, and a bound on those that fit."""

    boxes: Box
    """Limits on the layers of ranks and stages, by box, whatever the memory."""
    bounds: Ints
    """Lower bound on the splits in each box that fit; ``NEVER`` where none can. [ns],
    shape (boxes,)"""
    means: Sequence[WeightedPath | None]
    """Weighted paths that gave each bound, where they are known of the box."""

    @property
    def bound(self) -> int:
        """Lower bound on every split that fits; 0 without any. [ns]."""
        held = self.bounds[self.bounds < NEVER]
        return int(held.min()) if len(held) else 0


def cases_of(costs: StageCosts, paths: ShapePaths) -> Cases:
    """Bound the splits by cases, with multipliers that others of the shape found.

    The cases are those of another candidate of the shape and class; or of
    ``last_loaded``. They do not depend on the memory, which decides what of them fits.
    """
    known = paths.cases_like(costs)
    if known is not None:
        return _known_cases(costs, *known)
    whole = Box.whole(costs)
    last, fewest, most = last_loaded(costs, whole.low, whole.high)
    stages = (np.tile(each, (len(last), 1)) for each in (whole.fewest, whole.most))
    boxes = Box(fewest, most, *stages)
    fitting = boxes.fitting(costs)
    at = np.flatnonzero(fitting.holds(costs))
    bounds = np.full(len(last), NEVER)
    bounds[at] = 0
    lines, weights = _means(costs, paths)
    if len(weights) and len(at):
        of_line = np.tile(np.arange(len(weights)), len(at))
        values = least_values(
            costs,
            Lines(lines.constants[of_line], lines.factors[of_line]),
            ranks=np.repeat(last[at], len(weights)),
            load=-(-costs.held_layers // costs.pp),
            caps=np.repeat(fitting.high[at], len(weights), axis=0),
        )
        each = -(-values // weights[of_line])
        bounds[at] = each.reshape(len(at), -1).max(axis=1)
    return Cases(boxes, bounds, [None] * len(last))


def _known_cases(
    costs: StageCosts, boxes: Box, means: Sequence[WeightedPath | None]
) -> Cases:
    """The boxes of another candidate, each bounded by its own weighted paths."""
    fitting, most = boxes.fitting(costs), SAFE // worst_step(costs)
    holds = fitting.holds(costs)
    bounds = np.where(holds, 0, NEVER)
    known = [bool(mean and mean.weight <= most) for mean in means]
    where = np.flatnonzero(holds & np.array(known))
    if len(where):
        some = [mean for place in where.tolist() if (mean := means[place])]
        lines = path_lines(
            costs,
            np.array([mean.counts for mean in some]),
            np.array([mean.p2p for mean in some]),
        )
        values = least_in_boxes(costs, lines, fitting.take(where))
        bounds[where] = -(-values // np.array([mean.weight for mean in some]))
    return Cases(boxes, bounds, means)
