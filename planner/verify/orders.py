"""Orders of long steps without their middle, which repeats."""

from dataclasses import dataclass
from math import lcm

from planner.schedules.operation import Op
from planner.schedules.order import operation_count, operations
from planner.specs.layout import Layout

LONG = 2**14
"""Forwards and backwards from which the middle of a step is not written out. [1]"""


@dataclass(frozen=True)
class Order:
    """Operations of one rank; those from ``start`` on come ``repeats`` times.

    Each time, and for all that follows, the micro-batches are ``micros`` later.
    """

    short: tuple[Op, ...]
    """The order with the part that repeats once. [1]"""
    start: int = 0
    """First operation that repeats. [1]"""
    length: int = 0
    """Operations that repeat; none of a short step. [1]"""
    repeats: int = 1
    """How often they come. [1]"""
    micros: int = 0
    """Micro-batches of one virtual stage in them. [1]"""

    def __len__(self) -> int:
        return len(self.short) + (self.repeats - 1) * self.length

    @property
    def stop(self) -> int:
        """First operation behind all that repeat. [1]."""
        return self.start + self.repeats * self.length

    def at(self, index: int) -> Op:
        """Give an operation of the whole order.

        Args:
            index: Which. [1]

        Returns:
            The operation.
        """
        if not self.length or index < self.start:
            return self.short[index]
        before = min((index - self.start) // self.length, self.repeats - 1)
        op = self.short[index - before * self.length]
        return Op(op.kind, op.micro + before * self.micros, op.chunk)


def orders_of(layout: Layout, every: int) -> list[Order]:
    """Operations of every pipeline rank in the order in which they run.

    A long step is that of fewer micro-batches with its middle several times. That
    this is so is read from two such steps, one period apart: the longer one has
    the middle of the shorter one once more, and nothing else.

    Args:
        layout: A legal layout.
        every: Micro-batches of one reduce-scatter of a virtual stage. [1]

    Returns:
        One order a rank. shape (pp,)
    """
    schedule, pp, vpp = layout.schedule, layout.pp, layout.vpp
    ways = 1 + (schedule == "dualpipe")
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
    """Find what two steps of a rank, one period apart, have as their middle."""
    length = len(longer) - len(short)
    start = (len(short) - length) // 2
    order = Order(short, start, length, 2, micros)
    assert tuple(map(order.at, range(len(order)))) == longer, "the order has no middle"
    return Order(short, start, length, repeats, micros)
