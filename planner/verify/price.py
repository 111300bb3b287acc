"""One layer or one end on one rank, in the whole numbers of a verified plan."""

import math
from dataclasses import dataclass, field

from planner.cost.meshes import Floats
from planner.specs.table import BLOCK
from planner.verify.idle import Idle

NANO = 1e9
"""Nanoseconds in a second. [1]"""


@dataclass(frozen=True)
class Price:
    """One layer or one end on one rank. Times in ns, memory in blocks of 512 B."""

    forward: int
    backward: int
    saved: int
    transient: int
    static: int
    accumulated: int
    gather: int
    scatter: int
    optimizer: int
    weight: int = 0
    pending: int = 0
    idle: Idle = field(default_factory=Idle)


def one(column: Floats) -> float:
    """The only entry of a column.

    Args:
        column: One number. shape (1,)
    """
    return float(column.item())


def nanoseconds(seconds: float) -> int:
    """Whole nanoseconds, half to even.

    Args:
        seconds: Time. [s]

    Returns:
        Time. [ns]
    """
    return round(seconds * NANO)


def blocks(size: float) -> int:
    """Whole allocator blocks of 512 B, rounded up.

    Args:
        size: Memory. [B]

    Returns:
        Memory. [block]
    """
    return math.ceil(size / BLOCK)
