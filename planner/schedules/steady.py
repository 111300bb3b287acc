"""Long steps from short ones: the block as a matrix over (max, +), and its powers."""

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from planner.schedules.builder import Graph
from planner.schedules.fold import Fold, squarings
from planner.schedules.walks import Ints, Rows

NEVER = -(2**62)
"""Length of a path that does not exist; two of them still are an int64. [ns]"""
CELLS = 1 << 22
"""Lengths of paths that are held at once, over all cases. [1]"""


@dataclass(frozen=True, eq=False)
class Part(Rows):
    """Rows of a graph behind a cut; its inputs are the source, then the cut."""

    @classmethod
    def of(cls, graph: Graph, fold: Fold, start: int, stop: int, cut: Ints) -> "Part":
        """Take rows out of a graph."""
        number = np.full(len(graph), -1, dtype=np.int64)
        number[0], number[cut] = 0, 1 + np.arange(len(cut))
        number[start:stop] = 1 + len(cut) + np.arange(stop - start)
        table = graph.table[start:stop]
        columns = (number[table[:, :2]], table[:, 2:], fold.times[start:stop, None])
        none = np.zeros((1 + len(cut), 5), dtype=np.int64)
        return cls(np.concatenate([none, np.hstack(columns)]), 1 + len(cut))

    def onward(self, x: Ints, p2p: int) -> Ints:
        """Count the longest path from each node, itself left out, to the last.

        Args:
            x: Durations by slot. [ns], shape (n_slots,)
            p2p: One transfer between neighbouring ranks. [ns]

        Returns:
            Slots, then transfers. [1], shape (nodes, n_slots + 1)
        """
        durations = (x[self.table[:, 3]] * self.table[:, 4]).tolist()
        longest = [-1] * len(self.table)
        longest[-1] = 0
        counts = np.zeros((len(self.table), len(x) + 1), dtype=np.int64)
        for node in range(len(self.table) - 1, self.inputs - 1, -1):
            first, second, lag, slot, times = self.table[node].tolist()
            reach = longest[node] + durations[node]
            for before, way in ((first, 0), (second, lag)):
                if reach + way * p2p > longest[before]:
                    longest[before], counts[before] = reach + way * p2p, counts[node]
                    counts[before, slot] += times
                    counts[before, -1] += way
        return counts


@dataclass(frozen=True, eq=False)
class Parts:
    """Parts of a folded step: before the block, the block, behind the block."""

    head: Part
    block: Part
    tail: Part
    out: Ints
    """Nodes of the block, or inputs, at the next cut. [1], shape (cut,)"""
    head_out: Ints
    """Nodes of the head at the first cut. [1], shape (cut,)"""
    behind: int
    """First row of the tail in the graph. [1]"""
    repeats: int
    """Repeats of the block. [1]"""

    @classmethod
    def of(cls, graph: Graph, fold: Fold) -> "Parts":
        """Cut a folded graph up."""
        cut, start, stop = fold.cut, fold.start, fold.stop
        later = cut + fold.rows
        inside = 1 + len(cut) + later - start
        out = np.where(later >= start, inside, 1 + np.searchsorted(cut, later))
        return cls(
            head=Part.of(graph, fold, 1, start, cut[:0]),
            block=Part.of(graph, fold, start, stop, cut),
            tail=Part.of(graph, fold, stop, len(graph), later),
            out=out,
            head_out=cut,
            behind=stop,
            repeats=fold.repeats,
        )

    def in_tail(self, node: int) -> int:
        """Number in the tail of a node of the graph. [1]."""
        return node - self.behind + self.tail.inputs


_KNOWN: WeakKeyDictionary[Graph, Parts] = WeakKeyDictionary()


def parts_of(graph: Graph, fold: Fold) -> Parts:
    """Parts of a folded graph; found once for each graph."""
    if graph not in _KNOWN:
        _KNOWN[graph] = Parts.of(graph, fold)
    return _KNOWN[graph]


class Steady:
    """Ends of a folded step, of several cases at once.

    Let e be the ends of the nodes of a cut. The ends at the next cut are
    ``max_j (A[i, j] + e[j])``, where A[i, j] is the longest path through the block.
    The powers of A reach any number of blocks, exactly, settled or not.
    """

    def __init__(self, parts: Parts, x: Ints, p2p: int) -> None:
        self.parts, self.x, self.p2p = parts, x, p2p
        source = np.zeros((1, 1, x.shape[1]), dtype=np.int64)
        self.head = parts.head.ends(x, p2p, source)
        cut = len(parts.out)
        self.block = parts.block.ends(x, p2p, _alone(cut, x.shape[1]))
        most = squarings(cut, parts.repeats)
        self.powers = [self.block[parts.out]]
        for _ in range(most):
            self.powers.append(_product(self.powers[-1], self.powers[-1]))
        bits = [bit for bit in range(most) if parts.repeats >> bit & 1]
        self.steps = [*bits, *[most] * (parts.repeats >> most)]
        self.cuts = [self.head[parts.head_out]]
        for bit in self.steps:
            self.cuts.append(_product(self.powers[bit], self.cuts[-1]))
        start = np.concatenate([np.full_like(source, NEVER), self.cuts[-1]])
        self.tail = parts.tail.ends(x, p2p, start)

    @property
    def cases(self) -> int:
        """Number of cases. [1]."""
        return int(self.x.shape[1])

    @property
    def spans(self) -> Ints:
        """Makespans. [ns], shape (cases,)."""
        spans: Ints = self.tail[-1, 0]
        return spans

    def way(self, case: int, node: int = -1) -> Ints:
        """Count the longest path from the source to a node of the tail.

        Returns:
            Slots, then transfers. [1], shape (n_slots + 1,)
        """
        return _Walk(self, case).back(node % len(self.tail))


def _alone(cut: int, cases: int) -> Ints:
    """Starts of a cut, each at 0 with all others, and the source, never."""
    start = np.full((1 + cut, cut, cases), NEVER, dtype=np.int64)
    start[1 + np.arange(cut), np.arange(cut)] = 0
    return start


def _product(left: Ints, right: Ints) -> Ints:
    """Multiply matrices over (max, +). [ns], shape (cut, starts, cases)."""
    product: Ints = left[:, :1] + right[:1]
    for at in range(1, len(right)):
        np.maximum(product, left[:, at : at + 1] + right[at : at + 1], out=product)
    np.maximum(product, NEVER, out=product)
    return product


class _Walk:
    """The longest path of one case, counted back from a node of the tail."""

    def __init__(self, steady: Steady, case: int) -> None:
        self.steady, self.parts, self.case = steady, steady.parts, case
        self.known: dict[tuple[int, int, int], Ints] = {}

    def back(self, node: int) -> Ints:
        """Count from a node of the tail to the source."""
        steady, p2p, counts = self.steady, self.steady.p2p, self.none()
        ends = steady.tail[:, 0, self.case]
        at = self.parts.tail.back(ends, p2p, node, counts) - 1
        for index in range(len(steady.steps))[::-1]:
            bit = steady.steps[index]
            before = _best(
                steady.powers[bit][at, :, self.case],
                steady.cuts[index][:, 0, self.case],
                at,
            )
            counts += self.through(bit, at, before)
            at = before
        ends = steady.head[:, 0, self.case]
        self.parts.head.back(ends, p2p, int(self.parts.head_out[at]), counts)
        return counts

    def none(self) -> Ints:
        """Counts of a path of no slot and no transfer. [1]."""
        return np.zeros(len(self.steady.x) + 1, dtype=np.int64)

    def through(self, bit: int, to: int, start: int) -> Ints:
        """Count the longest path through ``2^bit`` blocks."""
        key = (bit, to, start)
        if key not in self.known:
            self.known[key] = (self._halves if bit else self._block)(*key)
        return self.known[key]

    def _halves(self, bit: int, to: int, start: int) -> Ints:
        half = self.steady.powers[bit - 1]
        left, right = half[to, :, self.case], half[:, start, self.case]
        middle = _best(left, right, to)
        return self.through(bit - 1, to, middle) + self.through(bit - 1, middle, start)

    def _block(self, _: int, to: int, start: int) -> Ints:
        counts, block = self.none(), self.parts.block
        ends = self.steady.block[:, start, self.case]
        block.back(ends, self.steady.p2p, int(self.parts.out[to]), counts)
        return counts


def _best(left: Ints, right: Ints, preferred: int) -> int:
    """Choose where the longest path passes a cut; the preferred node where it may."""
    sums = left + right
    best = int(sums.argmax())
    return preferred if sums[preferred] == sums[best] else best


def in_batches(graph: Graph, fold: Fold, x: Ints, p2p: int) -> Iterator[Steady]:
    """Run as many cases at a time as memory allows.

    Args:
        x: Durations by slot and case. [ns], shape (n_slots, cases)
        p2p: One transfer between neighbouring ranks. [ns]
    """
    parts = parts_of(graph, fold)
    cut, most = len(parts.out), squarings(len(parts.out), parts.repeats)
    cells = len(parts.block.table) * cut + (most + 2) * cut * cut
    cells += len(parts.head.table) + len(parts.tail.table)
    at_once = max(1, CELLS // cells)
    for start in range(0, x.shape[1], at_once):
        yield Steady(parts, x[:, start : start + at_once], p2p)
