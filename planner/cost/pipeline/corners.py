"""Least durations over all splits in a box: those of its lower corner."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from planner.cost.pipeline.duration_lines import DurationLines
from planner.cost.pipeline.linear import Passes, StepTimes
from planner.cost.pipeline.splits import Counts, splits_backward, stages_by_rank
from planner.specs.table import StageCosts


class Corners(NamedTuple):
    """Layers that every split in a box has on each stage, for several boxes.

    Layers stay in order. So those of a stage hold a window of as many layers of the
    model as the stage has at least, which begins between the least and the most layers
    that the stages before it may hold.
    """

    fewest: Counts
    """Layers. [1], shape (boxes, stages)"""
    low: Counts
    """Of each kind but the first the fewest in any window. [1], (boxes, stages, -)"""
    high: Counts
    """Of each kind but the first the most in any window. [1], (boxes, stages, -)"""

    @classmethod
    def of(cls, costs: StageCosts, fewest: Counts, most: Counts) -> "Corners":
        """Find the windows of boxes that hold a split each.

        Args:
            fewest: Fewest layers of every stage. [1], shape (boxes, stages)
            most: Most layers of every stage. [1], shape (boxes, stages)
        """
        others = range(1, len(costs.layers))
        return cls(fewest, *kinds_within(costs, others, fewest, most, fewest))

    @property
    def terms(self) -> Counts:
        """Factors of :func:`terms_of`. [1], shape (boxes, stages, terms)."""
        return np.concatenate([self.fewest[:, :, None], self.low, self.high], axis=2)


def kinds_within(
    costs: StageCosts,
    kinds: Sequence[int],
    fewest: Counts,
    most: Counts,
    sizes: Counts,
) -> tuple[Counts, Counts]:
    """Count the layers of some kinds in windows that begin where a stage may begin.

    Args:
        fewest: Fewest layers of every stage. [1], shape (boxes, stages)
        most: Most layers of every stage. [1], shape (boxes, stages)
        sizes: Layers of every stage's window, cut off at the end of the model. [1],
            shape (boxes, stages)
    """
    low = np.zeros((*sizes.shape, len(kinds)), dtype=np.int64)
    high = low.copy()
    if not kinds:
        return low, high
    first, last = _starts(costs, fewest, most)
    for size in np.unique(sizes[sizes > 0]).tolist():
        at = sizes == size
        for place, kind in enumerate(kinds):
            lowest, negative = _windows(costs.runs, kind, size)
            low[at, place] = _least_within(lowest, first[at], last[at])
            high[at, place] = -_least_within(negative, first[at], last[at])
    return low, high


def terms_of(times: Counts) -> Counts:
    """Times of which a corner takes the layers of the model's first kind, and others.

    A window has at least ``low`` and at most ``high`` layers of each other kind. Each
    adds its time above that of the first kind, or takes off what it takes less.

    Args:
        times: Times of a layer by kind. shape (..., kinds)

    Returns:
        Time of the first kind, what the others take more, what they take less.
        shape (..., 2 kinds - 1)
    """
    more = times[..., 1:] - times[..., :1]
    columns = times[..., :1], np.maximum(more, 0), np.minimum(more, 0)
    return np.concatenate(columns, axis=-1)


def corner_durations(lines: DurationLines, corners: Corners) -> Counts:
    """Durations that no split in a box goes below, by slot.

    Returns:
        Durations. [ns], shape (slots, boxes)
    """
    costs, by_stage = lines.costs, corners.terms
    by_rank = by_stage[:, stages_by_rank(costs)].sum(axis=2)
    tiled = np.tile(by_stage, (1, 7 * costs.copies, 1))
    nothing = np.zeros_like(by_stage[:, :1])
    layers = np.concatenate([tiled, by_rank, nothing], axis=1)
    times = terms_of(lines.slopes.min(axis=1).T)
    lowest: Counts = np.einsum("bst,st->sb", layers, times) + lines.fixed[:, None]
    return lowest


class CornerPaths(NamedTuple):
    """Boxes that hold every split of a class, each with a path of the shape.

    No split in a box is faster than the box's path at the least durations, whatever
    the costs. So the least path bounds every problem of the shape and class.
    """

    weights: Counts
    """Times that the path of each box passes each of :func:`_columns`. [1]"""
    split: bool
    """Weight gradients are operations of their own. [bool]"""

    @classmethod
    def of(
        cls, costs: StageCosts, corners: Corners, counts: Counts, p2p: Counts
    ) -> "CornerPaths":
        """Add up what the path of each box passes.

        Args:
            costs: An inner problem on one pool, for the shape and the class alone.
            counts: Slots on the path of each box. [1], shape (boxes, slots)
            p2p: Transfers on each path. [1], shape (boxes,)
        """
        passes, boxes = Passes.of(costs, counts), len(p2p)
        patterns = np.concatenate(
            [passes.slots[:, :5], passes.updates[:, None]], axis=1
        )
        layers = np.einsum("bcs,bst->bct", patterns, corners.terms)
        edges = passes.slots[:, 5:]
        edges = np.add.reduceat(edges, _unlike(costs.stages), axis=2)
        columns = layers, patterns[:, :, 0], patterns[:, :, -1], edges
        rest = p2p[:, None], passes.optimizers.sum(axis=1, keepdims=True)
        flat = [column.reshape(boxes, -1) for column in (*columns, *rest)]
        return cls(np.concatenate(flat, axis=1), splits_backward(costs))

    def least(self, times: StepTimes) -> Counts:
        """Bound the steps of several problems by the least path of each.

        Args:
            times: Times with the problems in front, on one pool. [ns]

        Returns:
            Bounds. [ns], shape (problems,)
        """
        bounds: Counts = (self.weights @ _columns(times, split=self.split)).min(axis=0)
        return bounds


def _columns(times: StepTimes, *, split: bool) -> Counts:
    """Times that paths are made of, at the corners of boxes. [ns], (-, problems).

    Those of a layer by slot and term, of both ends, first gathers and last scatters of
    the first stage, one between and the last, a transfer, and the host's work.
    """
    by_menu, rest = times.layers[:2], times.layers[2:]
    layers = [*(durations.min(axis=3) for durations in by_menu), *rest]
    kinds = np.stack([durations[:, 0] for durations in layers], axis=1)
    problems, stages = len(kinds), times.edges[0].shape[1]
    edges = [edge[:, _unlike(stages)] for edge in times.edges]
    p2p = np.broadcast_to(times.p2p, problems)
    columns = (
        terms_of(_in_slots(kinds, split=split)),
        _in_slots(times.embedding, split=split),
        _in_slots(times.head, split=split),
        *edges,
        p2p,
        np.full(problems, times.overhead),
    )
    flat = [column.reshape(problems, -1) for column in columns]
    return np.concatenate(flat, axis=1).T


def _in_slots(times: Counts, *, split: bool) -> Counts:
    """Forward to weight of ``LayerTimes`` as F, B, W, GATHER, SCATTER, OPT. [ns]."""
    forward, backward, gather, scatter, optimizer, weight = np.moveaxis(times, 1, 0)
    late = weight if split else np.zeros_like(weight)
    slots = forward, backward - late, late, gather, scatter, optimizer
    return np.stack(slots, axis=1)


def _unlike(stages: int) -> list[int]:
    """First of the stages with edges of their own, on one pool. [1]."""
    return sorted({0, min(1, stages - 1), stages - 1})


def _starts(costs: StageCosts, fewest: Counts, most: Counts) -> tuple[Counts, Counts]:
    """Least and most layers before every stage. [1], shape (boxes, stages).

    One number for both in boxes that hold no split.
    """
    layers = costs.layer_count
    before = np.cumsum(fewest, axis=1) - fewest, np.cumsum(most, axis=1) - most
    behind = (
        fewest.sum(axis=1, keepdims=True) - before[0],
        most.sum(axis=1, keepdims=True) - before[1],
    )
    first = np.clip(np.maximum(before[0], layers - behind[1]), 0, layers)
    return first, np.clip(np.minimum(before[1], layers - behind[0]), first, layers)


@lru_cache(maxsize=1024)
def _windows(
    runs: tuple[tuple[int, int], ...], kind: int, size: int
) -> tuple[list[Counts], list[Counts]]:
    """Layers of a kind in the window behind each layer, and the same below zero.

    Each as the least over spans of one, two, four and so on of them.
    """
    of_layer = np.repeat(*np.array(runs).T)
    layers_before = np.concatenate([[0], np.cumsum(of_layer == kind)])
    ends = np.minimum(np.arange(len(layers_before)) + size, len(layers_before) - 1)
    return _doubled(layers_before[ends] - layers_before), _doubled(
        layers_before - layers_before[ends]
    )


def _doubled(values: Counts) -> list[Counts]:
    """Least of one value, of two, of four and so on, from each on."""
    rows = [values]
    while 2 ** len(rows) <= len(values):
        step = 2 ** (len(rows) - 1)
        rows.append(np.minimum(rows[-1][:-step], rows[-1][step:]))
    return rows


def _least_within(rows: list[Counts], first: Counts, last: Counts) -> Counts:
    """Least of the values from a first to a last place, for several spans."""
    starts = np.empty(len(first), dtype=np.int64)
    level = np.log2(last - first + 1).astype(np.int64)
    for at in np.unique(level).tolist():
        some = level == at
        ends = first[some], last[some] + 1 - 2**at
        starts[some] = np.minimum(rows[at][ends[0]], rows[at][ends[1]])
    return starts
