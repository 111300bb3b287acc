"""What one block and what the ends of a model add, read off small replays.

Peaks are affine in the number of equal blocks as long as the same operation holds the
peak; these parts let a cost table follow the replay without replaying every depth.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from planner.eager.case import EagerCase
from planner.eager.iteration import Iteration
from planner.eager.modules import Module
from planner.eager.parallel import ParallelIteration, parallel
from planner.eager.storage import Ledger, Tensor

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
    """Between two blocks: closes a phase of the ledger in both directions."""

    def __init__(self, ledger: Ledger, *, alone: bool) -> None:
        self.ledger, self.alone = ledger, alone
        self.stood = self.peak = self.passed = 0
        self.left = self.made = 0

    def forward(self, x: Tensor, *_: object) -> Tensor:
        """Pass the stream on.

        Args:
            x: [b, s, h]. [tensor]
            *_: What blocks read. [any]

        Returns:
            The same. [tensor]
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


class _Run:
    """A replay of a few blocks with boundaries around the one that is measured."""

    def __init__(
        self, case: EagerCase, layer: int, count: int, *, tracked: bool
    ) -> None:
        alone = {"zero": 0, "world": 1, "pp": 1, "stage": 0}
        case = case.model_copy(update=alone)
        kind = ParallelIteration if parallel(case) else Iteration
        run = kind(case, [layer] * count, tracked=tracked)
        ledger = run.tape.ledger
        blocks = run.model.model.layers
        self.block = blocks[1] if count > 1 else None
        self.first = _Boundary(ledger, alone=not blocks)
        self.second = _Boundary(ledger, alone=not blocks)
        middle = [self.first, *blocks[1:2], self.second]
        run.model.model.layers = [*blocks[:1], *middle, *blocks[2:]]
        before = ledger.live
        out = run.forward()
        self.forward_peak = ledger.restart()[0]
        self.saved = ledger.live - before
        run.tape.category = "temp"
        run.backward(out)
        self.last_peak, self.end = ledger.restart()[0], ledger.live
        self.start = before


def block_memory(
    case: EagerCase, layer: int = 0, *, tracked: bool = True
) -> BlockMemory:
    """What one block adds to a model, on one rank of its tensor-parallel group.

    Buffers of FSDP2 and the share of a pipeline stage are left out: they belong to
    groups of blocks, not to one.

    Args:
        case: The model and the way of training it. [case]
        layer: Which block, from 0. [1]
        tracked: As in ``replay``. [flag]

    Returns:
        Saved, transient and gradient bytes. [B]

    Raises:
        Unsupported: When there are no operations for the case.
    """
    fewer = _Run(case, layer, 2, tracked=tracked)
    run = _Run(case, layer, 3, tracked=tracked)
    assert run.block is not None
    gradients = sum(
        p.grad.storage.size for p in run.block.parameters() if p.grad is not None
    )
    beyond = run.first.peak - run.second.stood
    return BlockMemory(
        saved=run.saved - fewer.saved,
        transient=max(0, beyond - gradients),
        working=beyond - (run.first.made - run.second.left),
        gradients=gradients,
        cached=run.second.passed - run.first.passed - (run.saved - fewer.saved),
    )


def ends_memory(case: EagerCase, *, tracked: bool = True) -> EndsMemory:
    """What embedding, norm, head and loss add to a model, likewise.

    Args:
        case: The model and the way of training it. [case]
        tracked: As in ``replay``. [flag]

    Returns:
        Saved, transient and gradient bytes. [B]

    Raises:
        Unsupported: When there are no operations for the case.
    """
    none = _Run(case, 0, 0, tracked=tracked)
    two = _Run(case, 0, 2, tracked=tracked)
    saved = block_memory(case, 0, tracked=tracked).saved
    head = none.second.stood - none.start
    left = none.end - none.second.stood
    return EndsMemory(
        constants=two.saved - none.saved - 2 * saved,
        saved=none.saved,
        forward=none.forward_peak - none.start - none.saved,
        head_transient=none.second.peak - none.start - none.saved,
        head_gradients=head,
        embedding_transient=none.last_peak - none.end,
        embedding_gradients=max(0, left),
    )
