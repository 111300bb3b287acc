"""The time of a step: the longest path of its operation graph, in integers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.hardware.reading.quantities import Nanoseconds
from planner.schedules.builder import Graph
from planner.schedules.operation import Op
from planner.schedules.steady import CELLS, Steady, in_batches, parts_of
from planner.schedules.walks import Ints


@dataclass(frozen=True, eq=False)
class Path:
    """A path from the source to the end, as a linear function of the durations.

    Every path of a graph is a lower bound of its makespan for every ``x >= 0``
    and ``p2p >= 0``; the critical path of (x, p2p) equals the makespan there.
    """

    counts: NDArray[np.int64]
    """Counts of each slot on the path. [1], shape (n_slots,)"""
    p2p: int
    """Transfers between ranks on the path. [1]"""

    def value(self, x: Sequence[int], p2p: int) -> int:
        """Length of the path, ``counts . x + self.p2p * p2p``.

        Args:
            x: Durations by slot. [ns], shape (n_slots,)
            p2p: One transfer between neighbouring ranks. [ns]

        Returns:
            Length of the path, exact below 2^63. [ns]
        """
        return int(self.counts @ np.asarray(x, dtype=np.int64)) + self.p2p * p2p


class Interval(NamedTuple):
    """Start and end of one operation. [ns]."""

    op: Op
    start: int
    end: int


def end_times(graph: Graph, x: Sequence[int], p2p: int) -> list[int]:
    """End of every node, as early as its two predecessors allow.

    Args:
        graph: The graph of a schedule. [graph]
        x: Durations by slot, see ``Slots``. [ns], shape (n_slots,)
        p2p: One transfer between neighbouring ranks. [ns]

    Returns:
        End of every node. [ns], shape (nodes,)

    Raises:
        ValueError: x has the wrong length, or its last entry is not 0; or the
            graph is folded.
    """
    if graph.fold is not None:
        raise ValueError("a folded graph has no node for every operation")
    ends: list[int] = _ends(graph, _column(graph, x), p2p)[:, 0].tolist()
    return ends


def makespan(graph: Graph, x: Sequence[int], p2p: int) -> int:
    """Makespan of a step: the end of the last node. [ns].

    Args:
        graph: The graph of a schedule. [graph]
        x: Durations by slot. [ns], shape (n_slots,)
        p2p: One transfer between neighbouring ranks. [ns]

    Raises:
        ValueError: x has the wrong length, or its last entry is not 0.
    """
    return int(makespans(graph, _column(graph, x), p2p)[0])


def makespans(graph: Graph, x: Ints, p2p: int) -> Ints:
    """Makespan of every case, as ``makespan`` has it.

    Args:
        graph: The graph of a schedule. [graph]
        x: Durations by slot and case. [ns], shape (n_slots, cases)
        p2p: One transfer between neighbouring ranks. [ns]

    Returns:
        Times of the steps. [ns], shape (cases,)
    """
    if graph.fold is not None:
        parts = [steady.spans for steady in in_batches(graph, graph.fold, x, p2p)]
    else:
        parts = [ends[-1] for ends in _blocks(graph, x, p2p)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def critical_path(graph: Graph, x: Sequence[int], p2p: int) -> Path:
    """Longest path, whose length is the makespan exactly.

    Of two predecessors that end together, the node on the same rank is taken.

    Args:
        graph: The graph of a schedule. [graph]
        x: Durations by slot. [ns], shape (n_slots,)
        p2p: One transfer between neighbouring ranks. [ns]

    Returns:
        The path; for every other x >= 0 a lower bound of the makespan. [ns]

    Raises:
        ValueError: x has the wrong length, or its last entry is not 0.
    """
    return critical_paths(graph, _column(graph, x), p2p)[1][0]


def critical_paths(graph: Graph, x: Ints, p2p: int) -> tuple[Ints, list[Path]]:
    """Makespan and critical path of every case.

    Args:
        graph: The graph of a schedule. [graph]
        x: Durations by slot and case. [ns], shape (n_slots, cases)
        p2p: One transfer between neighbouring ranks. [ns]

    Returns:
        Times of the steps [ns], shape (cases,), and as many paths.
    """
    spans, paths = [np.zeros(0, dtype=np.int64)], list[Path]()
    if graph.fold is not None:
        for steady in in_batches(graph, graph.fold, x, p2p):
            spans.append(steady.spans)
            paths += [_as_path(steady.way(case)) for case in range(steady.cases)]
        return np.concatenate(spans), paths
    for ends in _blocks(graph, x, p2p):
        spans.append(ends[-1])
        paths += [_path_to_the_end(graph, case, p2p) for case in ends.T]
    return np.concatenate(spans), paths


def rank_paths(graph: Graph, x: Sequence[int], p2p: int) -> list[Path]:
    """Longest path through the middle operation of every rank.

    A path is the longest from the source to that operation, and on from there to
    the end. In a folded graph that operation is the first behind the block. Each path
    is a lower bound of the makespan for every ``x >= 0``.

    Args:
        graph: The graph of a schedule. [graph]
        x: Durations by slot. [ns], shape (n_slots,)
        p2p: One transfer between neighbouring ranks. [ns]

    Returns:
        One path a rank. [ns], shape (p,)

    Raises:
        ValueError: x has the wrong length, or its last entry is not 0.
    """
    if graph.fold is not None:
        steady = Steady(parts_of(graph, graph.fold), _column(graph, x), p2p)
        return list(_folded_rank_paths(graph, steady))
    ends = end_times(graph, x, p2p)
    before, after = _waited_for(graph, ends, p2p), _successors(graph, x, p2p)
    paths = []
    for stream in graph.streams:
        node = stream[len(stream) // 2]
        nodes = _trace_back(before, node)
        while node != len(graph) - 1:
            node = after[node]
            nodes.append(node)
        paths.append(_path(graph, nodes))
    return paths


def busy(graph: Graph, x: Sequence[int]) -> list[int]:
    """Time that every rank computes: ``m sum_chunks (F + B + W)``.

    Args:
        graph: The graph of a schedule. [graph]
        x: Durations by slot. [ns], shape (n_slots,)

    Returns:
        Busy time of every rank, its optimizer not included. [ns], shape (p,)

    Raises:
        ValueError: x has the wrong length, or its last entry is not 0.
    """
    _check(graph, x)
    slots, weights = graph.table[:, 3].tolist(), [1] * len(graph)
    if graph.fold is not None:
        weights = graph.fold.weights().tolist()
    return [
        sum(x[slots[node]] * weights[node] for node in nodes) for nodes in graph.streams
    ]


def idle(graph: Graph, x: Sequence[int], p2p: Nanoseconds) -> list[int]:
    """Time that every rank does not compute: ``makespan - busy``.

    Args:
        graph: The graph of a schedule. [graph]
        x: Durations by slot. [ns], shape (n_slots,)

    Returns:
        Bubble of every rank, exposed communication and the optimizer step
        included: set those slots to 0 for the bubble alone. [ns], shape (p,)

    Raises:
        ValueError: x has the wrong length, or its last entry is not 0.
    """
    total = makespan(graph, x, p2p)
    return [total - time for time in busy(graph, x)]


def compute_times(
    graph: Graph, x: Sequence[int], p2p: Nanoseconds
) -> tuple[tuple[Interval, ...], ...]:
    """Start and end of every operation of every rank: the rows of a Gantt chart.

    Args:
        graph: The graph of a schedule. [graph]
        x: Durations by slot. [ns], shape (n_slots,)

    Returns:
        The intervals of every rank in order. [ns], shape (p, operations)

    Raises:
        ValueError: x has the wrong length, or its last entry is not 0; or the
            graph is folded.

    Leaves out where inside a first forward the rank waits for parameters: the wait
    is drawn after the forward.
    """
    ends, slots = end_times(graph, x, p2p), graph.table[:, 3].tolist()
    return tuple(
        tuple(
            Interval(op, ends[node] - x[slots[node]], ends[node])
            for op, node in zip(order, nodes, strict=True)
        )
        for order, nodes in zip(graph.orders, graph.streams, strict=True)
    )


def _check(graph: Graph, x: Sequence[int]) -> None:
    """Refuse durations that belong to another graph."""
    if len(x) != graph.slots.n_slots:
        raise ValueError(
            f"x has {len(x)} durations; a graph with p={graph.slots.p}, "
            f"v={graph.slots.v} needs {graph.slots.n_slots}"
        )
    if x[graph.slots.zero] != 0:
        raise ValueError(f"the last entry of x must be 0, not {x[graph.slots.zero]}")


def _column(graph: Graph, x: Sequence[int]) -> Ints:
    """Durations of one case, checked. [ns], shape (n_slots, 1)."""
    _check(graph, x)
    return np.array(x, dtype=np.int64)[:, None]


def _ends(graph: Graph, x: Ints, p2p: int) -> Ints:
    """Ends of every node of a whole step. [ns], shape (nodes, cases)."""
    source = np.zeros((1, 1, x.shape[1]), dtype=np.int64)
    ends: Ints = graph.rows.ends(x, p2p, source)[:, 0]
    return ends


def _blocks(graph: Graph, x: Ints, p2p: int) -> Iterator[Ints]:
    """Ends of as many cases at a time as memory allows."""
    at_once = max(1, CELLS // len(graph))
    for start in range(0, x.shape[1], at_once):
        yield _ends(graph, x[:, start : start + at_once], p2p)


def _path_to_the_end(graph: Graph, ends: Ints, p2p: int) -> Path:
    """Path that the last node waited for."""
    counts = np.zeros(graph.slots.n_slots + 1, dtype=np.int64)
    graph.rows.back(ends, p2p, len(graph) - 1, counts)
    return _as_path(counts)


def _folded_rank_paths(graph: Graph, steady: Steady) -> Iterator[Path]:
    """Longest path through each rank's first operation behind the repeating block."""
    parts = steady.parts
    onward = parts.tail.onward(steady.x[:, 0], steady.p2p)
    for stream in graph.streams:
        node = parts.in_tail(next(node for node in stream if node >= parts.behind))
        yield _as_path(steady.way(0, node) + onward[node])


def _as_path(row: NDArray[np.int64]) -> Path:
    """Take slots and transfers apart; the slot of no duration is not counted."""
    counts = row[:-1]
    counts[-1] = 0
    return Path(counts, int(row[-1]))


def _waited_for(graph: Graph, ends: list[int], p2p: int) -> list[int]:
    """Predecessor that each node waited for; of equals that on its own rank. [1]."""
    first, second, lag, _ = graph.table.T
    when = np.array(ends, dtype=np.int64)
    later = when[second] + lag * p2p > when[first]
    waited: list[int] = np.where(later, second, first).tolist()
    return waited


def _trace_back(before: Sequence[int], node: int) -> list[int]:
    """Follow the predecessors that were waited for from the source to a node."""
    nodes = [node]
    while node:
        node = before[node]
        nodes.append(node)
    return nodes[::-1]


def _successors(graph: Graph, x: Sequence[int], p2p: int) -> list[int]:
    """Find for every node the successor on its longest path to the end."""
    rows = graph.table.tolist()
    tails, after = [-1] * len(graph), [0] * len(graph)
    tails[-1] = 0
    for node in range(len(graph) - 1, 0, -1):
        first, second, lag, slot = rows[node]
        reach, lag = tails[node] + x[slot], lag * p2p
        if reach >= tails[first]:
            tails[first], after[first] = reach, node
        if reach + lag > tails[second]:
            tails[second], after[second] = reach + lag, node
    return after


def _path(graph: Graph, nodes: list[int]) -> Path:
    """Count the slots and the transfers of a chain of nodes."""
    rows = graph.table[nodes[1:]]
    slots = graph.slots
    counts = np.bincount(rows[:, 3], minlength=slots.n_slots).astype(np.int64)
    counts[slots.zero] = 0
    crosses = rows[:, 0] != np.array(nodes[:-1], dtype=np.int64)
    return Path(counts, int(rows[crosses, 2].sum()))
