"""Memory of every rank at every moment: rows that are linear in the layer counts.

::

    memory = sum over chunks, terms of weight * sum of the term over the chunk's units
             + largest unit at work on the chunks that work

A row is one rank at one moment: the start of a backward, or an idle moment. The weights
of a backward are 1 for static states, 1 for the gradients that the chunk at work
accumulates, and the micro-batches in flight for what each of them holds. Evaluation,
bounds, constraints and the breakdown read these rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner.cost.meshes import Ints
from planner.cost.pipeline.in_flight import peak_columns
from planner.cost.pipeline.linear import Linear
from planner.cost.pipeline.splits import Counts, stages_by_rank
from planner.cost.reach import Mask
from planner.specs.table import EndCosts, IdleMoment, LayerCosts, StageCosts

STATIC, ACCUMULATED, SAVED, PENDING = range(4)
"""Terms of the rows of the passes. [1]"""


class MemoryRow(NamedTuple):
    """Memory of one rank at one moment."""

    rank: int
    line: Linear
    """Memory without the unit at work. [block]"""
    working: list[int]
    """Stages of which one unit is at work. [1]"""
    layers_at_work: Ints
    """Memory of a layer at work. [block], shape (kinds, menu)"""
    end_at_work: int
    """Largest memory of an end at work, 0 without an end. [block]"""
    budget: int
    """Memory left for states and activations. [block]"""


@dataclass(frozen=True)
class MemoryRows:
    """Memory of ranks at moments of one kind: those of the passes, or one idle."""

    rank: Ints
    """Pipeline rank, in order. [1], shape (rows,)"""
    stages: Ints
    """Virtual stages of every pipeline rank, by chunk. [1], shape (pp, vpp)"""
    working: Ints
    """Stages of which one unit is at work. [1], shape (rows, chunks at work)"""
    weights: Ints
    """Times that each term of a chunk counts. [1], shape (terms, rows, vpp)"""
    layers: Ints
    """Terms of one layer. [block], shape (kinds, menu, terms)"""
    ends: Ints
    """Terms of the embedding and of the head. [block], shape (2, terms)"""
    layers_at_work: Ints
    """Memory of a layer at work. [block], shape (kinds, menu)"""
    ends_at_work: Ints
    """Memory of the embedding at work, and of the head. [block], shape (2,)"""
    budget: int
    """Memory left for states and activations on each rank. [block]"""
    depth: int
    """Virtual stages of the model. [1]"""

    def take(self, rows: npt.NDArray[np.bool_]) -> "MemoryRows":
        """Keep some rows.

        Args:
            rows: True for rows to keep. shape (rows,)
        """
        rank, working = self.rank[rows], self.working[rows]
        return replace(self, rank=rank, working=working, weights=self.weights[:, rows])

    def blocks(self, counts: Counts) -> Ints:
        """Memory of every row at a split, or at several.

        Args:
            counts: Layers. [1], shape (..., stages, kinds, menu)

        Returns:
            Memory. [block], shape (..., rows)
        """
        layers = counts[..., self.stages[self.rank], :, :]
        by_row = np.einsum("...rckm,rckm->...r", layers, self.factors) + self.constants
        memory: Ints = by_row + self.at_work(counts)
        return memory

    def by_chunk(self, terms: Ints) -> Ints:
        """Memory of every chunk, without the unit at work.

        Args:
            terms: Memory of each stage by term. [block], shape (..., stages, terms)

        Returns:
            Memory. [block], shape (..., rows, vpp)
        """
        on_chunks = self._on_chunks(terms)
        return np.asarray(np.einsum("trc,...trc->...rc", self.weights, on_chunks))

    def by_term(self, counts: Counts) -> Ints:
        """Memory of every row at a split without the unit at work, by term.

        Returns:
            Memory. [block], shape (terms, rows)
        """
        flat = counts.reshape(self.depth, -1)
        of_layers = flat @ self.layers.reshape(-1, self.layers.shape[-1])
        terms = self._on_chunks(of_layers + self._ends_by_stage)
        memory: Ints = np.einsum("trc,trc->tr", self.weights, terms)
        return memory

    def _on_chunks(self, terms: Ints) -> Ints:
        """Terms of stages on the chunks. [block], shape (..., terms, rows, vpp)."""
        by_term = np.moveaxis(terms, -1, -2)
        return np.asarray(by_term[..., self.stages[self.rank]])

    def at_work(self, counts: Counts) -> Ints:
        """Memory of the largest unit at work at a split.

        Args:
            counts: Layers. [1], shape (..., stages, kinds, menu)

        Returns:
            Memory. [block], shape (..., rows)
        """
        units = self.largest_layer(counts)
        for stage, end in zip((0, -1), self.ends_at_work.tolist(), strict=True):
            units[..., stage] = np.maximum(units[..., stage], end)
        largest: Ints = units[..., self.working].max(axis=-1)
        return largest

    def largest_layer(self, counts: Counts) -> Ints:
        """Memory of the largest layer at work on every stage, the ends left out.

        Args:
            counts: Layers. [1], shape (..., stages, kinds, menu)

        Returns:
            Memory. [block], shape (..., stages)
        """
        largest: Ints = np.where(counts > 0, self.layers_at_work, 0).max(axis=(-2, -1))
        return largest

    @cached_property
    def factors(self) -> Ints:
        """Memory of a layer. [block], shape (rows, vpp, kinds, menu)."""
        factors: Ints = np.einsum("trc,kmt->rckm", self.weights, self.layers)
        return factors

    @cached_property
    def constants(self) -> Ints:
        """Memory of the ends without an end at work. [block], shape (rows,)."""
        constants: Ints = np.einsum("rc->r", self.by_chunk(self._ends_by_stage))
        return constants

    @cached_property
    def end_at_work(self) -> Ints:
        """Largest memory of an end at work, else 0. [block], shape (rows,)."""
        return self.at_work(np.zeros((self.depth, 1, 1), dtype=np.int64))

    @cached_property
    def _ends_by_stage(self) -> Ints:
        """Terms of the ends on their stages. [block], shape (stages, terms)."""
        by_stage = np.zeros((self.depth, self.ends.shape[1]), dtype=np.int64)
        by_stage[0] += self.ends[0]
        by_stage[-1] += self.ends[1]
        return by_stage

    def each(self) -> Iterator[MemoryRow]:
        """Give the rows one by one."""
        shape = (self.depth, *self.layers_at_work.shape)
        for row, rank in enumerate(self.rank.tolist()):
            factors = np.zeros(shape, dtype=np.int64)
            factors[self.stages[rank]] = self.factors[row]
            yield MemoryRow(
                rank,
                Linear(int(self.constants[row]), factors),
                self.working[row].tolist(),
                self.layers_at_work,
                int(self.end_at_work[row]),
                self.budget,
            )


def memory_rows(costs: StageCosts) -> tuple[MemoryRows, ...]:
    """Rows of all ranks at all moments that can be the fullest of a rank."""
    return (*passing_rows(costs), *idle_rows(costs))


@lru_cache(maxsize=16)
def passing_rows(costs: StageCosts) -> tuple[MemoryRows, ...]:
    """Rows of all ranks at the fullest starts of a backward."""
    return tuple(_passes(host, ranks) for host, ranks in _hosted(costs))


@lru_cache(maxsize=16)
def idle_rows(costs: StageCosts) -> tuple[MemoryRows, ...]:
    """Rows of the idle moments, on the ranks where a moment can be the fullest."""
    columns = (
        idle_moment_rows(host, moment, fullest_on(host, moment) & ranks)
        for host, ranks in _hosted(costs)
        for moment in host.idle
    )
    return tuple(rows for rows in columns if len(rows.rank))


def rank_blocks(costs: StageCosts, counts: Counts) -> Counts:
    """Peak memory of every rank for states and activations, as the limit counts it.

    Args:
        counts: Layers. [1], shape (..., stages, kinds, menu)

    Returns:
        Memory. [block], shape (..., pp)
    """
    peaks = np.full((*counts.shape[:-3], costs.pp), np.iinfo(np.int64).min)
    for rows in memory_rows(costs):
        first = np.flatnonzero(np.diff(rows.rank, prepend=-1))
        most = np.maximum.reduceat(rows.blocks(counts), first, axis=-1)
        ranks = rows.rank[first]
        peaks[..., ranks] = np.maximum(peaks[..., ranks], most)
    return peaks


def spared_blocks(costs: StageCosts, counts: Counts) -> Ints:
    """Counted states of every rank that the limit on the risk leaves out.

    Returns:
        Memory. [block], shape (pp,)
    """
    spared = np.zeros(costs.pp, dtype=np.int64)
    for host, ranks in _hosted(costs):
        layer_spared = np.array([layer.spared for layer in host.layers])
        by_stage = counts.sum(axis=2) @ layer_spared
        by_stage[0] += host.embedding.spared
        by_stage[-1] += host.head.spared
        by_rank = by_stage[stages_by_rank(costs)].sum(axis=1)
        spared = np.where(ranks, by_rank, spared)
    return spared


def fits(costs: StageCosts, counts: Counts) -> bool:
    """Tell if every rank stays within the budget at one split, as ``which_fit``."""
    return bool(which_fit(costs, counts))


def which_fit(costs: StageCosts, splits: Counts) -> Mask:
    """Tell for each of several splits if every rank stays within the budget.

    Args:
        splits: Layers. [1], shape (..., stages, kinds, menu)

    Returns:
        True for the splits that are admitted. shape (...)
    """
    within = rank_blocks(costs, splits) <= np.array(costs.budgets)
    return np.asarray(within.all(axis=-1))


def fullest_on(costs: StageCosts, moment: IdleMoment) -> Mask:
    """Tell which ranks can hold more at an idle moment than their states.

    On all other ranks some backward holds the states and more.

    Returns:
        True for each such rank. shape (pp,)
    """
    if moment.on_layers:
        return np.ones(costs.pp, dtype=bool)
    stages = stages_by_rank(costs)
    first = (stages == 0).any(axis=1)
    last = (stages == costs.stages - 1).any(axis=1)
    return np.asarray(moment.on_embedding & first | moment.on_head & last)


def idle_moment_rows(costs: StageCosts, moment: IdleMoment, ranks: Mask) -> MemoryRows:
    """Rows of one idle moment, with static and held memory as a single term.

    Args:
        ranks: Ranks to give. shape (pp,)
    """
    stages = stages_by_rank(costs)
    pairs = zip(costs.layers, moment.layers, strict=True)
    layers = [[[layer.static + extra] for extra in row] for layer, row in pairs]
    first = costs.embedding.static + moment.embedding
    last = costs.head.static + moment.head
    return MemoryRows(
        rank=np.flatnonzero(ranks),
        stages=stages,
        working=stages[ranks],
        weights=np.ones((1, ranks.sum(), costs.vpp), dtype=np.int64),
        layers=np.array(layers, dtype=np.int64),
        ends=np.array([[first], [last]], dtype=np.int64),
        layers_at_work=np.array(moment.beside, dtype=np.int64),
        ends_at_work=np.array([moment.embedding_beside, moment.head_beside]),
        budget=costs.budget,
        depth=costs.stages,
    )


def _passes(costs: StageCosts, ranks: Mask) -> MemoryRows:
    """Rows of one pool at the fullest starts of a backward."""
    at = peak_columns(costs.schedule, costs.pp, costs.vpp, costs.micro_batches)
    stages = stages_by_rank(costs)
    rows = MemoryRows(
        rank=at.rank,
        stages=stages,
        working=stages[at.rank, at.chunk][:, None],
        weights=at.weights,
        layers=np.array([_layer(layer) for layer in costs.layers], dtype=np.int64),
        ends=np.array([_end(costs.embedding), _end(costs.head)], dtype=np.int64),
        layers_at_work=np.array([layer.transient for layer in costs.layers]),
        ends_at_work=np.array([costs.embedding.transient, costs.head.transient]),
        budget=costs.budget,
        depth=costs.stages,
    )
    return rows if ranks.all() else rows.take(ranks[at.rank])


def _layer(layer: LayerCosts) -> list[tuple[int, int, int, int]]:
    """Terms of a layer by entry of the menu. [block]."""
    return [
        (layer.static, layer.accumulated, saved, layer.pending) for saved in layer.saved
    ]


def _end(end: EndCosts) -> tuple[int, int, int, int]:
    """Terms of an end. [block]."""
    return end.static, end.accumulated, end.saved, end.pending


def _hosted(costs: StageCosts) -> list[tuple[StageCosts, Mask]]:
    """The problem on each hosting pool, and the pool's ranks."""
    if not costs.hosts:
        return [(costs, np.ones(costs.pp, dtype=bool))]
    pool_of_rank = np.array(costs.pool_of_rank)
    return [(host, pool_of_rank == pool) for pool, host in enumerate(costs.hosts)]
