"""Low-rank adapters beside frozen weights, and 4-bit frozen weights.

Source: ``Linear.forward`` of peft 0.21.2 (src/peft/tuners/lora/layer.py) and
``MatMul4Bit`` of bitsandbytes 0.50.2 (bitsandbytes/autograd/_functions.py).
"""

from __future__ import annotations

from collections.abc import Callable

from planner.eager.case import LoraCase
from planner.eager.engine.storage import BF16, F32, U8, Tensor
from planner.eager.engine.tape import Tape
from planner.eager.modules import Linear, Module
from planner.eager.ops.pointwise import add, dropout, scale, to

Grad = Tensor | None
BLOCK, SUPERBLOCK = 64, 256
"""Weights that share a scale, and scales that share a second scale. [1]"""


class Nf4Linear(Module):
    """A frozen matrix in 4 bits with doubly quantised scales."""

    def __init__(self, tape: Tape, k: int, n: int) -> None:
        self.k, self.n, count = k, n, k * n
        self.weight = tape.parameter(((count + 1) // 2, 1), U8, trainable=False)
        self.blocks = count // BLOCK
        sizes = [
            ((self.blocks,), U8),
            ((-(-self.blocks // SUPERBLOCK),), F32),
            ((16,), F32),
            ((256,), F32),
            ((), F32),
        ]
        self.buffers = [tape.new(*size, category="buffers") for size in sizes]

    def forward(self, x: Tensor) -> Tensor:
        """x @ weight^T from the packed form; the backward unpacks the matrix.

        Args:
            x: The input [..., k]. [tensor]

        Returns:
            The output [..., n]. [tensor]
        """
        tape, shape, n, k, blocks = x.tape, x.shape, self.n, self.k, self.blocks

        def backward(grad: Tensor) -> tuple[Grad]:
            matrix = _unpacked(tape, n, k, blocks)
            if grad.dtype != BF16:
                matrix = tape.pointwise(matrix, dtype=grad.dtype)
            return (tape.new(shape, grad.dtype),)

        out = tape.new((*shape[:-1], n), x.dtype)
        return tape.record("matmul_4bit", out, (x,), backward)

    def unpacked(self) -> Tensor:
        """The matrix in 16 bits.

        Returns:
            The matrix [n, k], outside the graph. [tensor]
        """
        return _unpacked(self.weight.tape, self.n, self.k, self.blocks)


def _unpacked(tape: Tape, n: int, k: int, blocks: int) -> Tensor:
    scales = tape.new((blocks,), F32)
    matrix = tape.new((n, k), BF16)
    del scales
    return matrix


class LoraLinear(Module):
    """A frozen layer plus B(A(dropout(x))) * scaling."""

    def __init__(self, base: Module, case: LoraCase, dtype: str, tape: Tape) -> None:
        self.base_layer, self.drop = base, case.dropout > 0
        k, n = base.k, base.n  # type: ignore[attr-defined]
        self.lora_A = Linear(tape, k, case.r, dtype)
        self.lora_B = Linear(tape, case.r, n, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Output of the frozen layer plus output of the adapter.

        Args:
            x: The input [..., k]. [tensor]

        Returns:
            The output [..., n], in the frozen layer's type. [tensor]
        """
        result: Tensor = self.base_layer(x)
        dtype = result.dtype
        x = to(x, self.lora_A.weight.dtype)
        thinned = dropout(x) if self.drop else x
        low = self.lora_A(thinned)
        del thinned
        high = self.lora_B(low)
        del low
        scaled = scale(high)
        del high
        result = add(result, scaled)
        del scaled
        return to(result, dtype)


def freeze(model: Module) -> None:
    """Take the gradients from every parameter.

    Args:
        model: The model. [module]
    """
    for weight in model.parameters():
        weight.requires_grad = False


def adapt(
    model: Module,
    layers: list[Module],
    case: LoraCase,
    dtype: str,
    adapter: Callable[[Module, LoraCase, str, Tape], Module] = LoraLinear,
) -> None:
    """Freeze a model and put adapters beside the targeted layers.

    Args:
        model: The model. [module]
        layers: Blocks of the model, whose matrices may be quantised. [modules]
        case: The adapters. [case]
        dtype: Type of the model's weights. [name]
        adapter: Makes a layer with its adapter. [callable]
    """
    tape = model.parameters()[0].tape
    freeze(model)
    if case.quant == "nf4":
        for layer in layers:
            _swap(layer, lambda _, base: _packed(tape, base))
    kind = F32 if case.fp32 else dtype
    _swap(
        model,
        lambda name, base: (
            adapter(base, case, kind, tape) if name in case.targets else base
        ),
    )


def _packed(tape: Tape, base: Module) -> Module:
    if isinstance(base, Linear) and base.bias is None:
        return Nf4Linear(tape, base.k, base.n)
    return base


def _swap(model: Module, new: Callable[[str, Module], Module]) -> None:
    """Replace the matrices of a model, by name."""
    for _, module in list(model.modules()):
        for name, child in list(vars(module).items()):
            if isinstance(child, Linear | Nf4Linear):
                setattr(module, name, new(name, child))
