"""Walks over the nodes of a graph: when each ends, and what the last waited for.

One node takes a few machine instructions, and a search walks over billions. Where numba
is installed, the same two loops are compiled once there is much to walk.
"""

from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.hardware.reading.quantities import Nanoseconds

Ints = NDArray[np.int64]

PAYS = 1 << 22
"""Nodes that a process walks over before the loops are compiled: in Python that takes
about as long as to import numba, a second or two, ours. [1]"""


def forwards(
    first: Sequence[int],
    second: Sequence[int],
    lags: Sequence[int],
    p2p: Nanoseconds,
    durations: Sequence[Sequence[int]],
    ends: Sequence[MutableSequence[int]],
    inputs: int,
) -> None:
    """Fill in when each node ends, for several cases.

    In one pass, since predecessors come first::

        end[i] = max(end[first[i]], end[second[i]] + lag[i] p2p) + duration[i]

    Args:
        first: Predecessor of each node, on its own rank where the two differ. [1]
        durations: Durations of the nodes; a case begins anew where they are fewer than
            the cases. [ns], shape (cases or fewer, nodes)
        ends: Ends; those of the inputs are given. [ns], shape (cases, nodes)
    """
    for case in range(len(ends)):
        end, took = ends[case], durations[case % len(durations)]
        for node in range(inputs, len(end)):
            here = end[first[node]]
            there = end[second[node]] + lags[node] * p2p
            # calling max() here would double the time of the loop
            end[node] = (here if here >= there else there) + took[node]  # noqa: FURB136


def backwards(
    first: Sequence[int],
    second: Sequence[int],
    lags: Sequence[int],
    slots: Sequence[int],
    times: Sequence[int],
    p2p: Nanoseconds,
    ends: Sequence[int],
    node: int,
    inputs: int,
    counts: MutableSequence[int],
) -> int:
    """Follow what a node waited for back to an input, and count the way.

    Of two predecessors that end together, the one on the same rank is taken.

    Args:
        first: Predecessor of each node, on its own rank where the two differ. [1]
        ends: Ends of all nodes. [ns]
        counts: Takes in slots, then transfers, of the way. [1]
    """
    while node >= inputs:
        counts[slots[node]] += times[node]
        there = second[node]
        if ends[there] + lags[node] * p2p > ends[first[node]]:
            counts[-1] += lags[node]
            node = there
        else:
            node = first[node]
    return node


class _Loops(NamedTuple):
    """Both loops, as Python runs them or compiled."""

    forwards: Callable[..., None]
    backwards: Callable[..., int]
    compiled: bool


PLAIN = _Loops(forwards, backwards, compiled=False)


@cache
def compiled() -> _Loops:
    """Compile both loops; found once a process, and kept on disk where that can be."""
    try:
        import numba  # noqa: PLC0415, F401
    except ImportError:
        return PLAIN
    return _Loops(_compiled(forwards), _compiled(backwards), compiled=True)


def _compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop at its first call."""
    from numba import njit  # noqa: PLC0415

    try:
        made: Callable[..., Any] = njit(cache=True)(loop)
    except RuntimeError:  # no folder to keep it in
        made = njit(loop)
    return made


class _Work:
    """Nodes that this process has walked over. [1]."""

    def __init__(self) -> None:
        self.done = 0

    def loops(self, nodes: int) -> _Loops:
        """The loops that pay for these nodes more."""
        self.done += nodes
        return compiled() if self.done > PAYS else PLAIN


WORK = _Work()


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a graph, to be walked over; the first are inputs, which wait for none."""

    table: Ints
    """First, second, lag, slot, times. [1], shape (nodes, 5)"""
    inputs: int = 1
    """Nodes whose ends are given. [1]"""

    @cached_property
    def columns(self) -> tuple[Ints, ...]:
        """Columns of the table, each by itself in memory."""
        return tuple(np.ascontiguousarray(column) for column in self.table.T)

    @cached_property
    def _lists(self) -> tuple[list[int], ...]:
        return tuple(column.tolist() for column in self.columns)

    def ends(self, x: Ints, p2p: int, start: Ints) -> Ints:
        """Find when each node ends, for every start of the inputs.

        Args:
            x: Durations by slot and case. [ns], shape (n_slots, cases)
            p2p: One transfer between neighbouring ranks. [ns]
            start: Ends of the inputs. [ns], shape (inputs, starts, cases)

        Returns:
            Ends. [ns], shape (nodes, starts, cases)
        """
        first, second, lags, slots, times = self.columns
        _, starts, cases = start.shape
        ends = np.empty((starts * cases, len(self.table)), dtype=np.int64)
        ends[:, : self.inputs] = start.reshape(self.inputs, -1).T
        took = np.ascontiguousarray(x.T[:, slots] * times)
        loops = WORK.loops(ends.size)
        if loops.compiled and len(ends):
            loops.forwards(first, second, lags, p2p, took, ends, self.inputs)
        elif len(ends):
            listed = ends.tolist()
            waits = self._lists[:3]
            loops.forwards(*waits, p2p, took.tolist(), listed, self.inputs)
            ends = np.array(listed, dtype=np.int64)
        return np.moveaxis(ends.reshape(starts, cases, -1), -1, 0)

    def back(self, ends: Ints, p2p: int, node: int, counts: Ints) -> int:
        """Follow what a node waited for back to an input, and count the way.

        Args:
            ends: Ends of all nodes, of one start and case. [ns], shape (nodes,)
            p2p: One transfer between neighbouring ranks. [ns]
            counts: Takes in slots, then transfers, of the way. [1]
        """
        loops = WORK.loops(0)
        columns: Any = self.columns if loops.compiled else self._lists
        when = np.ascontiguousarray(ends) if loops.compiled else ends.tolist()
        return loops.backwards(*columns, p2p, when, node, self.inputs, counts)
