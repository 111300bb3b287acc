"""The operations of every pipeline rank, in the order in which it runs them."""

from collections.abc import Iterator
from functools import lru_cache
from typing import TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from planner.hardware.reading.nearest import nearest
from planner.schedules.operation import Op
from planner.schedules.placement import V_SHAPED
from planner.schedules.v_shaped import dualpipe, dualpipe_v, zb_v
from planner.specs.layouts.layout import Schedule

Count = TypeVar("Count", int, NDArray[np.int64])
"""A number, or a number for each of several pipelines. [1]"""
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)
"""Schedules that have an operation order here."""

MOST_OPERATIONS = 2**20
"""Forwards and backwards of the longest step that is simulated whole, over all ranks;
a longer step is priced by a shorter step and the block that repeats in it. [1]"""
SPLIT = ("zb-h1", *V_SHAPED)
"""Schedules whose backward is two operations: of inputs, and of weights."""


@lru_cache(maxsize=128)
def operations(schedule: str, p: int, v: int, m: int) -> tuple[tuple[Op, ...], ...]:
    """Forwards and backwards of every rank, in the fixed order in which it runs them.

    A rank first runs its warm-up forwards, then one forward and one backward
    in turn (1F1B), then the backwards that are left. The warm-up of rank r is::

        gpipe         m
        1f1b, zb-h1   min(m, p - r - 1)
        interleaved   min(m v, 2 (p - r - 1) + (v - 1) p)

    Interleaved takes micro-batches in groups of p: a chunk runs the whole group
    before the next chunk does. With one chunk it is 1f1b. In zb-h1, rank r runs
    W(k - r) after B(k) and its last r W at the end. At most p micro-batches then
    wait for their W. For the V-shaped schedules see ``zb_v``, ``dualpipe_v`` and
    ``dualpipe``; for the virtual stage of (chunk, rank), ``placement``.

    Args:
        schedule: One of ``SCHEDULES``. [text]

    Returns:
        The operations of every rank. [1], shape (p, operations of a rank)

    Raises:
        ValueError: The schedule is unknown or does not exist for these numbers.

    Leaves out micro-batch groups of another size than p. Leaves out the extra forward
    with which Megatron overlaps the all-to-all of experts. In dualpipe, micro
    counts the micro-batches of one direction, ``m / 2``.

    References:
        Megatron-Core 0.16.1, ``pipeline_parallel/schedules.py``
        (``get_pp_rank_microbatches``, ``get_schedule_table``).
        P. Qi et al., "Zero Bubble Pipeline Parallelism", arXiv:2401.10241.
    """
    check(schedule, p, v, m)
    if schedule in V_SHAPED:
        of_rank = {"zb-v": zb_v, "dualpipe-v": dualpipe_v, "dualpipe": dualpipe}
        return tuple(of_rank[schedule](p, m, rank) for rank in range(p))
    forwards = [Op("F", micro, chunk) for micro, chunk in _grouped(p, v, m)]
    backwards = [Op("B", micro, v - 1 - chunk) for micro, chunk in _grouped(p, v, m)]
    weights = [Op("W", micro, 0) for micro in range(m if schedule == "zb-h1" else 0)]
    orders: list[tuple[Op, ...]] = []
    for rank in range(p):
        order = _warm_up_then_1f1b(
            forwards, backwards, _warm_up(schedule, p, v, m, rank)
        )
        orders.append(tuple(_with_weights(order, weights, rank) if weights else order))
    return tuple(orders)


def check(schedule: str, p: int, v: int, m: int) -> None:
    """Refuse what no framework could run, with the rule and all its numbers.

    Raises:
        ValueError: The schedule is unknown or does not exist for these numbers.
    """
    if schedule not in SCHEDULES:
        near = nearest(schedule, SCHEDULES)
        hint = f"; did you mean {near!r}?" if near else ""
        raise ValueError(
            f"unknown schedule {schedule!r}; known: {', '.join(SCHEDULES)}{hint}"
        )
    shape = f"schedule {schedule!r} with p={p}, v={v}, m={m}"
    if min(p, v, m) < 1:
        raise ValueError(f"{shape}: p, v and m must each be at least 1")
    if schedule in V_SHAPED:
        _check_v_shaped(shape, schedule, p, v, m)
    elif v > 1 and schedule != "interleaved":
        raise ValueError(
            f"{shape}: only 'interleaved' has any number of chunks per rank; "
            f"allowed here: v=1"
        )
    elif v > 1 and p == 1:
        raise ValueError(f"{shape}: interleaving needs p > 1; with p=1 use v=1")
    elif v > 1 and m % p:
        near_m = f"m={m - m % p + p}" if m < p else f"m={m - m % p} or {m - m % p + p}"
        raise ValueError(
            f"{shape}: interleaving needs m % p == 0, here {m} % {p} = {m % p}; "
            f"nearest: {near_m}"
        )


def _check_v_shaped(shape: str, schedule: str, p: int, v: int, m: int) -> None:
    """Refuse numbers that make no V, or fewer micro-batches than fill it."""
    if v != 2:
        raise ValueError(f"{shape}: {schedule} has two chunks per rank; allowed: v=2")
    if schedule == "dualpipe" and (p % 2 or m % 2):
        near = f"p={p + p % 2}, m={m + m % 2}"
        raise ValueError(f"{shape}: dualpipe needs even p and m; nearest: {near}")
    if schedule != "zb-v" and m < 2 * p:
        raise ValueError(f"{shape}: {schedule} needs m >= 2 p; nearest: m={2 * p}")


def _grouped(p: int, v: int, m: int) -> Iterator[tuple[int, int]]:
    """Pairs (micro-batch, chunk) in groups of p; one chunk leaves plain order."""
    for group in range(0, m, p):
        for chunk in range(v):
            for micro in range(group, min(group + p, m)):
                yield micro, chunk


def _warm_up(schedule: str, p: int, v: int, m: int, rank: int) -> int:
    """Count the forwards of a rank before its first pair of one F and one B."""
    if schedule == "gpipe":
        return m
    if v == 1:
        return min(m, p - rank - 1)
    return min(m * v, 2 * (p - rank - 1) + (v - 1) * p)


def _warm_up_then_1f1b(
    forwards: list[Op], backwards: list[Op], warm_up: int
) -> list[Op]:
    """Warm-up forwards, then F and B in turn, then the backwards left over."""
    steady = zip(forwards[warm_up:], backwards, strict=False)
    return [
        *forwards[:warm_up],
        *(op for pair in steady for op in pair),
        *backwards[len(forwards) - warm_up :],
    ]


def _with_weights(order: list[Op], weights: list[Op], delay: int) -> Iterator[Op]:
    """Put W(k - delay) right after B(k), and the W left over at the end."""
    for op in order:
        yield op
        if op.kind == "B" and op.micro >= delay:
            yield weights[op.micro - delay]
    yield from weights[max(0, len(weights) - delay) :]


def operation_count(p: Count, v: Count, m: Count) -> Count:
    """Forwards and backwards of a step, over all ranks.

    Returns:
        ``2 m p v``; weight gradients apart are not counted. [1]
    """
    return 2 * m * p * v
