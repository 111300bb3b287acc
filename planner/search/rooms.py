"""Rows of a candidate's memory: one for every moment that can decide."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.cost.in_flight import peak_columns
from planner.cost.linear import Linear
from planner.cost.meshes import Ints
from planner.cost.pipeline import stages_by_rank
from planner.search.memory import most_layers
from planner.specs.table import StageCosts


class _Moments(NamedTuple):
    """Memory at every peak of every rank, less the budget. [block]."""

    rank: Ints
    """Pipeline rank. [1], shape (peaks,)"""
    constants: Ints
    """Memory without layers, less the budget. [block], shape (peaks,)"""
    factors: Ints
    """Memory of a layer, by chunk. [block], shape (peaks, vpp, kinds, menu)"""

    def take(self, rows: npt.NDArray[np.bool_]) -> "_Moments":
        """Keep some peaks."""
        return _Moments(*(column[rows] for column in self))


def memory_lines(costs: StageCosts) -> list[Linear]:
    """Rows ``line <= 0`` of the memory at the moments that can decide.

    The memory leaves out the transients of layers, which only add to it. Rows that
    hold anyway are left out. A row holds if the rank's largest load fits on the
    dearest chunks. A row also follows from another row of the rank with factors and
    constant at least as large, since counts are never negative.

    Args:
        costs: The inner problem.

    Returns:
        Memory less the budget. [block]
    """
    moments = _moments(costs)
    moments = moments.take(_fullest(costs, moments) > 0)
    moments = moments.take(~_implied(moments))
    shape = (costs.stages, len(costs.layers), len(costs.menu))
    lines = []
    for rank, constant, factors in zip(*moments, strict=True):
        whole = np.zeros(shape, dtype=np.int64)
        whole[stages_by_rank(costs)[rank]] = factors
        lines.append(Linear(int(constant), whole))
    return lines


def _moments(costs: StageCosts) -> _Moments:
    """All peaks as columns: ``peak_linear`` plus the transient of the end."""
    if costs.hosts:
        return _on_own_pool(costs, [_moments(host) for host in costs.hosts])
    at = peak_columns(costs.schedule, costs.pp, costs.vpp, costs.micro_batches)
    stages = stages_by_rank(costs)[at.rank]
    working = (np.arange(costs.vpp) == at.chunk[:, None]).astype(np.int64)
    layers = [_layer(costs, kind) for kind in range(len(costs.layers))]
    terms = np.stack([np.ones_like(working), working, at.held, at.pending], axis=-1)
    factors = np.einsum("pvt,ktm->pvkm", terms, np.array(layers, dtype=np.int64))
    constants = np.full(len(at.rank), -costs.budget, dtype=np.int64)
    beside = np.zeros_like(constants)
    for stage, end in ((0, costs.embedding), (costs.stages - 1, costs.head)):
        here = stages == stage
        each = terms @ np.array([end.static, end.accumulated, end.saved, end.pending])
        constants += (here * each).sum(axis=1)
        own = (here * working).any(axis=1) * end.transient
        beside = np.maximum(beside, own)
    return _Moments(at.rank, constants + beside, factors)


def _on_own_pool(costs: StageCosts, each: Sequence[_Moments]) -> _Moments:
    """Every peak as it is on the pool that hosts the rank."""
    rank = each[0].rank
    pool, rows = np.array(costs.pool_of_rank)[rank], np.arange(len(rank))
    constants = np.array([moments.constants for moments in each])[pool, rows]
    factors = np.array([moments.factors for moments in each])[pool, rows]
    return _Moments(rank, constants, factors)


def _layer(costs: StageCosts, kind: int) -> list[list[int]]:
    """Static, accumulated, saved and pending of a kind, by entry. [block]."""
    layer, entries = costs.layers[kind], len(costs.menu)
    whole = [[value] * entries for value in (layer.static, layer.accumulated)]
    return [*whole, list(layer.saved), [layer.pending] * entries]


def _fullest(costs: StageCosts, moments: _Moments) -> Ints:
    """Largest value of every row: the largest load, dearest chunks first. [block]."""
    prices = -np.sort(-moments.factors.max(axis=(2, 3)), axis=1)
    room = np.maximum(most_layers(costs), 0)[moments.rank][:, None]
    before = np.arange(costs.vpp) * costs.most_layers
    layers = np.clip(room - before, 0, costs.most_layers)
    most: Ints = moments.constants + (np.maximum(prices, 0) * layers).sum(axis=1)
    return most


def _implied(moments: _Moments) -> npt.NDArray[np.bool_]:
    """True where another row of the rank is at least as large in every term."""
    implied = np.zeros(len(moments.rank), dtype=bool)
    flat = moments.factors.reshape(
        len(implied), int(np.prod(moments.factors.shape[1:]))
    )
    terms = np.concatenate([moments.constants[:, None], flat], axis=1)
    for rank in np.unique(moments.rank):
        mine = np.flatnonzero(moments.rank == rank)
        below = (terms[mine, None] <= terms[None, mine]).all(axis=2)
        equal = below & below.T
        # of equal rows the first stays
        implied[mine] = ((below & ~equal) | np.tril(equal, -1)).any(axis=1)
    return implied
