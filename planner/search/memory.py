"""Proof that a candidate cannot fit, over all ranks and moments at once."""

from functools import lru_cache

import numpy as np

from planner.cost.hosted import pick_ranks
from planner.cost.in_flight import PeakColumns, peak_columns
from planner.cost.meshes import Ints
from planner.cost.pipeline import stages_by_rank
from planner.cost.reach import reach_of
from planner.specs.table import IdleMoment, StageCosts


def cannot_fit(costs: StageCosts) -> bool:
    """Prove that no split fits: the ranks' largest loads sum below the layers.

    A rank's memory depends on the chunks of that rank alone. At each moment the
    most layers are reached by filling the cheapest chunks first with the cheapest
    kind. The least number over all moments bounds the rank. The ranks together must
    hold every copy of the model.

    Args:
        costs: The inner problem.

    Returns:
        True only if nothing can fit.
    """
    loads = most_layers(costs)
    return bool(loads.min() < 0 or loads.sum() < costs.held_layers)


@lru_cache(maxsize=256)
def most_layers(costs: StageCosts) -> Ints:
    """Most layers that every rank can hold; -1 where not even the fewest fit.

    Args:
        costs: The inner problem.

    Returns:
        An upper bound, from one moment at a time. [1], shape (pp,)
    """
    if costs.hosts:
        return pick_ranks(costs, [most_layers(host) for host in costs.hosts])
    loads = _passing_loads(costs)
    for moment in costs.idle:
        if moment.may_be_fullest(first=True, last=True):
            loads = np.minimum(loads, _idle_loads(costs, moment))
    return loads


def _passing_loads(costs: StageCosts) -> Ints:
    """Most layers of every rank at the moments of the passes. [1], shape (pp,)."""
    at = peak_columns(costs.schedule, costs.pp, costs.vpp, costs.micro_batches)
    stages = stages_by_rank(costs)[at.rank]
    working = np.arange(costs.vpp) == at.chunk[:, None]
    low = np.where((stages == 0) | (stages == costs.stages - 1), 0, 1)
    low = np.where(costs.stages == 1, 1, low)
    prices = _cheapest(costs, at, working, stages)
    room = costs.budget - _fixed(costs, at, stages, working, low)
    room = room - (low * prices).sum(axis=1)
    held = low.sum(axis=1) + _fill(prices, costs.most_layers - low, room)
    loads: Ints = np.minimum.reduceat(np.where(room < 0, -1, held), at.starts)
    return loads


def _idle_loads(costs: StageCosts, moment: IdleMoment) -> Ints:
    """Most layers of every rank at an idle moment. [1], shape (pp,).

    No bound where a layer may have negative memory: more such layers would make room.
    """
    stages = stages_by_rank(costs)
    first, last = (stages == 0).any(axis=1), (stages == costs.stages - 1).any(axis=1)
    held = zip(costs.layers, moment.layers, strict=True)
    prices = _least(costs, stages, [layer.static + min(row) for layer, row in held])
    most = np.full(costs.pp, costs.vpp * costs.most_layers)
    if prices.min() < 0:
        return most
    low = np.array(costs.fewest)[stages]
    room = costs.budget - (low * prices).sum(axis=1)
    room = room - first * (costs.embedding.static + moment.embedding)
    room = room - last * (costs.head.static + moment.head)
    beside = np.where(low.any(axis=1), min(map(min, moment.beside)), 0)
    beside = np.maximum(beside, first * moment.embedding_beside)
    beside = np.maximum(beside, last * moment.head_beside)
    room = room - beside
    taken = low.sum(axis=1) + _fill(prices, costs.most_layers - low, room)
    loads: Ints = np.where(room < 0, -1, taken)
    return loads


def _least(costs: StageCosts, stages: Ints, values: list[int]) -> Ints:
    """Least value of the kinds that can reach each stage. [block]."""
    huge = np.iinfo(np.int64).max // 4
    mask = reach_of(costs).mask
    chosen: Ints = np.where(mask, np.array(values), huge).min(axis=1)[stages]
    return chosen


def _cheapest(costs: StageCosts, at: PeakColumns, working: Ints, stages: Ints) -> Ints:
    """Least memory of one layer on each chunk at each moment. [block].

    Least over the kinds that can reach the stage of the chunk.
    """
    static = _least(costs, stages, [layer.static for layer in costs.layers])
    waiting = _least(costs, stages, [layer.accumulated for layer in costs.layers])
    saved = _least(costs, stages, [min(layer.saved) for layer in costs.layers])
    late = _least(costs, stages, [layer.pending for layer in costs.layers])
    price: Ints = static + working * waiting + at.held * saved + at.pending * late
    return price


def _fixed(
    costs: StageCosts, at: PeakColumns, stages: Ints, working: Ints, low: Ints
) -> Ints:
    """Memory of the ends, and the least transient of the stage at work. [block]."""
    total = np.zeros(len(at.rank), dtype=np.int64)
    transient = np.zeros_like(total)
    for stage, end in ((0, costs.embedding), (costs.stages - 1, costs.head)):
        here = stages == stage
        each = end.static + working * end.accumulated + at.held * end.saved
        each = each + at.pending * end.pending
        total += (here * each).sum(axis=1)
        ends = (here & working).any(axis=1) * end.transient
        transient = np.maximum(transient, ends)
    layer = min(min(kind.transient) for kind in costs.layers)
    occupied = (working & (low > 0)).any(axis=1)
    return total + np.maximum(transient, np.where(occupied, layer, 0))


def _fill(prices: Ints, places: Ints, room: Ints) -> Ints:
    """Most layers within *room*, cheapest places first. [1]."""
    order = np.argsort(prices, axis=1, kind="stable")
    price = np.take_along_axis(prices, order, axis=1)
    place = np.take_along_axis(places, order, axis=1)
    spent = np.cumsum(price * place, axis=1) - price * place
    taken = np.clip((room[:, None] - spent) // np.maximum(price, 1), 0, place)
    taken = np.where(price == 0, place, taken)
    layers: Ints = taken.sum(axis=1)
    return layers
