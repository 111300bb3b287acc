"""Proof that a candidate cannot fit, over all ranks and moments at once."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from planner.cost.meshes import Ints
from planner.cost.pipeline.memory_rows import MemoryRows, idle_rows, passing_rows
from planner.cost.pipeline.splits import stages_by_rank
from planner.cost.reach import reach_of
from planner.specs.table import StageCosts


def cannot_fit(costs: StageCosts) -> bool:
    """Prove that no split fits: the ranks' largest loads sum below the layers.

    A rank's memory depends on the chunks of that rank alone. At each moment the
    most layers are reached by filling the cheapest chunks first with the cheapest
    kind. The least number over all moments bounds the rank. The ranks together must
    hold every copy of the model.

    Most of what cannot fit fails in the passes. Idle moments are then not looked at.
    """
    bare = costs.timeless
    return _too_few(bare, _most_in_passes(bare)) or _too_few(bare, most_layers(costs))


def most_layers(costs: StageCosts) -> Ints:
    """Most layers that every rank can hold; -1 where not even the fewest fit.

    Returns:
        An upper bound, from one moment at a time. [1], shape (pp,)
    """
    return _most_at_any_time(costs.timeless)


def _too_few(costs: StageCosts, loads: Ints) -> bool:
    """Tell if ranks with at most these loads cannot hold every copy of the model."""
    return bool(loads.min() < 0 or loads.sum() < costs.held_layers)


@lru_cache(maxsize=1024)
def _most_at_any_time(costs: StageCosts) -> Ints:
    """Most layers of every rank, cached for all problems of equal memory. [1]."""
    return _by_rank(costs, _most_on_pool)


def _most_in_passes(costs: StageCosts) -> Ints:
    """Most layers of every rank while its backwards start. [1], shape (pp,)."""
    return _by_rank(costs, _most_in_passes_on_pool)


def _by_rank(costs: StageCosts, most: Callable[[StageCosts], Ints]) -> Ints:
    """Most layers of every rank on its own pool. [1], shape (pp,).

    They depend on the rank and its pool alone, so that orders of the pools share them.
    """
    if not costs.hosts:
        return most(costs)
    every = np.array([most(host) for host in costs.hosts])
    found: Ints = every[list(costs.pool_of_rank), np.arange(costs.pp)]
    return found


@lru_cache(maxsize=4096)
def _most_on_pool(costs: StageCosts) -> Ints:
    """Most layers of every rank as if one pool hosted all. [1], shape (pp,)."""
    return np.minimum(_most_in_passes_on_pool(costs), _most(costs, idle_rows(costs)))


@lru_cache(maxsize=4096)
def _most_in_passes_on_pool(costs: StageCosts) -> Ints:
    """Most layers of every rank while its backwards start, on one pool. [1]."""
    return _most(costs, passing_rows(costs))


def _most(costs: StageCosts, each: Sequence[MemoryRows]) -> Ints:
    """Most layers that every rank can hold at some moments. [1], shape (pp,)."""
    most = np.full(costs.pp, costs.vpp * costs.most_layers)
    if not each:
        return most
    ranks = np.concatenate([rows.rank for rows in each])
    low = np.array(costs.fewest)[stages_by_rank(costs)][ranks]
    prices = np.concatenate([rows.by_chunk(_cheapest(costs, rows)) for rows in each])
    room = np.concatenate([_room(costs, rows) for rows in each])
    np.minimum.at(most, ranks, _loads(costs, low, prices, room))
    return most


def _loads(costs: StageCosts, low: Ints, prices: Ints, room: Ints) -> Ints:
    """Most layers of the rank of every row. [1], shape (rows,).

    No bound where a layer may have negative memory: more such layers would make room.
    """
    room = room - (low * prices).sum(axis=1)
    held = low.sum(axis=1) + _fill(prices, costs.most_layers - low, room)
    free = (prices < 0).any(axis=1)
    most = np.where(free, costs.vpp * costs.most_layers, held)
    return np.where((room < 0) & ~free, -1, most)


def _room(costs: StageCosts, rows: MemoryRows) -> Ints:
    """Memory left for layers, beside the ends and the unit at work. [block]."""
    room: Ints = rows.budget - rows.constants - _least_at_work(costs, rows)
    return room


def _cheapest(costs: StageCosts, rows: MemoryRows) -> Ints:
    """Least of every term over the layers that can reach each stage. [block]."""
    huge = np.iinfo(np.int64).max // 4
    reaches = reach_of(costs).mask[:, :, None]
    cheapest: Ints = np.where(reaches, rows.layers.min(axis=1), huge).min(axis=1)
    return cheapest


def _least_at_work(costs: StageCosts, rows: MemoryRows) -> Ints:
    """Least memory of the unit at work: the end's, or a layer's. [block]."""
    occupied = (np.array(costs.fewest) > 0)[rows.working].any(axis=1)
    layer = np.where(occupied, rows.layers_at_work.min(), 0)
    least: Ints = np.maximum(rows.end_at_work, layer)
    return least


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
