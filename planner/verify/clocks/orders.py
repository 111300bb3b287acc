"""Orders of long steps without their middle, which repeats."""

from dataclasses import dataclass
from math import lcm

from planner.schedules.operation import Op
from planner.schedules.order import operation_count, operations
from planner.specs.layouts.layout import Layout

LONG = 2**14
"""Forwards and backwards from which the middle of a step is not written out. [1]"""


@dataclass(frozen=True)
class Order:
    """Operations of one rank, with the middle that repeats written once.

    The ``length`` operations from ``start`` on run ``repeats`` times. Each repetition
    adds ``micros`` to the micro-batches of all operations after it.
    """

    short: tuple[Op, ...]
    """The order with a single repetition. [1]"""
    start: int = 0
    """First operation that repeats. [1]"""
    length: int = 0
    """Operations that repeat; none of a short step. [1]"""
    repeats: int = 1
    """Repetitions of the middle. [1]"""
    micros: int = 0
    """Micro-batches of one virtual stage in one repetition. [1]"""

    def __len__(self) -> int:
        return len(self.short) + (self.repeats - 1) * self.length

    @property
    def stop(self) -> int:
        """First operation after all repetitions. [1]."""
        return self.start + self.repeats * self.length

    def at(self, index: int) -> Op:
        """Give an operation of the whole order."""
        if not self.length or index < self.start:
            return self.short[index]
        before = min((index - self.start) // self.length, self.repeats - 1)
        op = self.short[index - before * self.length]
        return Op(op.kind, op.micro + before * self.micros, op.chunk)


def orders_of(layout: Layout, every: int) -> list[Order]:
    """Operations of every pipeline rank in the order in which they run.

    A long step is a step of fewer micro-batches whose middle repeats. Two such steps,
    one period of micro-batches apart, prove this. The longer step has the middle of
    the shorter step once more, and no other difference.

    Returns:
        Order of each rank. shape (pp,)
    """
    schedule, pp, vpp = layout.schedule, layout.pp, layout.vpp
    ways = 2 if schedule == "dualpipe" else 1
    micros = layout.grad_accum
    period = 2 * lcm(pp, every if ways * every < micros else 1)
    least = 6 * pp + 4 * period
    repeats = (micros - least) // period
    long = operation_count(pp, vpp, micros) >= LONG and schedule != "gpipe"
    if not long or repeats < 1:
        return [Order(each) for each in operations(schedule, pp, vpp, micros)]
    few = micros - repeats * period
    pairs = zip(
        operations(schedule, pp, vpp, few),
        operations(schedule, pp, vpp, few + period),
        strict=True,
    )
    return [_order(*pair, repeats + 1, period // ways) for pair in pairs]


def _order(
    short: tuple[Op, ...], longer: tuple[Op, ...], repeats: int, micros: int
) -> Order:
    """Find the middle that repeats, from two steps of a rank, one period apart."""
    length = len(longer) - len(short)
    start = (len(short) - length) // 2
    order = Order(short, start, length, 2, micros)
    assert tuple(map(order.at, range(len(order)))) == longer, "the order has no middle"
    return Order(short, start, length, repeats, micros)
