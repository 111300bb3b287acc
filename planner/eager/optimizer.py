"""The optimizer: states kept between steps and allocations during a step.

Source: torch/optim/{adamw,adam,sgd,adafactor}.py of PyTorch 2.13.0. A fused step
allocates nothing. A ``foreach`` AdamW makes one copy of the second moments. A for-loop
makes temporaries for one parameter at a time. The last temporary of a parameter lives
into the next parameter.
"""

from __future__ import annotations

from planner.eager.case import EagerCase
from planner.eager.engine.storage import F32, Tensor
from planner.eager.engine.tape import Tape


class Optimizer:
    """States of the trainable parameters and one step over them."""

    def __init__(self, case: EagerCase, parameters: list[Tensor]) -> None:
        self.kind = "master" if case.precision == "master_bf16" else case.optimizer
        self.fused = case.opt_impl == "fused"
        self.implementation = case.opt_impl
        self.parameters = [p for p in parameters if p.requires_grad]
        self.states = [self._states(p) for p in self.parameters]

    def _states(self, p: Tensor) -> list[Tensor]:
        """Optimizer states of one parameter: moments first, then the step count."""
        tape, shape = p.tape, p.shape
        if self.kind == "master":
            copies = 2 if p.dtype == F32 else 3
            return [tape.new(shape, F32, category="optimizer") for _ in range(copies)]
        if self.kind == "adamw":
            kept = [tape.new(shape, p.dtype, category="optimizer") for _ in range(2)]
            return kept + ([_count(tape)] if self.fused else [])
        if self.kind == "sgdm":
            return [tape.new(shape, p.dtype, category="optimizer")]
        if self.kind == "adafactor":
            return _factors(p)
        return []

    def step(self) -> None:
        """Update every parameter that has a gradient."""
        if not self.parameters:
            return
        if self.kind == "master":
            self._master_step()
        elif self.kind == "adafactor":
            self._loop(1)
        elif self.kind == "adamw" and self.implementation == "foreach":
            roots = [_like(p) for p in self._given()]
            del roots
        elif self.kind == "adamw" and self.implementation == "forloop":
            self._loop(2)

    def _given(self) -> list[Tensor]:
        return [p for p in self.parameters if p.grad is not None]

    def _loop(self, copies: int) -> None:
        """One parameter after the other: root of the moment, then the quotient."""
        held = None
        for p in self._given():
            first = _like(p)
            held = _like(p) if copies > 1 else first
            del first
        del held

    def _master_step(self) -> None:
        """In fp32 beside bf16 parameters: the cast gradient and the root live on.

        An fp32 parameter is its own master.
        """
        cast = root = None
        for p in self._given():
            if p.dtype != F32:
                cast = p.tape.new(p.shape, F32, category="optimizer")
            root = p.tape.new(p.shape, F32, category="optimizer")
        del cast, root

    def zero_grad(self) -> None:
        """Drop the gradients (``set_to_none``)."""
        for p in self.parameters:
            p.grad = None


def _count(tape: Tape) -> Tensor:
    return tape.new((), F32, category="optimizer")


def _like(p: Tensor) -> Tensor:
    return p.tape.new(p.shape, p.dtype, category="optimizer")


def _factors(p: Tensor) -> list[Tensor]:
    """Adafactor: row and column variances of a matrix, all of a vector."""
    tape, shape = p.tape, p.shape
    if len(shape) < 2:
        return [tape.new(shape, p.dtype, category="optimizer")]
    rows, columns = (*shape[:-1], 1), (*shape[:-2], 1, shape[-1])
    return [tape.new(s, p.dtype, category="optimizer") for s in (rows, columns)]
