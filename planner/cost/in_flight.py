"""Micro-batches in flight on every rank when a backward starts, by schedule shape."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.cost.meshes import Ints
from planner.schedules.inflight import Peak, peaks


@lru_cache(maxsize=4096)
def peak_vectors(
    schedule: str, pp: int, vpp: int, micro_batches: int
) -> tuple[tuple[Peak, ...], ...]:
    """Pareto-maximal in-flight counts of every rank, read from the order.

    Args:
        schedule: Name of a schedule. [text]
        pp: Pipeline ranks. [1]
        vpp: Chunks per rank. [1]
        micro_batches: Micro-batches per step. [1]

    Returns:
        Peaks by rank. shape (pp,)
    """
    return peaks(schedule, pp, vpp, micro_batches)


@dataclass(frozen=True)
class PeakColumns:
    """The peaks of all ranks of a schedule's shape, rank by rank."""

    rank: Ints
    """Pipeline rank. [1], shape (peaks,)"""
    chunk: Ints
    """Chunk whose backward starts. [1], shape (peaks,)"""
    held: Ints
    """Micro-batches in flight by chunk. [1], shape (peaks, vpp)"""
    pending: Ints
    """Micro-batches in flight that wait for their W. [1], shape (peaks, vpp)"""
    starts: Ints
    """First peak of every rank; every rank has a peak. [1], shape (pp,)"""


@lru_cache(maxsize=1024)
def peak_columns(schedule: str, pp: int, vpp: int, micro_batches: int) -> PeakColumns:
    """Peaks of every rank as columns, for arithmetic on all of them at once.

    Args:
        schedule: Name of a schedule. [text]
        pp: Pipeline ranks. [1]
        vpp: Chunks per rank. [1]
        micro_batches: Micro-batches per step. [1]

    Returns:
        Columns over the peaks.
    """
    table = peak_vectors(schedule, pp, vpp, micro_batches)
    flat = [peak for of_rank in table for peak in of_rank]
    each = [len(of_rank) for of_rank in table]
    return PeakColumns(
        np.repeat(np.arange(pp), each),
        np.array([peak.chunk for peak in flat]),
        np.array([peak.counts for peak in flat]).reshape(len(flat), vpp),
        np.array([peak.pending for peak in flat]).reshape(len(flat), vpp),
        np.cumsum([0, *each[:-1]]),
    )
