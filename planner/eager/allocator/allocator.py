"""PyTorch's caching allocator on one GPU: who gets which bytes, and what is reserved.

Source: c10/cuda/CUDACachingAllocator.cpp of PyTorch 2.13. A request is rounded to 512
bytes and takes the smallest free block of its stream that holds it; the rest of the
block stays free where it is worth keeping. Freed neighbours of a segment join. If no
block fits, a segment is made; if the device refuses, cached segments go back to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.eager.allocator.blocks import (
    GRAIN,
    LARGE_SEGMENT,
    SMALL,
    Block,
    Pool,
    rounded,
    segment_size,
)

UNLIMITED = 2**63
"""More than any device has. [B]"""


class OutOfMemoryError(MemoryError):
    """The device has no room for a segment, cached ones given back."""


@dataclass(frozen=True)
class Settings:
    """``PYTORCH_CUDA_ALLOC_CONF`` and the device's room."""

    capacity: int = UNLIMITED
    """Bytes that the device can give this process. [B]"""
    limited: bool = False
    """True if the process limits itself to the capacity. [flag]"""
    expandable: bool = False
    """``expandable_segments``. [flag]"""
    max_split: int = UNLIMITED
    """``max_split_size_mb``. [B]"""
    collect_at: float = 0.0
    """``garbage_collection_threshold``; heeded where the process limits itself. [1]"""


class Allocator:
    """The allocator's state: segments, free blocks and the two counters."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.pools: dict[tuple[bool, int], Pool] = {}
        self.allocated = self.reserved = 0
        self.peak_allocated = self.peak_reserved = 0
        self.retries = 0
        self.searches = {True: 0, False: 0}
        self.next_address = rounded(1, LARGE_SEGMENT)

    def take(self, size: int, stream: int = 0) -> Block:
        """Allocate.

        Args:
            size: Bytes asked for. [B]
            stream: Number of the stream that allocates. [1]

        Returns:
            The block. [block]
        """
        size = rounded(size)
        pool = self._pool(size, stream)
        block = self._best(pool, size) or self._made(pool, size)
        if self._worth_cutting(block, size):
            rest, block = block, block.cut(size)
            self._put(rest)
        block.taken = True
        self.allocated += block.size
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        return block

    def give(self, block: Block) -> None:
        """Free a block; it joins free neighbours.

        Args:
            block: A block that was taken. [block]
        """
        block.taken = False
        self.allocated -= block.size
        block.pool.merge(block, block.before)
        block.pool.merge(block, block.after)
        self._put(block)

    def blocks(self) -> Iterator[Block]:
        """Free blocks of all pools.

        Yields:
            Blocks in the order of pool, size and address. [block]
        """
        for pool in self.pools.values():
            for _, _, block in pool.free:
                yield block

    def _pool(self, size: int, stream: int) -> Pool:
        key = (size <= SMALL, stream)
        found = self.pools.get(key)
        if found is None:
            found = self.pools[key] = Pool(small=key[0])
        return found

    def _put(self, block: Block) -> None:
        block.since = self.searches[block.pool.small]
        block.pool.put(block)

    @property
    def _collects(self) -> bool:
        return self.settings.limited and self.settings.collect_at > 0

    def _best(self, pool: Pool, size: int) -> Block | None:
        """Smallest free block for a request, no oversized one for a smaller request."""
        self.searches[pool.small] += self._collects
        at = pool.at_least(size)
        if at == len(pool.free):
            return None
        at = _least_growing(pool, at) if self.settings.expandable else at
        block, limit = pool.free[at][2], self.settings.max_split
        if size < limit <= block.size:
            return None
        if size >= limit and block.size >= size + LARGE_SEGMENT:
            return None
        del pool.free[at]
        return block

    def _worth_cutting(self, block: Block, size: int) -> bool:
        rest = block.size - size
        if block.pool.small or self.settings.expandable:
            return rest >= GRAIN
        return size < self.settings.max_split and rest > SMALL

    def _made(self, pool: Pool, size: int) -> Block:
        """A block from the device; cached segments go back where it must be."""
        if self._collects:
            self._collect()
        block = self._segment(pool, size)
        if block is None and self._release_oversized(pool, size):
            block = self._segment(pool, size)
        if block is None:
            self.retries += 1
            self.release()
            block = self._segment(pool, size)
        if block is None:
            raise OutOfMemoryError(size)
        return block

    def _segment(self, pool: Pool, size: int) -> Block | None:
        length = segment_size(size)
        limited = self.settings.limited
        if limited and self.reserved + length > self.settings.capacity:
            return None
        if self.settings.expandable:
            return self._grown(pool, size)
        if not self._reserve(length):
            return None
        return Block(pool, self._addresses(length), length, grows=False)

    def _reserve(self, length: int) -> bool:
        if self.reserved + length > self.settings.capacity:
            return False
        self.reserved += length
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return True

    def _addresses(self, length: int) -> int:
        start = self.next_address
        self.next_address += rounded(length, LARGE_SEGMENT)
        return start

    def _grown(self, pool: Pool, size: int) -> Block | None:
        """A block at the end of an expandable segment, pages mapped to hold it."""
        block = self._unmapped_room(pool, size)
        if not block.mapped and not self._map(block, size):
            return None
        while block.size < size:
            following = block.after
            assert following is not None
            if not self._map(following, size - block.size):
                return None
            block = following
        pool.remove(block)
        return block

    def _unmapped_room(self, pool: Pool, size: int) -> Block:
        """Lowest addresses with room, the free block before them included."""
        for _, block in pool.unmapped:
            before = block.before
            first = block if before is None or before.taken else before
            if _free_from(first) >= size:
                return first
        length = min(self.settings.capacity, 2**48)
        length = rounded(length + length // 8, pool.page)
        block = Block(pool, self._addresses(length), length, grows=True)
        block.mapped = False
        pool.leave(block)
        return block

    def _map(self, block: Block, size: int) -> bool:
        """Map pages at the front of a block and join it with what is free around."""
        pool = block.pool
        length = rounded(min(size, block.size), pool.page)
        if not self._reserve(length):
            return False
        pool.remove(block)
        if length < block.size:
            rest = Block(pool, block.address + length, block.size - length, grows=True)
            rest.mapped, block.size = False, length
            rest.link(block, block.after)
            pool.leave(rest)
        block.mapped = True
        pool.merge(block, block.before)
        pool.merge(block, block.after)
        self._put(block)
        return True

    def release(self) -> None:
        """Give every cached segment back (``torch.cuda.empty_cache``)."""
        for block in list(self.blocks()):
            if block.expandable:
                self._unmap(block)
            elif block.whole:
                self._drop(block)

    def _drop(self, block: Block) -> None:
        block.pool.remove(block)
        self.reserved -= block.size

    def _unmap(self, block: Block) -> None:
        """Give the whole pages of a free block back."""
        pool, page = block.pool, block.pool.page
        start = -(-block.address // page) * page
        end = (block.address + block.size) // page * page
        if start >= end:
            return
        pool.remove(block)
        if start > block.address:
            self._put(block.cut(start - block.address))
        if end < block.address + block.size:
            middle = block.cut(end - start)
            self._put(block)
            block = middle
        self.reserved -= block.size
        block.mapped = False
        pool.merge(block, block.before)
        pool.merge(block, block.after)
        pool.leave(block)

    def _release_oversized(self, pool: Pool, size: int) -> bool:
        """Give back one block that is large enough, else several, largest first."""
        limit = self.settings.max_split
        if limit == UNLIMITED:
            return False
        wanted = max(size, limit)
        at = pool.at_least(wanted)
        if at < len(pool.free):
            self._drop(pool.free[at][2])
            return True
        released = 0
        while released < wanted and pool.free and pool.free[-1][0] >= limit:
            released += pool.free[-1][0]
            self._drop(pool.free[-1][2])
        return released >= wanted

    def _collect(self) -> None:
        """Give back whole segments of the older half until under the threshold."""
        excess = self.reserved - int(self.settings.collect_at * self.settings.capacity)
        while excess > 0:
            old = self._oldest()
            if not old:
                return
            for block in old:
                self._drop(block)
            excess -= sum(block.size for block in old)

    def _oldest(self) -> list[Block]:
        """Whole free segments of the large pools of average age or more."""
        now = self.searches[False]
        whole = [b for b in self.blocks() if b.whole and not b.pool.small]
        whole = [b for b in whole if not b.expandable]
        average = sum(now - b.since for b in whole) / max(1, len(whole))
        return [b for b in whole if now - b.since >= average]


def _least_growing(pool: Pool, at: int) -> int:
    """Place of the block with the least room where blocks can grow. [1]."""
    while at + 1 < len(pool.free):
        if pool.free[at + 1][2].room >= pool.free[at][2].room:
            return at
        at += 1
    return at


def _free_from(block: Block | None) -> int:
    """Bytes of a block and of what follows it, up to the first taken one. [B]."""
    total = 0
    while block is not None and not block.taken:
        total += block.size
        block = block.after
    return total
