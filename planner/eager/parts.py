"""Bytes that one block and the ends of a model add, read off small replays.

Peaks are affine in the number of equal blocks while one operation holds the peak.
These parts let a cost table follow the replay without replaying every depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field

from planner.eager.case import EagerCase
from planner.eager.engine.storage import Ledger, Tensor
from planner.eager.iteration import Iteration
from planner.eager.modules import Module
from planner.eager.sharding.parallel import ParallelIteration, parallel

Grad = Tensor | None


class BlockMemory(BaseModel):
    """One block of a model."""

    model_config = ConfigDict(frozen=True)

    saved: int = Field(description="stands when the backward begins [B]")
    transient: int = Field(
        description="most in its backward beyond what stood, the incoming gradient "
        "of the stream included, less the gradients it leaves [B]"
    )
    working: int = Field(
        description="the same at its highest, less the gradients made by then [B]"
    )
    gradients: int = Field(description="weight gradients it leaves [B]")
    cached: int = Field(
        description="casts of its weights that live until the forward ends, beyond "
        "what is saved [B]"
    )


class EndsMemory(BaseModel):
    """Embedding, norm, head and loss of a model, and what blocks share."""

    model_config = ConfigDict(frozen=True)

    constants: int = Field(description="angles and masks kept once for all blocks [B]")
    saved: int = Field(description="stands when the backward begins [B]")
    forward: int = Field(description="most in the forward of head and loss beyond [B]")
    head_transient: int = Field(
        description="most in the backward of head and loss beyond what stood [B]"
    )
    head_gradients: int = Field(description="left by head and norm [B]")
    embedding_transient: int = Field(
        description="most in the embedding's backward beyond what stood, less "
        "gradients [B]"
    )
    embedding_gradients: int = Field(description="left by the embedding [B]")


class _Boundary(Module):
    """Module between two blocks: notes live bytes forward, closes a phase backward."""

    def __init__(self, ledger: Ledger, *, alone: bool) -> None:
        self.ledger, self.alone = ledger, alone
        self.stood = self.peak = self.passed = 0
        self.left = self.made = 0

    def forward(self, x: Tensor, *_: object) -> Tensor:
        """Pass the stream on.

        Args:
            x: [b, s, h]. [tensor]
            *_: Other arguments of a block. [any]

        Returns:
            An alias of the stream. [tensor]
        """

        def backward(grad: Tensor) -> tuple[Grad]:
            self.peak, parts = self.ledger.restart()
            self.made = parts.get("grads", 0)
            self.left = self.ledger.by_category.get("grads", 0)
            self.stood = self.ledger.live - grad.storage.size
            return (grad,)

        self.passed = self.ledger.live
        x.requires_grad = x.requires_grad or self.alone
        return x.tape.record("boundary", x.alias(), (x,), backward)


@dataclass(frozen=True)
class _Marks:
    """Live and peak bytes at the boundaries of a replay of a few blocks. [B]."""

    start: int
    forward_peak: int
    saved: int
    last_peak: int
    end: int
    first_peak: int
    first_made: int
    second_peak: int
    second_stood: int
    second_left: int
    cached: int
    gradients: int


@lru_cache(maxsize=4096)
def _marks(case: str, layer: int, count: int, *, tracked: bool) -> _Marks:
    """Replay a few blocks with boundaries around the second block.

    Args:
        case: The case as JSON, a key of the cache. [text]
        layer: Number of the block in the model, from 0. [1]
        count: Blocks to replay. [1]
        tracked: As in ``replay``. [flag]

    Returns:
        The marks. [B]
    """
    alone = {"zero": 0, "world": 1, "pp": 1, "stage": 0}
    one = EagerCase.model_validate_json(case).model_copy(update=alone)
    kind = ParallelIteration if parallel(one) else Iteration
    run = kind(one, [layer] * count, tracked=tracked)
    ledger, blocks = run.tape.ledger, run.model.model.layers
    first, second = (_Boundary(ledger, alone=not blocks) for _ in range(2))
    run.model.model.layers = [*blocks[:1], first, *blocks[1:2], second, *blocks[2:]]
    start = ledger.live
    out = run.forward()
    forward_peak = ledger.restart()[0]
    saved = ledger.live - start
    run.tape.category = "temp"
    run.backward(out)
    return _Marks(
        start=start,
        forward_peak=forward_peak,
        saved=saved,
        last_peak=ledger.restart()[0],
        end=ledger.live,
        first_peak=first.peak,
        first_made=first.made,
        second_peak=second.peak,
        second_stood=second.stood,
        second_left=second.left,
        cached=second.passed - first.passed,
        gradients=_left_by(blocks[1:2]),
    )


def _left_by(blocks: Sequence[Module]) -> int:
    """Weight gradients that blocks leave. [B]."""
    parameters = (p for block in blocks for p in block.parameters())
    return sum(p.grad.storage.size for p in parameters if p.grad is not None)


def block_memory(
    case: EagerCase, layer: int = 0, *, tracked: bool = True
) -> BlockMemory:
    """Bytes that one block adds to a model, on one rank of a tensor-parallel group.

    Buffers of FSDP2 and the share of a pipeline stage are left out. Both belong to
    groups of blocks, not to one block.

    Args:
        case: The model and the way of training. [case]
        layer: Number of the block, from 0. [1]
        tracked: As in ``replay``. [flag]

    Returns:
        Saved, transient and gradient bytes. [B]
    """
    two, three = (
        _marks(case.model_dump_json(), layer, count, tracked=tracked)
        for count in (2, 3)
    )
    saved = three.saved - two.saved
    beyond = three.first_peak - three.second_stood
    return BlockMemory(
        saved=saved,
        transient=max(0, beyond - three.gradients),
        working=beyond - (three.first_made - three.second_left),
        gradients=three.gradients,
        cached=three.cached - saved,
    )


def ends_memory(case: EagerCase, *, tracked: bool = True) -> EndsMemory:
    """Bytes that embedding, norm, head and loss add to a model.

    The bytes are those of one rank of a tensor-parallel group. Buffers of FSDP2 and
    the share of a pipeline stage are left out.

    Args:
        case: The model and the way of training. [case]
        tracked: As in ``replay``. [flag]

    Returns:
        Saved, transient and gradient bytes. [B]
    """
    none, two, three = (
        _marks(case.model_dump_json(), 0, count, tracked=tracked) for count in (0, 2, 3)
    )
    blocks = 2 * (three.saved - two.saved)
    return EndsMemory(
        constants=two.saved - none.saved - blocks,
        saved=none.saved,
        forward=none.forward_peak - none.start - none.saved,
        head_transient=none.second_peak - none.start - none.saved,
        head_gradients=none.second_stood - none.start,
        embedding_transient=none.last_peak - none.end,
        embedding_gradients=max(0, none.end - none.second_stood),
    )
