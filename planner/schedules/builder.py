"""The operations of a step as rows of a graph, added as soon as they can run."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.schedules.fold import Fold
from planner.schedules.operation import FORWARD, Op
from planner.schedules.order import SPLIT, operations
from planner.schedules.placement import placement
from planner.schedules.slots import Slots
from planner.schedules.walks import Ints, Rows


@dataclass(frozen=True, eq=False)
class Graph:
    """Operations of a step, numbered so that predecessors come first.

    Node 0 is the source and ends at 0, the last node is the end of the step::

        end[i] = max(end[first[i]], end[second[i]] + lag[i] p2p) + x[slot[i]]

    ``first[i]`` is on the node's own rank where the two differ. Row i of ``table``
    (first, second, lag, slot) belongs to node i. ``streams`` names the nodes of every
    rank's operations, in the order of ``orders``.
    """

    slots: Slots
    orders: tuple[tuple[Op, ...], ...]
    streams: tuple[tuple[int, ...], ...]
    table: Ints
    fold: Fold | None = None
    """Block that makes this short step stand for a long one; None for a whole step."""

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def rows(self) -> Rows:
        """Rows of a whole step, to be walked over; each duration counts once."""
        times = np.ones((len(self), 1), dtype=np.int64)
        return Rows(np.hstack([self.table, times]))


class Builder:
    """Adds the nodes of a step, rank by rank, as soon as what they need is there.

    ``forward[i][k]`` is the node after which F(i, k) counts as done, -1 before it
    has one. ``backward[i][k]`` likewise for B. ``kept[r]`` names the entries that
    the next W of rank r settles: what H and P hold back.
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
        self.place = placement(schedule, p, v)
        self.p, self.micros = p, self.place.micros(m)
        self.overlap_gather, self.overlap_scatter = overlap_gather, overlap_scatter
        self.every = scatter_every
        self.reduces_after = "W" if schedule in SPLIT else "B"
        self.rows = [(0, 0, 0, self.slots.zero)]
        self.free = [0] * p
        self.scattered = [0] * p
        self.gathers = [0] * (p * v)
        self.streams: list[list[int]] = [[] for _ in range(p)]
        self.forward = [[-1] * self.micros for _ in range(p * v)]
        self.backward = [[-1] * self.micros for _ in range(p * v)]
        self.hops = [self.place.hops(stage) for stage in range(p * v)]
        stages, at_source = p * v, [0] * self.micros
        # The slots of a kind of operation follow each other, stage by stage.
        self.slot = {"F": 0, "P": 0, "B": stages, "H": stages, "W": 2 * stages}
        self.needs_ahead = [
            at_source if self.place.is_first(stage) else self.forward[stage - 1]
            for stage in range(stages)
        ]
        self.kept: list[list[tuple[list[int], int]]] = [[] for _ in range(p)]

    def build(self) -> Graph:
        """Build the graph of the whole step."""
        self._gather_parameters()
        self._run_all_ranks()
        if not self.overlap_scatter:
            self._scatter_at_the_end()
        self._optimize()
        return Graph(
            slots=self.slots,
            orders=self.orders,
            streams=tuple(map(tuple, self.streams)),
            table=np.array(self.rows, dtype=np.int64),
        )

    def _add(self, first: int, second: int, slot: int, lag: int = 0) -> int:
        """Append a node; the caller passes the rank's own predecessor first."""
        self.rows.append((first, second, lag, slot))
        return len(self.rows) - 1

    def _gather_parameters(self) -> None:
        """Gather the chunks of a rank one after the other, from time 0."""
        for rank in range(self.p):
            node = 0
            for stage in self.place.of_rank(rank):
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
        for at in range(before, len(order)):
            needs, lag = self._input(order[at], rank)
            if needs < 0:
                break
            if order[at].kind == "P" and not self._pairs(order[at + 1], rank):
                break
            self._place(order[at], rank, needs, lag)
        return len(stream) - before

    def _pairs(self, after: Op, rank: int) -> bool:
        """Let the rank wait for the input of a pair's backward, if that is there."""
        needs, lag = self._input(after, rank)
        if needs >= 0:
            self.free[rank] = self._add(self.free[rank], needs, self.slots.zero, lag)
        return needs >= 0

    def _input(self, op: Op, rank: int) -> tuple[int, int]:
        """Find the node whose result the operation needs, and its p2p lags."""
        kind, micro, chunk = op
        if kind == "W":
            return self.free[rank], 0
        stage = self.place.of_rank(rank)[chunk]
        if kind in FORWARD:
            return self.needs_ahead[stage][micro], self.hops[stage]
        if self.place.is_last(stage):
            return self.forward[stage][micro], 0
        return self.backward[stage + 1][micro], self.hops[stage + 1]

    def _place(self, op: Op, rank: int, needs: int, lag: int) -> None:
        """Add the operation and what its communication hangs on it."""
        kind, micro, chunk = op
        stage = self.place.of_rank(rank)[chunk]
        slot, is_ahead = self.slot[kind] + stage, kind in FORWARD
        if is_ahead and micro == 0 and self.overlap_gather:
            done = self._first_forward(rank, stage, needs, lag)
        elif not is_ahead and self.overlap_scatter and self._reduces(op):
            done = self._last_backward(rank, stage, needs, slot, lag)
        else:
            done = self._compute(rank, needs, slot, lag)
        results = (self.forward if is_ahead else self.backward)[stage]
        if kind in {"F", "B"}:
            results[micro] = done
        else:
            self._settle(op, rank, results, done)

    def _settle(self, op: Op, rank: int, results: list[int], done: int) -> None:
        """Keep a result until the W of its pair is over, which hands it on."""
        if op.kind in {"P", "H"}:
            self.kept[rank].append((results, op.micro))
            return
        for kept, micro in self.kept[rank]:
            kept[micro] = done
        self.kept[rank].clear()

    def _compute(self, rank: int, needs: int, slot: int, lag: int) -> int:
        """Add a node to the compute stream of the rank."""
        node = len(self.rows)
        self.rows.append((self.free[rank], needs, lag, slot))
        self.streams[rank].append(node)
        self.free[rank] = node
        return node

    def _reduces(self, op: Op) -> bool:
        """Say if a group of micro-batches is complete, so gradients travel."""
        complete = (op.micro + 1) % self.every == 0 or op.micro == self.micros - 1
        return complete and op.kind == self.reduces_after

    def _first_forward(self, rank: int, stage: int, needs: int, lag: int) -> int:
        """Add a forward that runs while the parameters of its chunk arrive."""
        own = self.place.of_rank(rank)[: self.place.chunk(stage)]
        before = self.gathers[own[-1]] if own else 0
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
        groups = -(-self.micros // self.every)
        for rank in range(self.p):
            node = self.free[rank]
            for stage in self.place.of_rank(rank):
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
