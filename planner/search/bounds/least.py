"""Least values of linear functions of the layer counts, over a superset of splits."""

import numpy as np

from planner.cost.meshes import Ints
from planner.cost.reach import Mask, reach_of
from planner.pipeline.linear import Lines
from planner.pipeline.splits import stages_by_rank
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
    own = np.zeros((len(value), costs.stages), dtype=bool)
    if ranks is not None:
        held = stages_by_rank(costs)[ranks]
        own = (held[:, :, None] == np.arange(costs.stages)).any(axis=1)
    others = np.minimum(reach.totals, costs.most_layers * (own @ (reach.mask * 1)))
    for kind, count in enumerate(reach.totals.tolist()):
        low, price = reach.low[:, kind], prices[:, :, kind]
        places = _places(costs, price, reach.places[:, kind], most)
        elsewhere = others.sum(axis=1) - others[:, kind]
        room = (own * places).sum(axis=1)
        mine = np.clip(load - elsewhere - own @ low, 0, room)
        mine = mine if ranks is not None else np.zeros_like(value)
        left = count - int(low.sum()) - mine
        value = value + _fill(price, places, own, mine, left)
    return value


def _places(costs: StageCosts, prices: Ints, most: Ints, caps: Ints) -> Ints:
    """Places of a kind above the fewest, by line; a rank's cheapest up to its cap.

    A rank holds of a kind at most its cap less the fewest layers of all kinds on its
    stages. Limits by stage and by rank are nested. So dealing to the cheapest first is
    best, and takes the cheapest places of each rank.
    """
    by_rank = stages_by_rank(costs)
    low = reach_of(costs).low.sum(axis=1)[by_rank].sum(axis=1)
    room = np.maximum(caps - low, 0)[:, :, None]
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
    """Value of layers on the cheapest places, *mine* of them on the stages *own*."""
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
