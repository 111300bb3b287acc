"""Blocks of device memory and the lists that hold the free ones.

A segment is what one ``cudaMalloc`` gave, or one range of addresses whose pages are
mapped as they are needed. It is cut into blocks, linked in the order of addresses.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field

MIB = 2**20
GRAIN = 512
"""Every size is a multiple of this. [B]"""
SMALL = MIB
"""Largest request of a small pool. [B]"""
SMALL_SEGMENT = 2 * MIB
"""Segment of a small pool. [B]"""
LARGE_SEGMENT = 20 * MIB
"""Segment of the requests between the two limits. [B]"""
OWN_SEGMENT = 10 * MIB
"""Least request that gets a segment of its own size. [B]"""
ROUND = 2 * MIB
"""Segments of own size are multiples of this. [B]"""


class Block:
    """A range of addresses, taken, free or not mapped."""

    __slots__ = (
        "address",
        "after",
        "before",
        "expandable",
        "mapped",
        "pool",
        "since",
        "size",
        "taken",
    )

    def __init__(self, pool: Pool, address: int, size: int, *, grows: bool) -> None:
        self.pool, self.address, self.size = pool, address, size
        self.before: Block | None = None
        self.after: Block | None = None
        self.taken, self.mapped, self.expandable = False, True, grows
        self.since = 0

    @property
    def whole(self) -> bool:
        """True if the block is all of its segment."""
        return self.before is None and self.after is None

    @property
    def room(self) -> int:
        """Size with the addresses behind it that are not mapped. [B]."""
        after = self.after
        return self.size + (after.size if after and not after.mapped else 0)

    def link(self, before: Block | None, after: Block | None) -> None:
        """Place the block between two blocks.

        Args:
            before: Block of the lower addresses. [block]
            after: Block of the higher addresses. [block]
        """
        self.before, self.after = before, after
        if before is not None:
            before.after = self
        if after is not None:
            after.before = self

    def cut(self, size: int) -> Block:
        """Cut the front off; this block keeps the rest.

        Args:
            size: Length of the front. [B]

        Returns:
            The front. [block]
        """
        front = Block(self.pool, self.address, size, grows=self.expandable)
        front.mapped = self.mapped
        front.link(self.before, self)
        self.address += size
        self.size -= size
        return front


@dataclass(eq=False)
class Pool:
    """Free blocks of one stream, small or large, by size and then by address."""

    small: bool
    free: list[tuple[int, int, Block]] = field(default_factory=list)
    unmapped: list[tuple[int, Block]] = field(default_factory=list)

    @property
    def page(self) -> int:
        """Length of the pages that an expandable segment maps. [B]."""
        return SMALL_SEGMENT if self.small else LARGE_SEGMENT

    def put(self, block: Block) -> None:
        """Take up a free block.

        Args:
            block: The block. [block]
        """
        insort(self.free, (block.size, block.address, block))

    def remove(self, block: Block) -> None:
        """Drop a block from the list that holds it.

        Args:
            block: The block, free or not mapped. [block]
        """
        if block.mapped:
            del self.free[bisect_left(self.free, (block.size, block.address))]
        else:
            del self.unmapped[bisect_left(self.unmapped, (block.address,))]

    def leave(self, block: Block) -> None:
        """Take up a block whose addresses are not mapped.

        Args:
            block: The block. [block]
        """
        insort(self.unmapped, (block.address, block))

    def at_least(self, size: int) -> int:
        """Place of the smallest block of a size or more. [1].

        Args:
            size: Least size. [B]
        """
        return bisect_left(self.free, (size,))

    def merge(self, block: Block, other: Block | None) -> None:
        """Take a neighbour into a block where both are free and alike.

        Args:
            block: The block that grows; it is in no list. [block]
            other: Its neighbour, which is in one if free. [block]
        """
        if other is None or other.taken or other.mapped != block.mapped:
            return
        self.remove(other)
        if block.before is other:
            block.address = other.address
            block.link(other.before, block.after)
        else:
            block.link(block.before, other.after)
        block.size += other.size


def rounded(size: int, grain: int = GRAIN) -> int:
    """Smallest positive multiple that holds a size.

    Args:
        size: The size. [B]
        grain: The step. [B]

    Returns:
        The multiple. [B]
    """
    return max(1, -(-size // grain)) * grain


def segment_size(size: int) -> int:
    """Length of the segment that a rounded request makes.

    Args:
        size: The request. [B]

    Returns:
        2 MiB for small ones, 20 MiB below 10 MiB, else the next 2 MiB. [B]
    """
    if size <= SMALL:
        return SMALL_SEGMENT
    return LARGE_SEGMENT if size < OWN_SEGMENT else rounded(size, ROUND)
