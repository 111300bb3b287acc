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
        self.every = prices.scatter_every
        self.place = placement(self.layout.schedule, self.pp, self.layout.vpp)
        self.micros = self.place.micros(self.layout.grad_accum)
        everywhere = range(self.place.stages)
        self.lags = [self.p2p * self.place.hops(stage) for stage in everywhere]
        self.ranks = [self.place.rank(stage) for stage in everywhere]
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
        self.ends = [len(order) for order in self.orders]
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
            if self.same.more:
                self.same.skip(now)
        at, ends = self.at, self.ends
        assert at == ends, f"ranks wait for each other at {at} of {ends}"
        reduced = [self._all_reduced(rank) for rank in range(self.pp)]
        updates = [sum(self._of_rank("optimizer", rank)) for rank in range(self.pp)]
        return max(reduced) + max(updates) + self.prices.overhead

    def _of_rank(self, name: str, rank: int) -> list[int]:
        """Time of one kind of work on a rank, by chunk. [ns]."""
        return [self.cost[name][stage] for stage in self.place.of_rank(rank)]

    def _gather(self, rank: int) -> None:
        """Schedule the events at which gathered parameters allow a first forward."""
        if not self.prices.pricing.profile.overlap_param_gather:
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
        if self.free[rank] > now or at == self.ends[rank]:
            return
        order = self.orders[rank]
        op = order.at(at)
        stage = self.place.of_rank(rank)[op.chunk]
        if not self._is_there(op, stage, now):
            return
        if op.kind == "P":
            pair = order.at(at + 1)
            if not self._is_there(pair, self.place.stage(rank, pair.chunk), now):
                return
        if self._is_first(op) and self._opens(rank, op.chunk) > now:
            return
        self.at[rank] = at + 1
        self._run(op, rank, stage, now)

    def _is_there(self, op: Op, stage: int, now: int) -> bool:
        """Tell if the input has arrived; a W follows its own backward on the rank."""
        kind, micro, _ = op
        if kind == "W" or (kind in FORWARD and self.place.is_first(stage)):
            return True
        needs = "F" if kind in FORWARD else "B"
        return self.arrived.get((needs, stage, micro), now + 1) <= now

    def _is_first(self, op: Op) -> bool:
        """Tell if parameters arrive while this forward runs."""
        if op.micro or op.kind not in FORWARD:
            return False
        return self.prices.pricing.profile.overlap_param_gather

    def _run(self, op: Op, rank: int, stage: int, now: int) -> None:
        """Advance the clock over an operation and send its result."""
        kind, micro, chunk = op
        end = now + self.work[kind][stage]
        self.arrived.pop(("F" if kind in FORWARD else "B", stage, micro), None)
        if self._is_first(op):
            end = max(end, self.gathered[rank][chunk + 1])
        if kind == self.reduces_beside and self._completes_a_group(op):
            self._reduce(rank, stage, now, end)
        self.free[rank] = end
        heapq.heappush(self.events, (end, rank))
        if kind in {"P", "H"}:
            self.kept[rank].append((op, stage))
            return
        for done, at in self.kept[rank]:
            self._send(done, at, end)
        self.kept[rank].clear()
        self._send(op, stage, end)

    def _completes_a_group(self, op: Op) -> bool:
        """Tell if an operation is the last of a group, which is reduced together."""
        return (op.micro + 1) % self.every == 0 or op.micro + 1 == self.micros

    def _reduce(self, rank: int, stage: int, start: int, end: int) -> None:
        """Reduce-scatter gradients beside the backward, one chunk after the other."""
        moved = max(start, self.reduced[rank]) + self.cost["scatter"][stage]
        self.reduced[rank] = max(moved, end + self.last[stage])

    def _send(self, op: Op, stage: int, end: int) -> None:
        """Send the input that the next operation on this micro-batch needs."""
        kind, micro, _ = op
        if kind in FORWARD:
            if self.place.is_last(stage):
                self.arrived["B", stage, micro] = end
            else:
                self._arrive("F", stage + 1, micro, end + self.lags[stage + 1])
        elif kind != "W" and not self.place.is_first(stage):
            self._arrive("B", stage - 1, micro, end + self.lags[stage])

    def _arrive(self, needs: str, stage: int, micro: int, when: int) -> None:
        """Note when an input arrives, and wake its rank then."""
        self.arrived[needs, stage, micro] = when
        heapq.heappush(self.events, (when, self.ranks[stage]))

    def _all_reduced(self, rank: int) -> int:
        """Time at which all gradients of a rank are reduced. [ns]."""
        if self.prices.pricing.profile.overlap_grad_reduce:
            return max(self.reduced[rank], self.free[rank])
        groups = -(-self.micros // self.prices.scatter_every)
        return self.free[rank] + groups * sum(self._of_rank("scatter", rank))
