"""Boxes of splits: limits on the layers of every rank and of every virtual stage."""

from typing import NamedTuple

import numpy as np

from planner.cost.meshes import Ints
from planner.cost.pipeline.corners import kinds_within
from planner.cost.pipeline.linear import Lines
from planner.cost.pipeline.splits import stages_by_rank
from planner.cost.reach import Mask, reach_of
from planner.search.bounds.memory_bounds import most_layers
from planner.specs.table import StageCosts


class Box(NamedTuple):
    """Limits on the layers of ranks and stages: a box around some of the splits.

    One box, or several where the arrays have one more axis in front.
    """

    low: Ints
    """Fewest layers of every rank. [1], shape (pp,)"""
    high: Ints
    """Most layers of every rank. [1], shape (pp,)"""
    fewest: Ints
    """Fewest layers of every virtual stage. [1], shape (stages,)"""
    most: Ints
    """Most layers of every virtual stage. [1], shape (stages,)"""

    @classmethod
    def whole(cls, costs: StageCosts) -> "Box":
        """The box that holds every split of the class, whatever the memory."""
        fewest = np.array(costs.fewest)
        low = fewest[stages_by_rank(costs)].sum(axis=1)
        most = np.full(costs.stages, costs.most_layers)
        high = np.full(costs.pp, costs.vpp * costs.most_layers)
        return cls(low, high, fewest, most)

    @classmethod
    def of(cls, costs: StageCosts) -> "Box":
        """The box that holds every split that fits."""
        return cls.whole(costs).fitting(costs)

    def take(self, rows: Ints | int | None) -> "Box":
        """Some of several boxes, or one of them.

        Args:
            rows: Indices, or one index; None makes one box several. [1]
        """
        return Box(*(each[rows] for each in self))

    def fitting(self, costs: StageCosts) -> "Box":
        """The part in which every rank has at most the layers that fit."""
        return self._replace(high=np.minimum(self.high, most_layers(costs)))

    def holds(self, costs: StageCosts) -> Mask:
        """Tell if layers within a box can add up to the model.

        Returns:
            False only where no split lies in the box. [bool], shape (boxes,)
        """
        by_rank = stages_by_rank(costs)
        low = np.maximum(self.low, self.fewest[..., by_rank].sum(axis=-1))
        high = np.minimum(self.high, self.most[..., by_rank].sum(axis=-1))
        ordered = (low <= high).all(axis=-1) & (self.fewest <= self.most).all(axis=-1)
        layers = costs.held_layers
        held: Mask = (low.sum(axis=-1) <= layers) & (layers <= high.sum(axis=-1))
        found: Mask = held & ordered
        return found

    @property
    def is_point(self) -> bool:
        """True where one split at most lies in the box."""
        return bool((self.fewest == self.most).all())


def stages_decide(costs: StageCosts) -> bool:
    """Tell if the layers of every stage are the whole split.

    Returns:
        True with one entry of the menu and one copy of the model: layers stay in order,
        so that those before a stage tell the kinds on it.
    """
    return len(costs.menu) == costs.copies == 1


def is_near_whole(costs: StageCosts, box: Box) -> bool:
    """Tell if whole splits of a box are few enough to be asked for one by one.

    Returns:
        True where every rank's load is fixed, every stage has one of two numbers of
        layers, and layers are of one kind.
    """
    fixed = bool((box.low == box.high).all())
    pairs = bool((box.most - box.fewest <= 1).all())
    return fixed and pairs and stages_decide(costs) and len(costs.layers) == 1


class Sorted(NamedTuple):
    """Prices of a layer on the stages, cheapest first: on each rank, and on all."""

    order: Ints
    """Chunks of each rank by price. [1], shape (lines, pp, vpp)"""
    by_rank: Ints
    """Their prices. shape (lines, pp, vpp)"""
    across: Ints
    """Chunks of all ranks, in that order, by price. [1], shape (lines, stages)"""
    prices: Ints
    """Their prices. shape (lines, stages)"""

    @classmethod
    def of(cls, costs: StageCosts, lines: Lines) -> "Sorted":
        """Sort the prices of the commonest kind."""
        by_rank = lines.factors[:, :, _commonest(costs), 0][:, stages_by_rank(costs)]
        order = np.argsort(by_rank, axis=2, kind="stable")
        by_rank = np.take_along_axis(by_rank, order, axis=2)
        flat = by_rank.reshape(len(by_rank), -1)
        across = np.argsort(flat, axis=1, kind="stable")
        return cls(order, by_rank, across, np.take_along_axis(flat, across, axis=1))

    def take(self, rows: Ints) -> "Sorted":
        """Prices of some lines."""
        return Sorted(*(each[rows] for each in self))


def _commonest(costs: StageCosts) -> int:
    """Index of the kind with the most layers. [1]."""
    return int(reach_of(costs).totals.argmax())


def least_in_boxes(
    costs: StageCosts, lines: Lines, boxes: Box, known: Sorted | None = None
) -> Ints:
    """Least values of linear functions over the splits in boxes, by one line a box.

    All layers are first priced as those of the commonest kind. The limits of stages lie
    within those of ranks, so dealing to the cheapest stage first is best: each stage
    takes its fewest layers, then each rank what it lacks on its cheapest stages, then
    all ranks together the layers that are left. What the layers of the other kinds cost
    more, or less, is dealt out by itself (``_others``).

    Returns:
        Values that no split in the box goes below. shape (boxes,)
    """
    by_rank, main = stages_by_rank(costs), _commonest(costs)
    prices = known or Sorted.of(costs, lines)
    value = lines.constants + _others(costs, lines, boxes, main)
    value = value + (boxes.fewest * lines.factors[:, :, main, 0]).sum(axis=1)
    places = (boxes.most - boxes.fewest)[:, by_rank]
    places = np.take_along_axis(places, prices.order, axis=2)
    filled = np.cumsum(places, axis=2) - places
    held = boxes.fewest[:, by_rank].sum(axis=2)
    asked = np.maximum(boxes.low - held, 0)[:, :, None]
    room = np.maximum(boxes.high - held, 0)[:, :, None]
    taken = np.clip(asked - filled, 0, places)
    value = value + (taken * prices.by_rank).sum(axis=(1, 2))
    free = (np.clip(room - filled, 0, places) - taken).reshape(len(value), -1)
    left = costs.layer_count - held.sum(axis=1) - taken.sum(axis=(1, 2))
    free = np.take_along_axis(free, prices.across, axis=1)
    before = np.cumsum(free, axis=1) - free
    dealt = (np.clip(left[:, None] - before, 0, free) * prices.prices).sum(axis=1)
    least: Ints = value + dealt
    return least


def _others(costs: StageCosts, lines: Lines, boxes: Box, main: int) -> Ints:
    """Least that the layers of all kinds but one cost above those of that one.

    Each kind by itself goes to the stages where it costs least more, from the fewest
    up to the most layers that it has on each in the box. shape (boxes,), or (1,).
    """
    totals, value = reach_of(costs).totals.tolist(), np.zeros(1, dtype=np.int64)
    if len(totals) == 1:
        return value
    kinds = [kind for kind in range(len(totals)) if kind != main]
    limits = boxes.fewest, boxes.most
    low, _ = kinds_within(costs, kinds, *limits, boxes.fewest)
    _, high = kinds_within(costs, kinds, *limits, boxes.most)
    for place, kind in enumerate(kinds):
        more = lines.factors[:, :, kind, 0] - lines.factors[:, :, main, 0]
        more, there = np.broadcast_arrays(more, low[:, :, place])
        value = value + (there * more).sum(axis=1)
        order = np.argsort(more, axis=1, kind="stable")
        more = np.take_along_axis(more, order, axis=1)
        places = np.take_along_axis(high[:, :, place] - there, order, axis=1)
        left = totals[kind] - there.sum(axis=1, keepdims=True)
        before = np.cumsum(places, axis=1) - places
        taken = np.clip(left - before, 0, places)
        value = value + (taken * more).sum(axis=1)
    return value


def trimmed(
    costs: StageCosts,
    box: Box,
    lines: Lines,
    ranks: Ints,
    enough: int,
    prices: Sorted,
) -> tuple[Box, float]:
    """The part of a box without loads of ranks at which some path is above *enough*.

    No split with rank r at its most layers is faster than the least value, over that
    part of the box, of any path. So where a path is above *enough* there, the rank has
    a layer less in the part of the box that is left, or a step above *enough*. And a
    rank holds what the others, at their most layers, leave.

    Args:
        costs: An inner problem whose stages decide.
        box: One box.
        lines: Paths.
        ranks: Rank whose most layers each path is to rule out. [1], shape (lines,)
        enough: A step above which no split is wanted. [ns]
        prices: Prices of the lines.

    Returns:
        What is left, and a bound on every split that is not in it; inf where all is
        left. [ns]
    """
    least, own = float("inf"), np.eye(len(box.low), dtype=bool)
    while box.holds(costs):
        full = Box(*(np.tile(each, (len(own), 1)) for each in box))
        full = full._replace(low=np.where(own, box.high, box.low))
        there = full.holds(costs)
        at = np.flatnonzero(there[ranks])
        some = Lines(lines.constants[at], lines.factors[at])
        bounds = np.zeros(len(own), dtype=np.int64)
        if len(at):
            held = full.take(ranks[at])
            values = least_in_boxes(costs, some, held, prices.take(at))
            np.maximum.at(bounds, ranks[at], values)
        gone = ~there | (bounds > enough)
        if not gone.any():
            break
        least = min([least, *bounds[gone & there].tolist()])
        high = box.high - gone
        left = costs.held_layers - (high.sum() - high)
        box = box._replace(low=np.maximum(box.low, left), high=high)
    return box, least
