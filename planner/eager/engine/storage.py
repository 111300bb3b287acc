"""Storages, the ledger that counts them, and strided tensors without numbers.

The caching allocator of PyTorch hands out blocks in steps of 512 bytes
(``kMinBlockSize``, c10/cuda/CUDACachingAllocator.cpp). A storage is freed when its last
tensor goes. Python's own reference counts play that part here: a ``Storage`` leaves the
ledger the moment nothing refers to it.
"""

from __future__ import annotations

import math
import weakref
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.eager.engine.autograd import Node
    from planner.eager.engine.tape import Tape

F32, BF16, I64, I32, U8, BOOL = "f32", "bf16", "i64", "i32", "u8", "bool"
SIZE = {F32: 4, BF16: 2, I64: 8, I32: 4, U8: 1, BOOL: 1}
"""Bytes of one element by type. [B]"""
GRAIN = 512
"""The allocator's smallest step. [B]"""
GATHERS = ("gathered even", "gathered odd")
"""FSDP1's gathers take turns. Their stream lends the bytes of a block again once the
computation has passed it (``record_stream``), and the rate limiter waits for all blocks
but the last (``_FreeEventQueue``). [name]"""
COPIED, REDUCED = "copied shards", "reduced gradients"
STREAMS = {name: i + 1 for i, name in enumerate((*GATHERS, COPIED, REDUCED))}
"""Streams whose caches hold the bytes of some categories; all others are of 0. [1]"""
Shape = tuple[int, ...]


class Trace:
    """The sequence in which storages were allocated and freed."""

    __slots__ = ("events", "made", "marks", "numbers", "streams")

    def __init__(self) -> None:
        self.events: list[tuple[int, int]] = []
        self.marks: dict[str, int] = {}
        self.numbers: dict[int, int] = {}
        self.streams: dict[int, int] = {}
        self.made = 0

    def note(self, storage: Storage, size: int) -> None:
        """Note the length that a storage has from now on.

        Args:
            storage: The storage. [storage]
            size: Bytes asked for, 0 where the storage is freed. [B]
        """
        number = self.numbers.pop(id(storage), None)
        if number is not None:
            self.events.append((number, 0))
        if size:
            self.made += 1
            self.numbers[id(storage)] = self.made
            self.events.append((self.made, size))
            if stream := STREAMS.get(storage.category):
                self.streams[self.made] = stream

    def mark(self, name: str) -> None:
        """Note where a part of the sequence ends.

        Args:
            name: Name of the part. [name]
        """
        self.marks[name] = len(self.events)


class Ledger:
    """Counts the live bytes by category and remembers the highest total."""

    __slots__ = ("by_category", "live", "peak", "peak_by", "trace")

    def __init__(self) -> None:
        self.live = self.peak = 0
        self.trace: Trace | None = None
        self.by_category: dict[str, int] = {}
        self.peak_by: dict[str, int] = {}

    def mark(self, name: str) -> None:
        """Note in the trace, if there is one, where a part of it ends.

        Args:
            name: Name of the part. [name]
        """
        if self.trace is not None:
            self.trace.mark(name)

    def change(self, size: int, category: str) -> None:
        """Add (or take back) bytes and follow the peak.

        Args:
            size: Bytes added, or taken when negative. [B]
            category: Category of the bytes. [name]
        """
        self.live += size
        self.by_category[category] = self.by_category.get(category, 0) + size
        if self.live > self.peak:
            self.peak, self.peak_by = self.live, dict(self.by_category)

    def restart(self) -> tuple[int, dict[str, int]]:
        """Close a phase: tell its peak and count the next phase from here.

        Returns:
            The highest total and the bytes of each category at that moment. [B]
        """
        told = self.peak, self.peak_by
        self.peak, self.peak_by = self.live, dict(self.by_category)
        return told


class Storage:
    """One block of memory; it exists as long as some tensor refers to it."""

    __slots__ = ("__weakref__", "category", "ledger", "size")

    def __init__(self, ledger: Ledger, size: int, category: str) -> None:
        self.ledger, self.category = ledger, category
        self.size = -(-size // GRAIN) * GRAIN
        ledger.change(self.size, category)
        if ledger.trace is not None:
            ledger.trace.note(self, size)

    def relabel(self, category: str) -> None:
        """Count the block's bytes under another category.

        Args:
            category: Category of the bytes from now on. [name]
        """
        if category != self.category:
            book = self.ledger.by_category
            book[self.category] -= self.size
            book[category] = book.get(category, 0) + self.size
            self.category = category

    def resize(self, size: int) -> None:
        """Give the block another length, as where FSDP2 frees and refills buffers.

        Args:
            size: The new length. [B]
        """
        rounded = -(-size // GRAIN) * GRAIN
        self.ledger.change(rounded - self.size, self.category)
        self.size = rounded
        if self.ledger.trace is not None:
            self.ledger.trace.note(self, size)

    def __del__(self) -> None:
        ledger = self.ledger
        ledger.live -= self.size
        ledger.by_category[self.category] -= self.size
        if ledger.trace is not None:
            ledger.trace.note(self, 0)


@lru_cache(maxsize=4096)
def contiguous_strides(shape: Shape) -> Shape:
    """Strides of a dense row-major tensor.

    Args:
        shape: Lengths of the dimensions. [elements]

    Returns:
        One stride per dimension. [elements]
    """
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


class Tensor:
    """A view of a storage, with its place in the autograd graph."""

    __slots__ = (
        "__weakref__",
        "accumulator",
        "dtype",
        "grad",
        "node",
        "requires_grad",
        "shape",
        "slot",
        "storage",
        "strides",
        "tape",
    )

    def __init__(
        self,
        tape: Tape,
        storage: Storage,
        shape: Shape,
        dtype: str,
        strides: Shape | None = None,
    ) -> None:
        self.tape, self.storage = tape, storage
        self.shape, self.dtype = shape, dtype
        self.strides = contiguous_strides(shape) if strides is None else strides
        self.node: Node | None = None
        self.slot = 0
        self.requires_grad = False
        self.grad: Tensor | None = None
        self.accumulator: weakref.ref[Node] | None = None

    @property
    def numel(self) -> int:
        """Number of elements of the shape. [elements]."""
        return math.prod(self.shape)

    def alias(self, shape: Shape | None = None, strides: Shape | None = None) -> Tensor:
        """Another tensor on the same storage, outside the graph.

        Args:
            shape: Lengths of the alias; this tensor's when left out. [elements]
            strides: Strides for a given shape; row-major when left out. [elements]

        Returns:
            The alias. [tensor]
        """
        if shape is None:
            return Tensor(self.tape, self.storage, self.shape, self.dtype, self.strides)
        return Tensor(self.tape, self.storage, shape, self.dtype, strides)

    @property
    def is_contiguous(self) -> bool:
        """True if the elements lie in row-major order."""
        if self.strides == contiguous_strides(self.shape):
            return True
        step = 1
        for length, stride in zip(
            reversed(self.shape), reversed(self.strides), strict=True
        ):
            if length != 1 and stride != step:
                return False
            step *= length
        return True


class Replicated(Tensor):
    """A gradient that is whole on every rank although its parameter is sharded."""

    __slots__ = ("whole",)

    whole: Shape

    @classmethod
    def of(cls, tape: Tape, whole: Shape, shard: Shape, dtype: str) -> Replicated:
        """Allocate a replicated gradient.

        Args:
            tape: Tape to allocate on. [tape]
            whole: Lengths of the whole gradient. [elements]
            shard: Lengths of the parameter's shard. [elements]
            dtype: Type of the elements. [name]

        Returns:
            A tensor of the shard's shape in the storage of the whole. [tensor]
        """
        made = cls(tape, tape.new(whole, dtype).storage, shard, dtype)
        made.whole = whole
        return made

    def alias(
        self, shape: Shape | None = None, strides: Shape | None = None
    ) -> Replicated:
        """Another tensor on the same storage, still whole on every rank.

        Args:
            shape: Not given. [elements]
            strides: Not given. [elements]

        Returns:
            The alias. [tensor]
        """
        del shape, strides
        other = Replicated(self.tape, self.storage, self.shape, self.dtype)
        other.whole = self.whole
        return other

    def cut(self) -> Tensor:
        """Copy this rank's part.

        Returns:
            The part, in the shard's shape. [tensor]
        """
        return self.tape.new(self.shape, self.dtype)


def view_strides(tensor: Tensor, shape: Shape) -> Shape | None:
    """Strides of a view of another shape, when the layout allows one.

    Dimensions merge when stride[i] = stride[i+1] * length[i+1]
    (``computeStride``, aten/src/ATen/TensorUtils.cpp).

    Args:
        tensor: The tensor to view. [tensor]
        shape: The wanted lengths. [elements]

    Returns:
        The strides, or None when only a copy will do. [elements]
    """
    if tensor.is_contiguous:
        return contiguous_strides(shape)
    strides = [0] * len(shape)
    view = len(shape) - 1
    chunk = base = 0
    chunk = 1
    base = tensor.strides[-1]
    for i in range(len(tensor.shape) - 1, -1, -1):
        chunk *= tensor.shape[i]
        joined = i > 0 and (
            tensor.shape[i - 1] == 1 or tensor.strides[i - 1] == chunk * base
        )
        if joined:
            continue
        filled = 1
        while view >= 0 and (filled < chunk or shape[view] == 1):
            strides[view] = filled * base
            filled *= shape[view]
            view -= 1
        if filled != chunk:
            return None
        if i > 0:
            chunk, base = 1, tensor.strides[i - 1]
    return tuple(strides) if view == -1 else None
