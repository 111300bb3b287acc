"""Many steps of one schedule at once: the operation graph level by level.

A level is about as wide as the ranks are many. So a few steps of a short pipeline are
faster one after the other, node by node.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from planner.schedules.builder import Graph
from planner.schedules.simulator import Path, end_times, folded_path
from planner.schedules.steady import in_batches

Ints = NDArray[np.int64]

CELLS = 1 << 22
"""Ends of nodes that are held at once, over all cases. [1]"""
ALONE = 48
"""Pipeline ranks times cases up to which each case is walked alone. [1]"""


class _Level(NamedTuple):
    """Nodes that wait for earlier levels alone, and the two that each waits for."""

    start: int
    stop: int
    first: Ints
    second: Ints


@dataclass(frozen=True, eq=False)
class Levels:
    """Nodes of a graph, numbered by level so that a level is one array operation."""

    node: Ints
    """Node of the graph by number. [1], shape (nodes,)"""
    table: Ints
    """First, second, lag, slot, the nodes by number. [1], shape (nodes, 4)"""
    levels: tuple[_Level, ...]

    def ends(self, x: Ints, p2p: int) -> Ints:
        """Ends of all nodes as ``end_times`` gives them, of several cases at once.

        Args:
            x: Durations by slot and case. [ns], shape (n_slots, cases)
            p2p: One transfer between neighbouring ranks. [ns]

        Returns:
            Ends by number and case. [ns], shape (nodes, cases)
        """
        ends = np.zeros((len(self.node), x.shape[1]), dtype=np.int64)
        lags, times = self.table[:, 2:3] * p2p, x[self.table[:, 3]]
        for start, stop, first, second in self.levels:
            here, there = ends[start:stop], ends.take(second, axis=0)
            there += lags[start:stop]
            np.maximum(ends.take(first, axis=0), there, out=here)
            here += times[start:stop]
        return ends

    def paths(self, graph: Graph, ends: Ints, p2p: int) -> Iterator[Path]:
        """Critical path of every case.

        Args:
            graph: The graph. [graph]
            ends: Ends by number and case. [ns], shape (nodes, cases)
            p2p: One transfer between neighbouring ranks. [ns]

        Yields:
            Paths that ``critical_path`` finds.
        """
        back = _back(self, p2p)
        for case in np.ascontiguousarray(ends.T):
            numbers = back.traced(memoryview(case))
            yield _counted(graph, self.node[numbers])


class _Back(NamedTuple):
    """Predecessors and lag of every node but the source."""

    first: Sequence[int]
    second: Sequence[int]
    lags: Sequence[int]

    def traced(self, ends: Sequence[int] | memoryview) -> list[int]:
        """Nodes of the critical path after the source."""
        first, second, lags = self
        at, nodes = len(ends) - 1, []
        while at:
            nodes.append(at)
            here, there = first[at - 1], second[at - 1]
            at = there if ends[there] + lags[at - 1] > ends[here] else here
        return nodes[::-1]


@lru_cache(maxsize=4)
def _back(levels: Levels, p2p: int) -> _Back:
    """The way back through a graph: many cases of one graph follow each other."""
    first, second, lag, _ = levels.table[1:].T
    return _Back(first.tolist(), second.tolist(), (lag * p2p).tolist())


def _depths(graph: Graph) -> list[int]:
    """Number the levels: a node lies one above the higher of its predecessors."""
    depths = [0]
    for first, second in zip(graph.first, graph.second, strict=True):
        depths.append(1 + max(depths[first], depths[second]))
    return depths


def _levels(graph: Graph) -> Levels:
    """Sort the nodes of a graph by level."""
    depths = np.array(_depths(graph), dtype=np.int64)
    node = np.argsort(depths, kind="stable")
    place = np.empty_like(node)
    place[node] = np.arange(len(node))
    edges = np.searchsorted(depths[node], np.arange(1, depths.max() + 2)).tolist()
    table = graph.table[node]
    table[:, :2] = place[table[:, :2]]
    columns = [np.ascontiguousarray(column) for column in table[:, :2].T]
    levels = (
        _Level(start, stop, *(column[start:stop] for column in columns))
        for start, stop in itertools.pairwise(edges)
    )
    return Levels(node, table, tuple(levels))


_KNOWN: WeakKeyDictionary[Graph, Levels] = WeakKeyDictionary()


def levels_of(graph: Graph) -> Levels:
    """Nodes of a graph by level; found once for each graph.

    Args:
        graph: The graph of a schedule. [graph]

    Returns:
        Nodes of the graph, to be walked level by level.
    """
    if graph not in _KNOWN:
        _KNOWN[graph] = _levels(graph)
    return _KNOWN[graph]


def makespans(graph: Graph, x: Ints, p2p: int) -> Ints:
    """Makespan of every case, exactly as ``makespan`` has it.

    Args:
        graph: The graph of a schedule. [graph]
        x: Durations by slot and case. [ns], shape (n_slots, cases)
        p2p: One transfer between neighbouring ranks. [ns]

    Returns:
        Times of the steps. [ns], shape (cases,)
    """
    if graph.fold is not None:
        parts = [steady.spans for steady in in_batches(graph, graph.fold, x, p2p)]
    elif _few(graph, x):
        each = [end_times(graph, case, p2p)[-1] for case in x.T.tolist()]
        parts = [np.array(each, dtype=np.int64)]
    else:
        parts = [ends[-1] for ends in _blocks(levels_of(graph), x, p2p)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def critical_paths(graph: Graph, x: Ints, p2p: int) -> tuple[Ints, list[Path]]:
    """Makespan and critical path of every case.

    Args:
        graph: The graph of a schedule. [graph]
        x: Durations by slot and case. [ns], shape (n_slots, cases)
        p2p: One transfer between neighbouring ranks. [ns]

    Returns:
        Times of the steps [ns], shape (cases,), and as many paths.
    """
    spans: list[Ints] = []
    paths: list[Path] = []
    if graph.fold is not None:
        for steady in in_batches(graph, graph.fold, x, p2p):
            spans.append(steady.spans)
            paths += [folded_path(steady, case) for case in range(steady.cases)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *spans]), paths
    if _few(graph, x):
        back = _Back(graph.first, graph.second, graph.lags((0, p2p)))
        for case in x.T.tolist():
            one = end_times(graph, case, p2p)
            spans.append(np.array(one[-1:], dtype=np.int64))
            paths.append(_counted(graph, np.array(back.traced(one), dtype=np.int64)))
        return np.concatenate([np.zeros(0, dtype=np.int64), *spans]), paths
    levels = levels_of(graph)
    for ends in _blocks(levels, x, p2p):
        spans.append(ends[-1])
        paths += levels.paths(graph, ends, p2p)
    return np.concatenate([np.zeros(0, dtype=np.int64), *spans]), paths


def _few(graph: Graph, x: Ints) -> bool:
    """Tell if cases one after the other take less time than level by level."""
    return bool(graph.slots.p * x.shape[1] <= ALONE)


def _counted(graph: Graph, nodes: Ints) -> Path:
    """Count the slots and the transfers of a chain that begins after the source."""
    rows, slots = graph.table[nodes], graph.slots
    counts = np.bincount(rows[:, 3], minlength=slots.n_slots).astype(np.int64)
    counts[slots.zero] = 0
    crosses = rows[:, 0] != np.concatenate([[0], nodes[:-1]])
    return Path(counts, int(rows[crosses, 2].sum()))


def _blocks(levels: Levels, x: Ints, p2p: int) -> Iterator[Ints]:
    """Ends of as many cases at a time as memory allows."""
    each = max(1, CELLS // len(levels.node))
    for start in range(0, x.shape[1], each):
        yield levels.ends(x[:, start : start + each], p2p)
