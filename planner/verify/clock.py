"""The step again, event by event: a clock on every rank, messages between them."""

import heapq
from collections.abc import Iterator
from itertools import accumulate

from planner.schedules.operation import Op
from planner.verify.memory import orders
from planner.verify.prices import NANO, Prices

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

    A rank runs its operations in order, each as soon as its input has arrived.
    Results travel for one p2p to the rank of the next virtual stage. With
    overlap, the first forward of a chunk waits for the gathers of the chunks
    before and its own first unit, and ends no earlier than its own gather; the
    backward that completes a group starts that chunk's reduce-scatter, which is
    over no earlier than the last unit's after that backward. Without overlap,
    gathers come before and reduce-scatters after everything. The optimizers
    start when all gradients are reduced.
    """

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.layout = prices.layout
        self.orders = orders(self.layout)
        self.pp, self.stages = self.layout.pp, len(prices.stages)
        self.p2p = prices.p2p
        self.cost: dict[str, list[int]] = {
            name: [sum(getattr(u, name) for u in held) for held in prices.stages]
            for name in ("forward", "backward", "gather", "scatter", "optimizer")
        }
        # The backward is priced with its weight gradient; W only says when.
        self.work = {"F": self.cost["forward"], "B": self.cost["backward"]}
        self.work["W"] = [0] * self.stages
        weights = any(op.kind == "W" for op in self.orders[0])
        self.reduces_beside = "W" if weights else "B"
        edges = [prices.edges(stage) for stage in range(self.stages)]
        self.first, self.last = [e[0] for e in edges], [e[1] for e in edges]
        self.gathered: list[list[int]] = [
            list(accumulate(self.cost["gather"][rank :: self.pp], initial=0))
            for rank in range(self.pp)
        ]
        self.free = [0] * self.pp
        self.reduced = [0] * self.pp
        self.at = [0] * self.pp
        self.arrived: dict[tuple[str, int, int], int] = {
            ("F", 0, micro): 0 for micro in range(self.layout.grad_accum)
        }
        self.events: list[tuple[int, int]] = []

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
        done = [len(order) for order in self.orders]
        assert self.at == done, f"ranks wait for each other at {self.at} of {done}"
        reduced = [self._all_reduced(rank) for rank in range(self.pp)]
        optimizer = self.cost["optimizer"]
        updates = [sum(optimizer[rank :: self.pp]) for rank in range(self.pp)]
        return max(reduced) + max(updates) + self.prices.overhead

    def _gather(self, rank: int) -> None:
        """Set the alarms at which parameters let a first forward start."""
        if not self.prices.workload.profile.overlap_param_gather:
            self.free[rank] = self.gathered[rank][-1]
        heapq.heappush(self.events, (self.free[rank], rank))
        for chunk in range(self.layout.vpp):
            heapq.heappush(self.events, (self._opens(rank, chunk), rank))

    def _opens(self, rank: int, chunk: int) -> int:
        """When the first unit of a chunk is gathered. [ns]."""
        return self.gathered[rank][chunk] + self.first[chunk * self.pp + rank]

    def _wake(self, rank: int, now: int) -> None:
        """Start the next operation if the rank is free and its input is there."""
        if self.at[rank] == len(self.orders[rank]) or self.free[rank] > now:
            return
        op = self.orders[rank][self.at[rank]]
        stage = op.chunk * self.pp + rank
        # A weight gradient follows its own backward: nothing has to arrive.
        there = self.arrived.get((op.kind, stage, op.micro)) if op.kind != "W" else now
        if there is None or there > now:
            return
        if self._is_first(op) and self._opens(rank, op.chunk) > now:
            return
        self.at[rank] += 1
        self._run(op, rank, stage, now)

    def _is_first(self, op: Op) -> bool:
        """Say if parameters arrive while this forward runs."""
        overlap = self.prices.workload.profile.overlap_param_gather
        return overlap and op.kind == "F" and op.micro == 0

    def _run(self, op: Op, rank: int, stage: int, now: int) -> None:
        """Advance the clock over an operation and send its result."""
        end = now + self.work[op.kind][stage]
        if self._is_first(op):
            end = max(end, self.gathered[rank][op.chunk + 1])
        if self._completes_a_group(op):
            self._reduce(rank, stage, now, end)
        self.free[rank] = end
        heapq.heappush(self.events, (end, rank))
        self._send(op, stage, end)

    def _completes_a_group(self, op: Op) -> bool:
        """Say if gradients travel beside this operation."""
        whole = (op.micro + 1) % self.prices.scatter_every == 0
        complete = whole or op.micro + 1 == self.layout.grad_accum
        return complete and op.kind == self.reduces_beside

    def _reduce(self, rank: int, stage: int, start: int, end: int) -> None:
        """Move gradients beside the backward, one chunk after the other."""
        moved = max(start, self.reduced[rank]) + self.cost["scatter"][stage]
        self.reduced[rank] = max(moved, end + self.last[stage])

    def _send(self, op: Op, stage: int, end: int) -> None:
        """Hand on what the next operation on this micro-batch needs."""
        if op.kind == "F" and stage == self.stages - 1:
            self.arrived["B", stage, op.micro] = end
            return
        there = stage + {"F": 1, "B": -1, "W": self.stages}[op.kind]
        if 0 <= there < self.stages:
            self.arrived[op.kind, there, op.micro] = end + self.p2p
            heapq.heappush(self.events, (end + self.p2p, there % self.pp))

    def _all_reduced(self, rank: int) -> int:
        """When the gradients of a rank are reduced. [ns]."""
        if self.prices.workload.profile.overlap_grad_reduce:
            return max(self.reduced[rank], self.free[rank])
        groups = -(-self.layout.grad_accum // self.prices.scatter_every)
        return self.free[rank] + groups * sum(self.cost["scatter"][rank :: self.pp])
