"""Skips the middle of a long step as soon as the simulated step repeats."""

from typing import Protocol

from planner.schedules.operation import Op
from planner.verify.clocks.orders import Order

State = tuple[object, ...]
AHEAD = 2
"""Operations that decide what a rank does next: a pair. [1]"""


class Running(Protocol):
    """State of a simulated step: clocks of the ranks, messages and events."""

    orders: list[Order]
    at: list[int]
    free: list[int]
    reduced: list[int]
    arrived: dict[tuple[str, int, int], int]
    kept: list[list[tuple[Op, int]]]
    events: list[tuple[int, int]]


class Recurrence:
    """Compares a simulated step with an earlier state, a period or more ago.

    The state is read each time the first rank completes a period. It holds all
    ranks, messages and events, relative to the clock and to the period. Times in the
    past count as now, since no rank waits for them. A state equal to the state k
    periods and t ns ago means repetition: every k periods take t ns.
    """

    def __init__(self, step: Running) -> None:
        self.step, self.first = step, step.orders[0]
        self.seen: State = ()
        self.since = (0, 0)
        self.next = self.first.start
        self.more = self.first.length > 0

    def skip(self, now: int) -> None:
        """Skip periods that only repeat, once a repetition is found.

        Args:
            now: The clock. [ns]
        """
        if not self.more or self.step.at[0] < self.next:
            return
        self.next += self.first.length
        places = zip(self.step.at, self.step.orders, strict=True)
        if any(at < order.start for at, order in places):
            return
        period = (self.step.at[0] - self.first.start) // self.first.length
        state = self._state(period, now)
        if state == self.seen:
            self._jump(period - self.since[0], now - self.since[1])
        elif period >= 2 * self.since[0]:
            # Each kept state lasts twice as long, so any repetition is found at last.
            self.seen, self.since = state, (period, now)

    def _state(self, period: int, now: int) -> State:
        """State that decides the rest of the step, relative to clock and period."""
        step, micros = self.step, period * self.first.micros
        places = zip(step.at, step.orders, strict=True)
        at = [here - order.start - period * order.length for here, order in places]
        messages = sorted(
            (kind, stage, micro - micros, max(time - now, 0))
            for (kind, stage, micro), time in step.arrived.items()
        )
        kept = [
            [(op.kind, op.micro - micros, stage) for op, stage in each]
            for each in step.kept
        ]
        return (
            at,
            [max(time - now, 0) for time in step.free],
            [max(time - now, 0) for time in step.reduced],
            messages,
            kept,
            sorted((time - now, rank) for time, rank in step.events),
        )

    def _jump(self, periods: int, time: int) -> None:
        """Skip as many repetitions as every rank still has ahead."""
        step = self.step
        times = min(
            (order.stop - AHEAD - at) // (periods * order.length)
            for at, order in zip(step.at, step.orders, strict=True)
        )
        self.more = False
        if times > 0:
            self._move(times * periods, times * time)

    def _move(self, periods: int, time: int) -> None:
        """Advance ranks, messages and events by whole periods and a time. [1], [ns]."""
        step, micros = self.step, periods * self.first.micros
        for rank, order in enumerate(step.orders):
            step.at[rank] += periods * order.length
            step.free[rank] += time
            step.reduced[rank] += time
            step.kept[rank] = [
                (op._replace(micro=op.micro + micros), stage)
                for op, stage in step.kept[rank]
            ]
        step.arrived = {
            (kind, stage, micro + micros): there + time
            for (kind, stage, micro), there in step.arrived.items()
        }
        step.events = [(when + time, rank) for when, rank in step.events]
