"""Micro-batches in flight on every rank when a backward starts, by schedule shape."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from planner.cost.meshes import Ints
from planner.cost.reach import Mask
from planner.schedules.inflight import Peak, peaks


@lru_cache(maxsize=4096)
def peak_vectors(
    schedule: str, pp: int, vpp: int, micro_batches: int
) -> tuple[tuple[Peak, ...], ...]:
    """Pareto-maximal in-flight counts of every rank, read from the order.

    Returns:
        Peaks by rank. shape (pp,)
    """
    return peaks(schedule, pp, vpp, micro_batches)


@dataclass(frozen=True, eq=False)
class PeakColumns:
    """The peaks of all ranks of a schedule's shape, rank by rank."""

    rank: Ints
    """Pipeline rank. [1], shape (peaks,)"""
    chunk: Ints
    """Chunk whose backward starts. [1], shape (peaks,)"""
    in_flight: Ints
    """Micro-batches in flight by chunk. [1], shape (peaks, vpp)"""
    pending: Ints
    """Micro-batches in flight that wait for their W. [1], shape (peaks, vpp)"""
    starts: Ints
    """First peak of every rank; every rank has a peak. [1], shape (pp,)"""

    @cached_property
    def weights(self) -> Ints:
        """Times that static, accumulated, saved and pending memory count.

        Not to be written to. [1], shape (terms, peaks, vpp).
        """
        works = np.arange(self.in_flight.shape[1]) == self.chunk[:, None]
        weights = np.stack(
            [np.ones_like(self.in_flight), works, self.in_flight, self.pending]
        )
        weights.setflags(write=False)
        return weights


@lru_cache(maxsize=1024)
def peak_columns(schedule: str, pp: int, vpp: int, micro_batches: int) -> PeakColumns:
    """Peaks of every rank as columns, for arithmetic on all of them at once."""
    table = peak_vectors(schedule, pp, vpp, micro_batches)
    flat = [peak for of_rank in table for peak in of_rank]
    chunks = [len(of_rank) for of_rank in table]
    return PeakColumns(
        np.repeat(np.arange(pp), chunks),
        np.array([peak.chunk for peak in flat]),
        np.array([peak.counts for peak in flat]).reshape(len(flat), vpp),
        np.array([peak.pending for peak in flat]).reshape(len(flat), vpp),
        np.cumsum([0, *chunks[:-1]]),
    )


def least_in_flight(
    rank: int, p: Ints, v: Ints, m: Ints, *, split: Mask, copies: Ints, folded: Mask
) -> tuple[Ints, Ints]:
    """Chunks in flight when some backward of a rank starts, for many shapes.

    The closed forms follow from the order of operations:

    - 1F1B: ``min(m, p - r)``; GPipe's m is at least that
    - interleaved: ``min(m v, 2(p-r-1) + (v-1)p + 1)``
    - zb-h1: ``min(m, p)``
    - in a V: at least ``min(m, 2p-1) + 1``, the number of rank 0
    - DualPipe: two V of p / 2 ranks and m / 2 micro-batches

    Args:
        p: Pipeline ranks. [1], shape (shapes,)
        v: Chunks per rank. [1], shape (shapes,)
        m: Micro-batches per step. [1], shape (shapes,)
        split: Weight gradients are operations of their own. shape (shapes,)
        copies: Copies of the model on the ranks. [1], shape (shapes,)
        folded: Chunks lie in a V. shape (shapes,)

    Returns:
        Chunks in flight, at least; and those of any one chunk, at most. [1], shape
        (shapes,)
    """
    deep = np.minimum(m * v, 2 * (p - rank - 1) + (v - 1) * p + 1)
    p, m = p // copies, m // copies
    deep = np.where(folded, np.minimum(m, 2 * p - 1) + 1, deep)
    flat = np.minimum(m, np.where(split, p, p - rank))
    in_flight = np.where(v > 1, deep, flat)
    cycles = np.where(folded, 2, -(-in_flight // (p * v)))
    return in_flight, np.where(v > 1, np.minimum(m, p * cycles), in_flight)
