"""How many micro-batches hold their activations, read from the operation order."""

from collections.abc import Iterable
from functools import lru_cache
from operator import le
from typing import NamedTuple

from planner.schedules.operation import BACKWARD, FORWARD, Kind, Op
from planner.schedules.order import SPLIT, operations


class Peak(NamedTuple):
    """What a rank holds when a backward of ``chunk`` starts.

    ``counts[j]`` is the number of micro-batches whose activations of chunk j are
    held, that of the starting backward among them. [1], shape (v,)
    """

    chunk: int
    counts: tuple[int, ...]


@lru_cache(maxsize=256)
def peaks(schedule: str, p: int, v: int, m: int) -> tuple[tuple[Peak, ...], ...]:
    """Every rank's fullest moments: no other start of a backward holds more.

    Activations are held from the start of F to the end of B, or of W where the
    schedule has one. Of one chunk only the Pareto-maximal counts are kept, so
    for any sizes ``a_j >= 0`` of the chunks and any ``t`` of the backwards::

        max over backwards (t[chunk] + sum_j a_j counts_j)

    over these peaks equals that over all backwards of the rank.

    Args:
        schedule: One of ``SCHEDULES``. [text]
        p: Pipeline ranks. [1]
        v: Chunks of a rank. [1]
        m: Micro-batches in a step. [1]

    Returns:
        The peaks of every rank, by chunk. [1], shape (p, peaks of the rank)

    Raises:
        ValueError: The schedule is unknown or does not exist for these numbers.

    Leaves out that B of a zero-bubble schedule already frees a part of what W
    does not need: everything is held until W.
    """
    release: Kind = "W" if schedule in SPLIT else "B"
    return tuple(
        tuple(
            Peak(chunk, counts)
            for chunk, seen in enumerate(_held_at_backwards(order, v, release))
            for counts in _pareto(seen)
        )
        for order in operations(schedule, p, v, m)
    )


def in_flight(schedule: str, p: int, v: int, m: int, rank: int) -> int:
    """Give the peak number of chunks whose activations a rank holds.

    Closed forms, in chunks: gpipe m; 1f1b ``min(m, p - r)``; interleaved
    ``min(m v, 2 (p - r - 1) + (v - 1) p + 1)``; zb-h1 ``min(m, p)``. For enough
    micro-batches: zb-v ``2 p``, dualpipe-v ``2 p + 1``, each of half a rank;
    dualpipe ``p + 1``, each of a whole stage.

    Args:
        schedule: One of ``SCHEDULES``. [text]
        p: Pipeline ranks. [1]
        v: Chunks of a rank. [1]
        m: Micro-batches in a step. [1]
        rank: Pipeline rank, 0 first. [1]

    Returns:
        Chunks in flight; divide by v for stages, but not in dualpipe. [1]

    Raises:
        ValueError: The schedule is unknown or does not exist for these numbers.
    """
    return max(sum(peak.counts) for peak in peaks(schedule, p, v, m)[rank])


def _held_at_backwards(
    order: tuple[Op, ...], v: int, release: Kind
) -> list[set[tuple[int, ...]]]:
    """Collect, by chunk, the counts that its backwards find when they start."""
    held = [0] * v
    seen: list[set[tuple[int, ...]]] = [set() for _ in range(v)]
    for kind, _, chunk in order:
        if kind in FORWARD:
            held[chunk] += 1
        elif kind in BACKWARD:
            seen[chunk].add(tuple(held))
        if kind == release:
            held[chunk] -= 1
    return seen


def _pareto(vectors: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Keep the vectors that no other one covers, in descending order.

    A vector is covered only by one of larger sum, so one sorted pass is enough.
    """
    kept: list[tuple[int, ...]] = []
    for vector in sorted(vectors, key=lambda counts: (sum(counts), counts))[::-1]:
        if not any(all(map(le, vector, other)) for other in kept):
            kept.append(vector)
    return kept
