"""Recomputation without reentry: a frame that runs its function again when asked.

Follows torch/utils/checkpoint.py. Saved tensors become empty holders. The first holder
that is asked runs the function again. That run fills all holders that still live and
stops at the last tensor saved. Each tensor is given back once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

from planner.eager.engine.storage import Tensor
from planner.eager.engine.tape import Keeper, Tape, Unpack

SELECTIVE = frozenset({"mm", "addmm", "flash", "efficient", "reduce_scatter"})
"""Operations whose results selective recomputation keeps.

Matrix products, fused attention and reduce-scatters."""


class _StopError(Exception):
    """The last saved tensor has been made again."""


class _Holder:
    """Stands for a tensor that was not kept."""

    __slots__ = ("__weakref__", "frame", "tensor")

    def __init__(self, frame: _Frame) -> None:
        self.frame = frame
        self.tensor: Tensor | None = None

    def __call__(self) -> Tensor:
        self.frame.fill()
        tensor, self.tensor = self.tensor, None
        assert tensor is not None
        return tensor


class _Frame:
    """One checkpointed call."""

    def __init__(
        self,
        tape: Tape,
        function: Callable[[Tensor], Tensor],
        argument: Tensor,
        keeper: Keeper | None,
    ) -> None:
        self.tape, self.function, self.keeper = tape, function, keeper
        self.argument: Tensor = argument
        self.holders: list[weakref.ref[_Holder]] = []
        self.count = 0
        self.filled = False
        self.autocast = tape.autocast

    def pack(self, _: Tensor) -> Unpack:
        holder = _Holder(self)
        self.holders.append(weakref.ref(holder))
        return holder

    def repack(self, tensor: Tensor) -> Unpack:
        holder = self.holders[self.count]()
        self.count += 1
        if holder is not None:
            holder.tensor = tensor
        if self.count == len(self.holders):
            raise _StopError
        return lambda: tensor

    def fill(self) -> None:
        if self.filled:
            return
        self.filled = True
        tape = self.tape
        before, tape.keeper = tape.keeper, self.keeper
        if self.keeper is not None:
            self.keeper.replaying = True
        try:
            with tape.packing(self.repack), tape.casting(enabled=self.autocast):
                self.function(self.argument)
        except _StopError:
            pass
        finally:
            tape.keeper = before


def checkpoint(
    function: Callable[[Tensor], Tensor], argument: Tensor, *, selective: bool = False
) -> Tensor:
    """Run a function and keep only its argument for the backward pass.

    Args:
        function: From the argument to the result. [callable]
        argument: The tensor to keep. [tensor]
        selective: True to keep the results of ``SELECTIVE`` operations too. [flag]

    Returns:
        The result. [tensor]
    """
    tape = argument.tape
    keeper = Keeper(SELECTIVE) if selective else None
    frame = _Frame(tape, function, argument, keeper)
    before, tape.keeper = tape.keeper, keeper
    try:
        with tape.packing(frame.pack):
            return function(argument)
    finally:
        tape.keeper = before
