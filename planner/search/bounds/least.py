"""Least values of linear functions of the layer counts, over a superset of splits."""

from dataclasses import dataclass

import numpy as np

from planner.cost.meshes import Ints
from planner.cost.pipeline.linear import Lines
from planner.cost.pipeline.splits import stages_by_rank
from planner.cost.reach import Mask, reach_of
from planner.search.bounds.memory_bounds import most_layers
from planner.specs.table import StageCosts


def least_values(
    costs: StageCosts,
    lines: Lines,
    *,
    ranks: Ints | None = None,
    load: int = 0,
    caps: Ints | None = None,
) -> Ints:
    """Least values of linear functions over a superset of the splits.

    Each layer kind is dealt out on its own to the cheapest stages that it can
    reach. A stage takes at most ``most_layers``, a rank as many as fit its memory.
    Stages that only one kind can reach first take the fewest layers of that kind. A
    rank may be made to hold *load* layers. It then holds of each kind at least the
    layers that the other kinds cannot make up.

    Args:
        costs: The inner problem.
        lines: Linear functions of the counts.
        ranks: Pipeline rank that must hold *load* layers, by line. [1]
        load: Layers that this rank must hold. [1]
        caps: Most layers of every rank, by line, where fewer than fit are wanted.
            [1], shape (lines, pp)

    Returns:
        Values that no split goes below. shape (lines,)
    """
    prices = lines.factors.min(axis=3)
    reach = reach_of(costs)
    most = most_layers(costs)[None] if caps is None else caps
    value: Ints = lines.constants + (reach.low * prices).sum(axis=(1, 2))
    deals = [
        _Deal.of(
            price=prices[:, :, kind],
            places=_places(costs, prices[:, :, kind], reach.places[:, kind], most),
            layers=count - int(reach.low[:, kind].sum()),
        )
        for kind, count in enumerate(reach.totals.tolist())
    ]
    if ranks is None:
        return value + sum(deal.least() for deal in deals)
    own = np.zeros((len(value), costs.stages), dtype=bool)
    np.put_along_axis(own, stages_by_rank(costs)[ranks], values=True, axis=1)
    needed = _needed(costs, own, load)
    least = (deal.least_with(own, needed[:, k]) for k, deal in enumerate(deals))
    return value + sum(least)


def _needed(costs: StageCosts, own: Mask, load: int) -> Ints:
    """Layers of each kind that stages with *load* layers hold above the fewest. [1].

    The other kinds cannot make them up. shape (lines, kinds).
    """
    reach = reach_of(costs)
    others = np.minimum(reach.totals, costs.most_layers * (own @ (reach.mask * 1)))
    elsewhere = others.sum(axis=1)[:, None] - others
    needed: Ints = load - elsewhere - own @ reach.low
    return needed


@dataclass(frozen=True)
class _Deal:
    """Layers of one kind, and the places of every line, cheapest first."""

    stages: Ints
    """Stage of each place. [1], shape (lines, stages)"""
    price: Ints
    """Price of a layer. shape (lines, stages)"""
    places: Ints
    """Places above the fewest. [1], shape (lines, stages)"""
    layers: int
    """Layers to deal. [1]"""

    @classmethod
    def of(cls, price: Ints, places: Ints, layers: int) -> "_Deal":
        """Sort the stages of every line by price."""
        stages = np.argsort(price, axis=1, kind="stable")
        line = np.arange(len(price))[:, None]
        return cls(stages, price[line, stages], places[line, stages], layers)

    def least(self) -> Ints:
        """Least price of the layers. shape (lines,)."""
        return self._priced(_cheapest(self.places, self.layers))

    def least_with(self, own: Mask, needed: Ints) -> Ints:
        """Least price with so many of the layers on the stages *own*, or all there."""
        places = np.take_along_axis(own, self.stages, axis=1) * self.places
        mine = np.clip(needed, 0, places.sum(axis=1))[:, None]
        taken = _cheapest(places, mine)
        rest = _cheapest(self.places - taken, self.layers - mine)
        return self._priced(taken + rest)

    def _priced(self, taken: Ints) -> Ints:
        priced: Ints = (taken * self.price).sum(axis=1)
        return priced


def _places(costs: StageCosts, prices: Ints, most: Ints, caps: Ints) -> Ints:
    """Places of a kind above the fewest, by line; a rank's cheapest up to its cap.

    A rank holds of a kind at most its cap less the fewest layers of all kinds on its
    stages. Limits by stage and by rank are nested. So dealing to the cheapest first is
    best, and takes the cheapest places of each rank.
    """
    by_rank = stages_by_rank(costs)
    low = reach_of(costs).low.sum(axis=1)[by_rank].sum(axis=1)
    room = np.maximum(caps - low, 0)[:, :, None]
    if (room[:, :, 0] >= most[by_rank].sum(axis=1)).all():
        # Most ranks have room for all that their stages may hold.
        return np.broadcast_to(most, prices.shape)
    order = np.argsort(prices[:, by_rank], axis=2, kind="stable")
    sorted_places = np.take_along_axis(most[by_rank][None], order, axis=2)
    before = np.cumsum(sorted_places, axis=2) - sorted_places
    taken = np.clip(room - before, 0, sorted_places)
    within = np.empty_like(taken)
    np.put_along_axis(within, order, taken, axis=2)
    places = np.empty((len(prices), costs.stages), dtype=np.int64)
    places[:, by_rank] = within
    return places


def _cheapest(room: Ints, layers: Ints | int) -> Ints:
    """Places taken, from the first on, by so many layers of every line. [1]."""
    before = np.cumsum(room, axis=1) - room
    taken: Ints = np.clip(layers - before, 0, room)
    return taken
