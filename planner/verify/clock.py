"""The step again, event by event: a clock on every rank, messages between them."""

import heapq
from collections.abc import Iterator
from itertools import accumulate

from planner.schedules.operation import BACKWARD, FORWARD, Op
from planner.schedules.placement import placement
from planner.verify.orders import orders_of
from planner.verify.price import NANO
from planner.verify.prices import Prices
from planner.verify.recurrence import Recurrence

NAMES = ("forward", "backward", "weight", "gather", "scatter", "optimizer")
"""Times of what a stage holds. [text]"""
AGREES = 1e-6
"""Largest relative difference to a claimed step. [1]"""


def time_violations(prices: Prices, step_s: float) -> Iterator[str]:
    """The step lasts as long as was claimed.

    Args:
        prices: The plan.
        step_s: Step time that was claimed. [s]

    Returns:
        A sentence if it does not. [text]
    """
    found = Clocks(prices).step() * prices.slowdown / NANO
    if not abs(found - step_s) <= AGREES * found:
        yield f"the step takes {found:.9g} s by the clocks, {step_s:.9g} s were claimed"


class Clocks:
    """Ranks that sleep until a message, their own work or parameters wake them.

    A rank runs its operations in order, each as soon as its input has arrived; a
    paired forward also awaits that of the backward after it. Results travel for
    one p2p to the rank of the next virtual stage, at the end of what runs as one,
    and not at all where that is the same rank. With
    overlap, the first forward of a chunk waits for the gathers of the chunks
    before and its own first unit, and ends no earlier than its own gather; the
    backward that completes a group starts that chunk's reduce-scatter, which is
    over no earlier than the last unit's after that backward. Without overlap,
    gathers come before and reduce-scatters after everything. The optimizers
    start when all gradients are reduced. Once all ranks stand to each other as they
    did some periods ago, ``Recurrence`` skips what would only repeat.
    """

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.layout = prices.layout
        self.orders = orders_of(self.layout, prices.scatter_every)
        self.pp, self.p2p = self.layout.pp, prices.p2p
        self.place = placement(self.layout.schedule, self.pp, self.layout.vpp)
        self.micros = self.place.micros(self.layout.grad_accum)
        everywhere = range(self.place.stages)
        held = [prices.stages[stage % self.place.depth] for stage in everywhere]
        self.cost: dict[str, list[int]] = {
            name: [sum(getattr(u, name) for u in units) for units in held]
            for name in NAMES
        }
        weights = any(op.kind == "W" for op in self.orders[0].short)
        # Priced whole; where weight gradients come on their own, less their time.
        late = self.cost["weight"] if weights else [0] * self.place.stages
        first = [b - w for b, w in zip(self.cost["backward"], late, strict=True)]
        self.work = dict.fromkeys(FORWARD, self.cost["forward"])
        self.work |= dict.fromkeys(BACKWARD, first) | {"W": late}
        self.reduces_beside = "W" if weights else "B"
        edges = [prices.edges(stage % self.place.depth) for stage in everywhere]
        self.first, self.last = [e[0] for e in edges], [e[1] for e in edges]
        self.gathered: list[list[int]] = [
            list(accumulate(self._of_rank("gather", rank), initial=0))
            for rank in range(self.pp)
        ]
        self.free = [0] * self.pp
        self.reduced = [0] * self.pp
        self.at = [0] * self.pp
        self.arrived: dict[tuple[str, int, int], int] = {}
        self.kept: list[list[tuple[Op, int]]] = [[] for _ in range(self.pp)]
        self.events: list[tuple[int, int]] = []
        self.same = Recurrence(self)

    def step(self) -> int:
        """Run the step to its end.

        Returns:
            Time before the straggler factor. [ns]
        """
        for rank in range(self.pp):
            self._gather(rank)
        while self.events:
            now, rank = heapq.heappop(self.events)
            self._wake(rank, now)
            self.same.skip(now)
        done = [len(order) for order in self.orders]
        assert self.at == done, f"ranks wait for each other at {self.at} of {done}"
        reduced = [self._all_reduced(rank) for rank in range(self.pp)]
        updates = [sum(self._of_rank("optimizer", rank)) for rank in range(self.pp)]
        return max(reduced) + max(updates) + self.prices.overhead

    def _of_rank(self, name: str, rank: int) -> list[int]:
        """Costs of one name of a rank, by chunk. [ns]."""
        return [self.cost[name][stage] for stage in self.place.of_rank(rank)]

    def _gather(self, rank: int) -> None:
        """Set the alarms at which parameters let a first forward start."""
        if not self.prices.workload.profile.overlap_param_gather:
            self.free[rank] = self.gathered[rank][-1]
        heapq.heappush(self.events, (self.free[rank], rank))
        for chunk in range(self.layout.vpp):
            heapq.heappush(self.events, (self._opens(rank, chunk), rank))

    def _opens(self, rank: int, chunk: int) -> int:
        """When the first unit of a chunk is gathered. [ns]."""
        return self.gathered[rank][chunk] + self.first[self.place.stage(rank, chunk)]

    def _wake(self, rank: int, now: int) -> None:
        """Start the next operation if the rank is free and its input is there."""
        at = self.at[rank]
        order = self.orders[rank]
        if at == len(order) or self.free[rank] > now:
            return
        op = order.at(at)
        pair = (op, order.at(at + 1)) if op.kind == "P" else (op,)
        if not all(self._is_there(half, rank, now) for half in pair):
            return
        if self._is_first(op) and self._opens(rank, op.chunk) > now:
            return
        self.at[rank] += 1
        self._run(op, rank, self.place.stage(rank, op.chunk), now)

    def _is_there(self, op: Op, rank: int, now: int) -> bool:
        """Say if the input has arrived; a W's own backward has just been here."""
        stage = self.place.stage(rank, op.chunk)
        if op.kind == "W" or (op.kind in FORWARD and self.place.is_first(stage)):
            return True
        needs = "F" if op.kind in FORWARD else "B"
        return self.arrived.get((needs, stage, op.micro), now + 1) <= now

    def _is_first(self, op: Op) -> bool:
        """Say if parameters arrive while this forward runs."""
        overlap = self.prices.workload.profile.overlap_param_gather
        return overlap and op.kind in FORWARD and op.micro == 0

    def _run(self, op: Op, rank: int, stage: int, now: int) -> None:
        """Advance the clock over an operation and send its result."""
        end = now + self.work[op.kind][stage]
        self.arrived.pop(("F" if op.kind in FORWARD else "B", stage, op.micro), None)
        if self._is_first(op):
            end = max(end, self.gathered[rank][op.chunk + 1])
        if self._completes_a_group(op):
            self._reduce(rank, stage, now, end)
        self.free[rank] = end
        heapq.heappush(self.events, (end, rank))
        self.kept[rank].append((op, stage))
        if op.kind not in {"P", "H"}:
            for done, at in self.kept[rank]:
                self._send(done, at, end)
            self.kept[rank].clear()

    def _completes_a_group(self, op: Op) -> bool:
        """Say if gradients travel beside this operation."""
        whole = (op.micro + 1) % self.prices.scatter_every == 0
        complete = whole or op.micro + 1 == self.micros
        return complete and op.kind == self.reduces_beside

    def _reduce(self, rank: int, stage: int, start: int, end: int) -> None:
        """Move gradients beside the backward, one chunk after the other."""
        moved = max(start, self.reduced[rank]) + self.cost["scatter"][stage]
        self.reduced[rank] = max(moved, end + self.last[stage])

    def _send(self, op: Op, stage: int, end: int) -> None:
        """Hand on what the next operation on this micro-batch needs."""
        ahead = op.kind in FORWARD
        if ahead and self.place.is_last(stage):
            self.arrived["B", stage, op.micro] = end
        elif op.kind != "W" and not (self.place.is_first(stage) and not ahead):
            there = stage + 1 if ahead else stage - 1
            arrival = end + self.p2p * self.place.hops(max(stage, there))
            self.arrived["F" if ahead else "B", there, op.micro] = arrival
            heapq.heappush(self.events, (arrival, self.place.rank(there)))

    def _all_reduced(self, rank: int) -> int:
        """When the gradients of a rank are reduced. [ns]."""
        if self.prices.workload.profile.overlap_grad_reduce:
            return max(self.reduced[rank], self.free[rank])
        groups = -(-self.micros // self.prices.scatter_every)
        return self.free[rank] + groups * sum(self._of_rank("scatter", rank))
