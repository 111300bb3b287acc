"""Micro-batches that hold their activations, read from the operation order."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import le
from typing import NamedTuple

from planner.schedules.fold import short_step
from planner.schedules.operation import BACKWARD, FORWARD, Kind, Op
from planner.schedules.order import SPLIT, check, operations


class Peak(NamedTuple):
    """Micro-batches that a rank holds when a backward of ``chunk`` starts.

    ``counts[j]`` is the number of micro-batches whose activations of chunk j are
    held, that of the starting backward among them. ``pending[j]`` of these wait for
    their W with the gradients that it needs. The micro-batch of the starting backward
    is among them if its W comes later. [1], shape (v,)
    """

    chunk: int
    counts: tuple[int, ...]
    pending: tuple[int, ...]


@lru_cache(maxsize=256)
def peaks(schedule: str, p: int, v: int, m: int) -> tuple[tuple[Peak, ...], ...]:
    """Fullest moments of every rank: no other start of a backward holds more.

    Activations are held from the start of F to the end of B, or of W if W exists. The
    gradients that a W needs are held from the start of its B. Of each chunk only the
    Pareto-maximal counts are kept. So for any sizes ``a_j, g_j >= 0`` of the chunks and
    any ``t`` of the backwards, the maximum::

        max over backwards (t[chunk] + sum_j (a_j counts_j + g_j pending_j))

    over these peaks equals the maximum over all backwards of the rank.

    Args:
        schedule: One of ``SCHEDULES``. [text]

    Returns:
        The peaks of every rank, by chunk. [1], shape (p, peaks of the rank)

    Raises:
        ValueError: The schedule is unknown or does not exist for these numbers.

    Leaves out that B of a zero-bubble schedule may free a part of what W does not
    need (in PyTorch the graph below the last linear stays whole). Leaves out that the
    gradients grow while B runs: everything is held until W, from the start of B.

    References:
        P. Qi et al., arXiv:2401.10241, section 2.2 (M_B and M_W); PyTorch 2.13,
        ``torch/distributed/pipelining/_backward.py``: ``stage_backward_input``
        retains the graph and keeps the gradient that enters each linear.
    """
    check(schedule, p, v, m)
    release: Kind = "W" if schedule in SPLIT else "B"
    # A rank is fullest before its steady state is over, however long that is.
    orders = operations(schedule, p, v, short_step(schedule, p, v, m, None))
    return tuple(tuple(_fullest(order, v, release)) for order in orders)


def _fullest(order: tuple[Op, ...], v: int, release: Kind) -> Iterator[Peak]:
    """Give the peaks of one rank, by chunk."""
    for chunk, seen in enumerate(_held_at_backwards(order, v, release)):
        for both in _pareto(seen):
            yield Peak(chunk, both[:v], both[v:])


def in_flight(schedule: str, p: int, v: int, m: int, rank: int) -> int:
    """Give the peak number of chunks whose activations a rank holds.

    Closed forms, in chunks: gpipe m; 1f1b ``min(m, p - r)``; interleaved
    ``min(m v, 2 (p - r - 1) + (v - 1) p + 1)``; zb-h1 ``min(m, p)``. For enough
    micro-batches: zb-v ``2 p``, dualpipe-v ``2 p + 1``, each of half a rank;
    dualpipe ``p + 1``, each of a whole stage.

    Args:
        schedule: One of ``SCHEDULES``. [text]
        rank: Pipeline rank, 0 first. [1]

    Raises:
        ValueError: The schedule is unknown or does not exist for these numbers.
    """
    return max(sum(peak.counts) for peak in peaks(schedule, p, v, m)[rank])


def _held_at_backwards(
    order: tuple[Op, ...], v: int, release: Kind
) -> list[set[tuple[int, ...]]]:
    """Collect, by chunk, what its backwards find: counts, then how many wait for W.

    The W of an H follows it at once, with no gradient to keep.
    """
    kept, pending = [0] * v, [0] * v
    split: set[tuple[int, int]] = set()
    seen: list[set[tuple[int, ...]]] = [set() for _ in range(v)]
    for kind, micro, chunk in order:
        if kind in FORWARD:
            kept[chunk] += 1
        elif kind in BACKWARD:
            if kind != release and kind == "B":
                split.add((micro, chunk))
                pending[chunk] += 1
            seen[chunk].add((*kept, *pending))
        if kind == release:
            kept[chunk] -= 1
            pending[chunk] -= (micro, chunk) in split
    return seen


def _pareto(vectors: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Keep the vectors that no other one covers, in descending order.

    A vector is covered only by one of larger sum, so one sorted pass is enough.
    """
    kept: list[tuple[int, ...]] = []
    for vector in sorted(vectors, key=lambda counts: (sum(counts), counts))[::-1]:
        for other in kept:
            if all(map(le, vector, other)):
                break
        else:
            kept.append(vector)
    return kept
