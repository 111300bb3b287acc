"""The operation graph of a schedule: fixed shape, durations filled in later."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.schedules.order import Op, operations


@dataclass(frozen=True)
class Slots:
    """Where each duration stands in the vector of durations x.

    With ``S = p v`` virtual stages in model order, x is the concatenation of
    F, B, W, GATHER, SCATTER, FIRST, LAST (S entries each), OPT (p entries) and
    one zero, in ns. Every method takes a virtual stage, ``opt`` a rank.
    """

    p: int
    v: int

    @property
    def stages(self) -> int:
        """Virtual stages, ``S = p v``. [1]."""
        return self.p * self.v

    @property
    def n_slots(self) -> int:
        """Length of x, ``7 S + p + 1``. [1]."""
        return 7 * self.stages + self.p + 1

    @property
    def zero(self) -> int:
        """Index of the entry that is always 0. [1]."""
        return 7 * self.stages + self.p

    def f(self, stage: int) -> int:
        """Index of the forward of one micro-batch. [1]."""
        return stage

    def b(self, stage: int) -> int:
        """Index of the backward of one micro-batch; without W if W exists. [1]."""
        return self.stages + stage

    def w(self, stage: int) -> int:
        """Index of the weight gradient of one micro-batch; 0 if in B. [1]."""
        return 2 * self.stages + stage

    def gather(self, stage: int) -> int:
        """Index of the all-gather of the stage's parameters. [1]."""
        return 3 * self.stages + stage

    def scatter(self, stage: int) -> int:
        """Index of the reduce-scatter of the stage's gradients. [1]."""
        return 4 * self.stages + stage

    def first(self, stage: int) -> int:
        """Index of the part of GATHER that the first forward waits for. [1]."""
        return 5 * self.stages + stage

    def last(self, stage: int) -> int:
        """Index of the part of SCATTER that the backward must end before. [1]."""
        return 6 * self.stages + stage

    def opt(self, rank: int) -> int:
        """Index of the optimizer step of a rank. [1]."""
        return 7 * self.stages + rank


@dataclass(frozen=True, eq=False)
class Graph:
    """Operations of a step, numbered so that predecessors come first.

    Node 0 is the source and ends at 0, the last node is the end of the step::

        end[i] = max(end[first[i]], end[second[i]] + lag[i] p2p) + x[slot[i]]

    ``first[i]`` is on the node's own rank where the two differ. Entry ``i - 1``
    of the tuples belongs to node i; row i of ``table`` (first, second, lag,
    slot) to node i itself. ``streams`` names the nodes of every rank's
    operations, in the order of ``orders``.
    """

    slots: Slots
    orders: tuple[tuple[Op, ...], ...]
    streams: tuple[tuple[int, ...], ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    table: NDArray[np.int64]
    lags: Callable[[tuple[int, int]], tuple[int, ...]]
    """From (0, p2p) to the lag of every node but the source. [ns]"""
    durations: Callable[[Sequence[int]], tuple[int, ...]]
    """From x to the duration of every node but the source. [ns]"""

    def __len__(self) -> int:
        return len(self.table)


class _Builder:
    """Adds the nodes of a step, rank by rank, as soon as what they need is there.

    ``forward[i + 1][k]`` is the node after which F(i, k) counts as done, -1
    before it has one; row 0 is the source. ``backward[i][k]`` likewise for B;
    its row S is the forward of the last virtual stage, whose backward needs it.
    """

    def __init__(
        self,
        schedule: str,
        p: int,
        v: int,
        m: int,
        *,
        overlap_gather: bool,
        overlap_scatter: bool,
        scatter_every: int,
    ) -> None:
        if scatter_every < 1:
            raise ValueError(f"scatter_every={scatter_every} must be at least 1")
        self.orders = operations(schedule, p, v, m)
        self.slots = Slots(p, v)
        self.p, self.v, self.m = p, v, m
        self.overlap_gather, self.overlap_scatter = overlap_gather, overlap_scatter
        self.every = scatter_every
        self.reduces_after = "W" if schedule == "zb-h1" else "B"
        self.rows = [(0, 0, 0, self.slots.zero)]
        self.free = [0] * p
        self.scattered = [0] * p
        self.gathers = [0] * (p * v)
        self.streams: list[list[int]] = [[] for _ in range(p)]
        self.forward = [[0] * m, *([-1] * m for _ in range(p * v))]
        self.backward = [*([-1] * m for _ in range(p * v)), self.forward[-1]]

    def build(self) -> Graph:
        """Build the graph of the whole step."""
        self._gather_parameters()
        self._run_all_ranks()
        if not self.overlap_scatter:
            self._scatter_at_the_end()
        self._optimize()
        table = np.array(self.rows, dtype=np.int64)
        first, second, lag, slot = zip(*self.rows[1:], strict=True)
        return Graph(
            slots=self.slots,
            orders=self.orders,
            streams=tuple(map(tuple, self.streams)),
            first=first,
            second=second,
            table=table,
            lags=_picker(lag),
            durations=_picker(slot),
        )

    def _add(self, first: int, second: int, slot: int, lag: int = 0) -> int:
        """Append a node; the caller passes the rank's own predecessor first."""
        self.rows.append((first, second, lag, slot))
        return len(self.rows) - 1

    def _gather_parameters(self) -> None:
        """Gather the chunks of a rank one after the other, from time 0."""
        for rank in range(self.p):
            node = 0
            for stage in range(rank, self.slots.stages, self.p):
                node = self._add(node, node, self.slots.gather(stage))
                self.gathers[stage] = node
            if not self.overlap_gather:
                self.free[rank] = node

    def _run_all_ranks(self) -> None:
        """Place operations in turn over the ranks until every order is done."""
        left = sum(map(len, self.orders))
        while left:
            placed = sum(self._run_until_blocked(rank) for rank in range(self.p))
            if not placed:
                raise AssertionError(f"deadlock with {left} operations to go")
            left -= placed

    def _run_until_blocked(self, rank: int) -> int:
        """Place operations of a rank up to the first whose input is missing."""
        order, stream = self.orders[rank], self.streams[rank]
        before = len(stream)
        for index in range(before, len(order)):
            op = order[index]
            stage = op.chunk * self.p + rank
            needs, lag = self._input(op, stage)
            if needs < 0:
                break
            self._place(op, rank, stage, needs, lag)
        return len(stream) - before

    def _input(self, op: Op, stage: int) -> tuple[int, int]:
        """Find the node whose result the operation needs, and its p2p lags."""
        if op.kind == "F":
            return self.forward[stage][op.micro], int(self.p > 1 and stage > 0)
        if op.kind == "B":
            sent = self.p > 1 and stage + 1 < self.slots.stages
            return self.backward[stage + 1][op.micro], int(sent)
        return self.backward[stage][op.micro], 0

    def _place(self, op: Op, rank: int, stage: int, needs: int, lag: int) -> None:
        """Add the operation and what its communication hangs on it."""
        if op.kind == "F":
            if op.micro == 0 and self.overlap_gather:
                done = self._first_forward(rank, stage, needs, lag)
            else:
                done = self._compute(rank, needs, self.slots.f(stage), lag)
            self.forward[stage + 1][op.micro] = done
            return
        slot = self.slots.b(stage) if op.kind == "B" else self.slots.w(stage)
        if self.overlap_scatter and self._reduces(op):
            done = self._last_backward(rank, stage, needs, slot, lag)
        else:
            done = self._compute(rank, needs, slot, lag)
        if op.kind == "B":
            self.backward[stage][op.micro] = done

    def _compute(self, rank: int, needs: int, slot: int, lag: int) -> int:
        """Add a node to the compute stream of the rank."""
        node = self._add(self.free[rank], needs, slot, lag)
        self.streams[rank].append(node)
        self.free[rank] = node
        return node

    def _reduces(self, op: Op) -> bool:
        """Say if a group of micro-batches is complete, so gradients travel."""
        complete = (op.micro + 1) % self.every == 0 or op.micro == self.m - 1
        return complete and op.kind == self.reduces_after

    def _first_forward(self, rank: int, stage: int, needs: int, lag: int) -> int:
        """Add a forward that runs while the parameters of its chunk arrive."""
        before = self.gathers[stage - self.p] if stage >= self.p else 0
        ready = self._add(before, before, self.slots.first(stage))
        if self.free[rank]:
            ready = self._add(self.free[rank], ready, self.slots.zero)
        self.free[rank] = ready
        node = self._compute(rank, needs, self.slots.f(stage), lag)
        self.free[rank] = self._add(node, self.gathers[stage], self.slots.zero)
        return self.free[rank]

    def _last_backward(
        self, rank: int, stage: int, needs: int, slot: int, lag: int
    ) -> int:
        """Add a backward during which the gradients of its chunk travel."""
        self.free[rank] = start = self._add(
            self.free[rank], needs, self.slots.zero, lag
        )
        node = self._compute(rank, start, slot, 0)
        moved = self._add(start, self.scattered[rank], self.slots.scatter(stage))
        tail = self._add(node, node, self.slots.last(stage))
        self.scattered[rank] = self._add(tail, moved, self.slots.zero)
        return node

    def _scatter_at_the_end(self) -> None:
        """Reduce every group of every chunk after the last operation of a rank."""
        groups = -(-self.m // self.every)
        for rank in range(self.p):
            node = self.free[rank]
            for stage in range(rank, self.slots.stages, self.p):
                for _ in range(groups):
                    node = self._add(node, node, self.slots.scatter(stage))
            self.scattered[rank] = node

    def _optimize(self) -> None:
        """Step the optimizers once all gradients are there, then end the step.

        The last scatter of a rank ends after its compute: its last operation is
        always one that completes a group.
        """
        norm = self._join(self.scattered)
        self._join([self._add(norm, norm, self.slots.opt(r)) for r in range(self.p)])

    def _join(self, nodes: list[int]) -> int:
        """Chain nodes of no duration that end when all the given ones have."""
        joined = nodes[0]
        for node in nodes[1:]:
            joined = self._add(joined, node, self.slots.zero)
        return joined


def _picker(indices: tuple[int, ...]) -> Callable[[Any], tuple[int, ...]]:
    """Make a function that picks these entries of a sequence, at C speed."""
    return itemgetter(*indices)


MAX_CACHED_NODES = 400_000
"""Nodes of all graphs kept for reuse, at about 250 B each. [1]"""


class _Cache:
    """The graphs used last, as many as have ``MAX_CACHED_NODES`` together."""

    def __init__(self) -> None:
        self.graphs: OrderedDict[tuple[object, ...], Graph] = OrderedDict()
        self.lock = Lock()

    def get(self, key: tuple[object, ...]) -> Graph | None:
        with self.lock:
            if key in self.graphs:
                self.graphs.move_to_end(key)
            return self.graphs.get(key)

    def put(self, key: tuple[object, ...], graph: Graph) -> None:
        with self.lock:
            self.graphs[key] = graph
            nodes = sum(map(len, self.graphs.values()))
            while nodes > MAX_CACHED_NODES and len(self.graphs) > 1:
                nodes -= len(self.graphs.popitem(last=False)[1])


_CACHE = _Cache()


def pipeline_graph(
    schedule: str,
    p: int,
    v: int,
    m: int,
    *,
    overlap_gather: bool,
    overlap_scatter: bool,
    scatter_every: int,
) -> Graph:
    """Everything that a step waits for is a path of this graph.

    Compute stream of a rank: its operations in order. F(i) waits for F(i - 1),
    B(i) for B(i + 1), one p2p later if that is on another rank.

    Gather stream: the all-gathers of chunks 0, 1, ... from time 0. Overlapped,
    the first forward of chunk j starts FIRST after gather j - 1 and its results
    are not there before gather j is. Otherwise the first operation waits for all.

    Scatter stream: after every ``scatter_every``-th micro-batch of a chunk, and
    after its last. Overlapped, the reduce-scatter starts with that backward (W
    where it exists) and is over no earlier than LAST after its end; the next
    one of the rank waits for that. Otherwise all run after the last operation.

    The optimizers start when the scatters of all ranks are over, because
    clipping needs the norm of all gradients. The step ends with the last.

    Args:
        schedule: One of ``SCHEDULES``. [text]
        p: Pipeline ranks. [1]
        v: Chunks of a rank. [1]
        m: Micro-batches in a step. [1]
        overlap_gather: Parameters arrive while forwards run. [bool]
        overlap_scatter: Gradients leave while backwards run. [bool]
        scatter_every: Micro-batches of one reduce-scatter; m or more for one a
            step. [1]

    Returns:
        The graph, shared between callers: about
        ``p v m (2 or 3) + 4 p v + 4 p v ceil(m / scatter_every)`` nodes. [1]

    Raises:
        ValueError: The schedule is unknown or does not exist for these numbers.

    Leaves out that transfers share links, and that communication slows compute:
    both belong in the durations.
    """
    every = min(scatter_every, m)
    key = (schedule, p, v, m, overlap_gather, overlap_scatter, every)
    graph = _CACHE.get(key)
    if graph is None:
        graph = _Builder(
            schedule,
            p,
            v,
            m,
            overlap_gather=overlap_gather,
            overlap_scatter=overlap_scatter,
            scatter_every=every,
        ).build()
        _CACHE.put(key, graph)
    return graph
