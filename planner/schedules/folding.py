"""Builds the short step that stands for a long one."""

from dataclasses import replace
from typing import TypedDict

import numpy as np

from planner.schedules.builder import Builder, Graph
from planner.schedules.fold import (
    Fold,
    cut_before,
    inserted,
    pays,
    period_of,
    short_step,
)
from planner.schedules.order import MOST_OPERATIONS, operation_count

LONG, ALWAYS = 2**15, MOST_OPERATIONS // 2
"""Forwards and backwards from which a step is folded: where that pays, and where it
does not, as its graph would take too much memory. [1]"""


def is_long(p: int, v: int, m: int, short: int, period: int) -> bool:
    """Say if a step is folded.

    Returns:
        True for a step of many operations that has a short step. [bool]
    """
    count = operation_count(p, v, m)
    worth = count >= LONG and pays(p, v, m, short, period)
    return short < m and (worth or count > ALWAYS)


class _InTurn(Builder):
    """Runs the first rank, and of the others only what it waits for.

    When the first rank has done an operation, only what the operation needs has run.
    Once the pipeline is full, equal rows come one period later.
    """

    def _run_all_ranks(self) -> None:
        """Place operations as the first rank asks for them; then what is left."""
        self.marks: list[int] = []
        for rank in range(self.p):
            while len(self.streams[rank]) < len(self.orders[rank]):
                self._run_next(rank)
                if not rank:
                    self.marks.append(len(self.rows))

    def _run_next(self, rank: int) -> None:
        """Place the next operation of a rank after the operations it waits for."""
        asked = [rank]
        while asked:
            blocker = self._blocker(asked[-1])
            if blocker is None:
                self._run_one(asked.pop())
            elif len(asked) > self.p:
                raise AssertionError(f"ranks wait for each other: {asked}")
            else:
                asked.append(blocker)

    def _blocker(self, rank: int) -> int | None:
        """Find the rank that has to run before this one can, if any."""
        order, at = self.orders[rank], len(self.streams[rank])
        for op in order[at : at + (2 if order[at].kind == "P" else 1)]:
            if self._input(op, rank)[0] < 0:
                stage = self.place.stage(rank, op.chunk)
                return self.place.rank(stage + (-1 if op.kind in ("F", "P") else 1))
        return None

    def _run_one(self, rank: int) -> None:
        """Place an operation whose input is there."""
        order, at = self.orders[rank], len(self.streams[rank])
        if order[at].kind == "P":
            self._pairs(order[at + 1], rank)
        self._place(order[at], rank, *self._input(order[at], rank))

    def _scatter_at_the_end(self) -> None:
        """Add one node for all groups of a chunk, as many groups as in a long step."""
        for rank in range(self.p):
            node = self.free[rank]
            for stage in self.place.of_rank(rank):
                node = self._add(node, node, self.slots.scatter(stage))
            self.scattered[rank] = node


class Settings(TypedDict):
    """Overlaps of a step, and micro-batches of one reduce-scatter."""

    overlap_gather: bool
    overlap_scatter: bool
    scatter_every: int


def folded_graph(
    schedule: str, p: int, v: int, m: int, settings: Settings
) -> Graph | None:
    """Build the graph of a short step, with the fold that makes it the long step.

    Args:
        schedule: One of ``SCHEDULES``. [text]
        settings: Overlaps of the step, and micro-batches of one reduce-scatter.

    Returns:
        The graph; None where no shorter step stands for this one, or does so only
        at a loss.
    """
    overlap, every = settings["overlap_scatter"], settings["scatter_every"]
    if every < 1:
        return None
    ways = 2 if schedule == "dualpipe" else 1
    groups = -(-m // (every * ways))
    in_turn = every if overlap and groups > 1 else None
    period = period_of(schedule, p, v, in_turn)
    short = short_step(schedule, p, v, m, in_turn)
    if not is_long(p, v, m, short, period):
        return None
    builder = _InTurn(schedule, p, v, short, **settings)
    graph = builder.build()
    longer = _InTurn(schedule, p, v, short + period, **settings).build()
    start = builder.marks[len(builder.marks) // 2]
    rows = inserted(graph.table, longer.table, start)
    if not rows:
        return None
    repeats = 1 + (m - short) // period
    fold = _fold(graph, start, start + rows, repeats, 1 if overlap else groups)
    return replace(graph, fold=fold)


def _fold(graph: Graph, start: int, stop: int, repeats: int, groups: int) -> Fold:
    """Note where the block lies, and how often each duration counts."""
    times = np.ones(len(graph), dtype=np.int64)
    slot, slots = graph.table[:, 3], graph.slots
    reduced = (slot >= slots.scatter(0)) & (slot < slots.first(0))
    times[reduced] = groups
    cut = cut_before(graph.table, start, stop)
    return Fold(start, stop, repeats, times, cut)
