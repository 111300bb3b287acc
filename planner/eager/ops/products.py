"""Matrix products: linear layers, batched products, and their autocast."""

from __future__ import annotations

import math

from planner.eager.engine.storage import BF16, F32, Tensor
from planner.eager.engine.tape import kept
from planner.eager.ops.pointwise import to
from planner.eager.ops.views import reshape

Grad = Tensor | None


def cast(x: Tensor) -> Tensor:
    """The bf16 form of an operand under autocast; casts of weights are made once.

    Operands are cast from the last argument to the first, as compilers evaluate them.

    Args:
        x: The operand. [tensor]

    Returns:
        The operand itself without autocast. [tensor]
    """
    tape = x.tape
    if not tape.autocast or x.dtype != F32:
        return x
    if not (x.requires_grad and x.node is None):
        return to(x, BF16)
    if id(x) not in tape.casts:
        tape.casts[id(x)] = to(x, BF16)
    return tape.casts[id(x)]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight^T + bias over the last dimension.

    Keeps the input where the weight needs a gradient, and the weight where the input
    does. Without a bias the weight's gradient comes first, then the input's; with a
    bias the input's gradient comes first.

    Args:
        x: The input [..., k]. [tensor]
        weight: The matrix [n, k]. [tensor]
        bias: The bias [n], if any. [tensor]

    Returns:
        The output [..., n]. [tensor]
    """
    bias = None if bias is None else cast(bias)
    weight = cast(weight)
    x = cast(x)
    rows = reshape(x, x.numel // x.shape[-1], x.shape[-1])
    out = product(rows, weight, bias)
    return reshape(out, *x.shape[:-1], weight.shape[0])


def product(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """rows @ weight^T (+ bias) for matrices: ``mm``, or ``addmm`` with a bias.

    Args:
        rows: The input [m, k]. [tensor]
        weight: The matrix [n, k]. [tensor]
        bias: The bias [n], if any. [tensor]

    Returns:
        The output [m, n]. [tensor]
    """
    tape, dtype = rows.tape, rows.dtype
    shape = (rows.shape[0], weight.shape[0])
    left = tape.save(rows) if weight.requires_grad else None
    right = tape.save(weight) if rows.requires_grad else None
    with_bias, biased = bias is not None, bias is not None and bias.requires_grad
    sides = rows.shape, weight.shape

    def backward(grad: Tensor) -> tuple[Grad, ...]:
        held = [take() for take in (left, right) if take is not None]
        to_rows = None
        if with_bias and right is not None:
            to_rows = tape.new(sides[0], dtype)
        to_weight = None if left is None else tape.new(sides[1], dtype)
        if not with_bias and right is not None:
            to_rows = tape.new(sides[0], dtype)
        del held
        return to_rows, to_weight, grad if biased else None

    (out,) = kept(
        tape, "mm" if bias is None else "addmm", lambda: (tape.new(shape, dtype),)
    )
    return tape.record("linear", out, (rows, weight, bias), backward)


def batched(a: Tensor, b: Tensor) -> Tensor:
    """a @ b for stacks of matrices: operands folded to three dimensions, then ``bmm``.

    Args:
        a: The left stack [..., m, k]. [tensor]
        b: The right stack [..., k, n]. [tensor]

    Returns:
        The products [..., m, n]. [tensor]
    """
    b = cast(b)
    a = cast(a)
    lead = a.shape[:-2]
    m, n = a.shape[-2], b.shape[-1]
    count = math.prod(lead)
    left = reshape(a, count, *a.shape[-2:])
    right = reshape(b, count, *b.shape[-2:])
    return reshape(bmm(left, right), *lead, m, n)


def bmm(a: Tensor, b: Tensor) -> Tensor:
    """Products of two stacks; keeps each stack where the other needs a gradient.

    Args:
        a: The left stack [c, m, k]. [tensor]
        b: The right stack [c, k, n]. [tensor]

    Returns:
        The products [c, m, n]. [tensor]
    """
    tape, sides, dtype = a.tape, (a.shape, b.shape), a.dtype
    left = tape.save(a) if b.requires_grad else None
    right = tape.save(b) if a.requires_grad else None

    def backward(_: Tensor) -> tuple[Grad, Grad]:
        held = [take() for take in (left, right) if take is not None]
        to_b = None if left is None else tape.new(sides[1], dtype)
        to_a = None if right is None else tape.new(sides[0], dtype)
        del held
        return to_a, to_b

    out = tape.new((a.shape[0], a.shape[1], b.shape[2]), dtype)
    return tape.record("bmm", out, (a, b), backward)
