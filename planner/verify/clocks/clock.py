"""Event-by-event simulation of a step: a clock per rank, messages between ranks."""

import heapq
from collections.abc import Iterator
from itertools import accumulate

from planner.schedules.operation import BACKWARD, FORWARD, Op
from planner.schedules.placement import placement
from planner.verify.clocks.orders import orders_of
from planner.verify.clocks.recurrence import Recurrence
from planner.verify.price import NANO
from planner.verify.prices import Prices

NAMES = ("forward", "backward", "weight", "gather", "scatter", "optimizer")
"""Times of a layer or end, as fields of ``Price``. [text]"""
AGREES = 1e-6
"""Largest allowed relative difference from the claimed step. [1]"""


def time_violations(prices: Prices, step_s: float) -> Iterator[str]:
    """Check that the step lasts as long as was claimed.

    Args:
        prices: The plan.
        step_s: Step time that was claimed. [s]

    Returns:
        A sentence if the times differ. [text]
    """
    found = Clocks(prices).step() * prices.slowdown / NANO
    if not abs(found - step_s) <= AGREES * found:
        yield f"the step takes {found:.9g} s by the clocks, {step_s:.9g} s were claimed"


class Clocks:
    """Clocks of all pipeline ranks, woken by messages, free ranks and parameters.

    Each rank runs its operations in order, each as soon as the input has arrived. A
    paired forward also waits for the input of the backward after it. Operations that
    run together send their results when the last of them ends. A result takes one
    p2p to the rank of the next virtual stage; none where both stages share a rank.

    With overlapped all-gathers, the first forward of a chunk waits for two gathers.
    These are all gathers of earlier chunks, and the first unit of the chunk itself.
    The forward ends no earlier than the gather of the whole chunk. With overlapped
    reduce-scatters, the backward that completes a group starts one for the chunk.
    The last unit of the chunk is reduced after that backward ends. Without overlap,
    all-gathers precede all passes, and reduce-scatters follow them.

    The optimizer starts when all gradients are reduced. ``Recurrence`` skips periods
    that only repeat.
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
        # Backwards are priced whole; separate weight gradients are subtracted.
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
        """Time of one kind of work on a rank, by chunk. [ns]."""
        return [self.cost[name][stage] for stage in self.place.of_rank(rank)]

    def _gather(self, rank: int) -> None:
        """Schedule the events at which gathered parameters allow a first forward."""
        if not self.prices.workload.profile.overlap_param_gather:
            self.free[rank] = self.gathered[rank][-1]
        heapq.heappush(self.events, (self.free[rank], rank))
        for chunk in range(self.layout.vpp):
            heapq.heappush(self.events, (self._opens(rank, chunk), rank))

    def _opens(self, rank: int, chunk: int) -> int:
        """Time at which the first unit of a chunk is gathered. [ns]."""
        return self.gathered[rank][chunk] + self.first[self.place.stage(rank, chunk)]

    def _wake(self, rank: int, now: int) -> None:
        """Start the next operation if the rank is free and the input has arrived."""
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
        """Tell if the input has arrived; a W follows its own backward on the rank."""
        stage = self.place.stage(rank, op.chunk)
        if op.kind == "W" or (op.kind in FORWARD and self.place.is_first(stage)):
            return True
        needs = "F" if op.kind in FORWARD else "B"
        return self.arrived.get((needs, stage, op.micro), now + 1) <= now

    def _is_first(self, op: Op) -> bool:
        """Tell if parameters arrive while this forward runs."""
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
        """Tell if an operation completes a group, which starts a reduce-scatter."""
        whole = (op.micro + 1) % self.prices.scatter_every == 0
        complete = whole or op.micro + 1 == self.micros
        return complete and op.kind == self.reduces_beside

    def _reduce(self, rank: int, stage: int, start: int, end: int) -> None:
        """Reduce-scatter gradients beside the backward, one chunk after the other."""
        moved = max(start, self.reduced[rank]) + self.cost["scatter"][stage]
        self.reduced[rank] = max(moved, end + self.last[stage])

    def _send(self, op: Op, stage: int, end: int) -> None:
        """Send the input that the next operation on this micro-batch needs."""
        ahead = op.kind in FORWARD
        if ahead and self.place.is_last(stage):
            self.arrived["B", stage, op.micro] = end
        elif op.kind != "W" and not (self.place.is_first(stage) and not ahead):
            there = stage + 1 if ahead else stage - 1
            arrival = end + self.p2p * self.place.hops(max(stage, there))
            self.arrived["F" if ahead else "B", there, op.micro] = arrival
            heapq.heappush(self.events, (arrival, self.place.rank(there)))

    def _all_reduced(self, rank: int) -> int:
        """Time at which all gradients of a rank are reduced. [ns]."""
        if self.prices.workload.profile.overlap_grad_reduce:
            return max(self.reduced[rank], self.free[rank])
        groups = -(-self.micros // self.prices.scatter_every)
        return self.free[rank] + groups * sum(self._of_rank("scatter", rank))
