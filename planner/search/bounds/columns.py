"""Columns of the table spread over the candidates, for bounds on whole spaces."""

from dataclasses import dataclass

import numpy as np

from planner.cost.meshes import Floats, Ints
from planner.cost.pipeline.in_flight import least_in_flight
from planner.cost.reach import Mask
from planner.cost.table.table import CostTable
from planner.search.space.blocks import CHOSEN, block_work
from planner.search.space.schedules import COPIES, FOLDS, SPLITS
from planner.search.space.space import Space

ROUNDED_UP = 1 + 1e-12
"""Factor above the rounding of a quotient, so that no whole multiple is lost. [1]"""


@dataclass(frozen=True)
class Columns:
    """Table columns spread over the candidates. Times in ns, memory in blocks."""

    p: Ints
    v: Ints
    m: Ints
    most: Ints
    work: Floats
    """Forward and backward of the whole model for one micro-batch. [ns]"""
    back: Floats
    """Backward of the whole model for one micro-batch. [ns]"""
    layer: Floats
    """Cheapest layer: forward and backward; forward alone if backwards split. [ns]"""
    split: Mask
    """Weight gradients are operations of their own. [bool]"""
    folded: Mask
    """Chunks lie in a V. [bool]"""
    copies: Ints
    """Copies of the model that the ranks hold. [1]"""
    embedding: Floats
    """Forward and backward of the embedding. [ns]"""
    head: Floats
    """Forward and backward of the head. [ns]"""
    tail: Floats
    """Mean update of a rank, and the host's work after it. [ns]"""
    times: tuple[tuple[int, Floats], ...]
    """(layers, forward and backward) of every layer kind, cheapest menu entry. [ns]"""
    transient: Floats
    budget: Floats
    kinds: tuple[tuple[int, Floats, Floats], ...]
    """(layers, static, saved) of every layer kind, cheapest menu entry. [block]"""


@dataclass(frozen=True)
class Folds:
    """Columns of the table by menu entry, then by mesh; the cheapest entry is last."""

    work: Floats
    back: Floats
    layer: Floats
    forward: Floats
    transient: Floats
    saved: tuple[Floats, ...]
    """By layer kind."""
    both: tuple[Floats, ...]
    """Forward and backward by layer kind."""

    @classmethod
    def of(cls, table: CostTable) -> "Folds":
        """Fold the layer kinds of a table, once for all candidates."""
        counts = _counts(table).astype(np.float64)
        both = table.forward + table.backward

        def least(values: Ints) -> Floats:
            columns = [values.min(axis=0), values.min(axis=(0, 1))[None]]
            return np.concatenate(columns).astype(np.float64).ravel()

        def summed(values: Ints) -> Floats:
            # Whole numbers: exact in any order. Threads of BLAS would cost more.
            columns = [
                np.einsum("k,kem->em", counts, values),
                np.einsum("k,km->m", counts, values.min(axis=1))[None],
            ]
            return np.concatenate(columns).ravel()

        return cls(
            work=summed(both),
            back=summed(table.backward),
            layer=least(both),
            forward=least(table.forward),
            transient=least(table.transient),
            saved=tuple(least(saved[None]) for saved in table.saved),
            both=tuple(least(times[None]) for times in both),
        )


def columns_of(table: CostTable, space: Space, folds: Folds | None = None) -> Columns:
    """Spread the columns of a table over candidates.

    Returns:
        Columns of shape (candidates,).
    """
    folds = folds or Folds.of(table)
    mesh, pick = space.mesh, space.menu
    place = np.where(pick < 0, len(table.menu), pick) * len(table) + mesh
    split, p, v = SPLITS[space.schedules], table.meshes.pp[mesh], space.vpp
    copies, counts = COPIES[space.schedules], _counts(table)
    embedding, head = (
        (end.forward + end.backward)[mesh].astype(np.float64)
        for end in (table.embedding, table.head)
    )
    back = table.embedding.backward[mesh] + table.head.backward[mesh]
    extra, stages = block_work(table, p, v, pick, mesh), p * v // copies
    return Columns(
        p=p,
        v=v,
        m=table.meshes.micro_batches[mesh],
        most=_most_of_stage(table, space, stages),
        work=folds.work[place] + embedding + head + extra,
        back=folds.back[place] + back,
        layer=np.where(split, folds.forward[place], folds.layer[place]),
        split=split,
        folded=FOLDS[space.schedules],
        copies=copies,
        embedding=embedding,
        head=head,
        tail=copies * _updates(table)[mesh] / p + table.overhead,
        times=tuple(
            (count, both[place])
            for count, both in zip(counts.tolist(), folds.both, strict=True)
        ),
        transient=folds.transient[place],
        budget=table.budget[mesh].astype(np.float64),
        kinds=tuple(
            (count, unit.static[mesh].astype(np.float64), saved[place])
            for count, unit, saved in zip(
                counts.tolist(), table.units, folds.saved, strict=True
            )
        ),
    )


def _most_of_stage(table: CostTable, space: Space, stages: Ints) -> Ints:
    """Most layers of one virtual stage of every candidate's class. [1]."""
    even = -(-int(_counts(table).sum()) // stages)
    most: Ints = even + table.extra_layers(stages, space.vpp)
    if len(table.each) == 1 or not space.hostings:
        return most
    return np.minimum(most, _most_on_pools(table, space, even))


def _most_on_pools(table: CostTable, space: Space, even: Ints) -> Ints:
    """Most layers of a stage where pools differ, as ``cost.table.mixed`` has it. [1].

    Rounded up where floating point does not tell. Blocks of recompute have no limit
    here, as their quickest layers are not of the whole menu.
    """
    layers, hosting = int(_counts(table).sum()), space.hosted()
    times = np.array([_quickest(part, space) for part in table.each], dtype=np.float64)
    budgets = [np.maximum(part.budget[space.mesh], 1) for part in table.each]
    most = even.astype(np.float64)
    for rates in (1.0 / np.maximum(times, 1.0), np.array(budgets, dtype=np.float64)):
        weight = (hosting.T * rates).sum(axis=0) * space.vpp
        share = layers * rates.max(axis=0) / weight
        most = np.maximum(most, np.ceil(share * ROUNDED_UP))
    free = int(table.pricing.search.space == "full")
    most = np.minimum(most + 1 + free, layers)
    return np.where(space.menu < CHOSEN, layers, most).astype(np.int64)


def _quickest(table: CostTable, space: Space) -> Ints:
    """Forward and backward of a candidate's quickest layer on one pool. [ns]."""
    both = (table.forward + table.backward).min(axis=0)
    return at_entry(both[:, space.mesh], space)


def at_entry(values: Ints, space: Space) -> Ints:
    """Value under the menu entry of every candidate, the least where it is free.

    Args:
        values: Costs by menu entry. [-], shape (menu, candidates)
        space: Candidates.

    Returns:
        Costs. [-], shape (candidates,)
    """
    fixed = np.take_along_axis(values, np.maximum(space.menu, 0)[None], axis=0)[0]
    found: Ints = np.where(space.menu < 0, values.min(axis=0), fixed)
    return found


def _counts(table: CostTable) -> Ints:
    """Layers of every kind. [1], shape (kinds,)."""
    counts = np.zeros(len(table.pricing.kinds), dtype=np.int64)
    for kind, count in table.pricing.runs:
        counts[kind] += count
    return counts


def _updates(table: CostTable) -> Floats:
    """Optimizer of all layers and both ends. [ns], shape (meshes,)."""
    units = [unit.optimizer for unit in table.units]
    ends = table.embedding.unit.optimizer + table.head.unit.optimizer
    updates: Floats = _counts(table) @ np.array(units) + ends * 1.0
    return updates


def most_on_rank(
    c: Columns, at: Ints, rank: int, static: Floats, saved: Floats
) -> Floats:
    """Most layers of one kind that a rank can hold, see ``bounds.may_fit``.

    Args:
        c: Columns of candidates.
        at: Candidates. [1]
        rank: Pipeline rank. [1]
        static: Memory of a layer that does not depend on time. [block]
        saved: Memory that a layer keeps for a micro-batch. [block]

    Returns:
        Layers. [1], shape of *at*
    """
    v, most = c.v[at], c.most[at]
    held, one_chunk = least_in_flight(
        rank,
        c.p[at],
        v,
        c.m[at],
        split=c.split[at],
        copies=c.copies[at],
        folded=c.folded[at],
    )
    room = c.budget[at] - c.transient[at]
    room = room - saved[at] * most * (held - one_chunk * v)
    each = np.maximum(static[at] + saved[at] * one_chunk, 1.0)
    return np.clip(np.floor(room / each), 0, v * most)
