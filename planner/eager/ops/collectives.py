"""Collectives of tensor parallelism as DTensor runs them, out of place.

Tokens lie in dimension 1. A gather along this dimension brings the ranks' parts one
after the other. The parts are copied into place where there is more than one sequence.
A scatter always copies first (torch/distributed/_functional_collectives.py:
all_gather_tensor, reduce_scatter_tensor).
"""

from __future__ import annotations

from planner.eager.engine.storage import Tensor
from planner.eager.engine.tape import kept


def _gathered(x: Tensor, t: int) -> Tensor:
    tape, (b, s, h) = x.tape, x.shape
    parts = tape.new((b * t, s, h), x.dtype)
    if b == 1:
        return parts.alias((b, s * t, h), (s * t * h, h, 1))
    return tape.new((b, s * t, h), x.dtype)


def _scattered(x: Tensor, t: int) -> Tensor:
    tape, (b, s, h) = x.tape, x.shape
    parts = tape.new((b * t, s // t, h), x.dtype)
    (mine,) = kept(tape, "reduce_scatter", lambda: (tape.new((b, s // t, h), x.dtype),))
    del parts
    return mine


def _part(x: Tensor, t: int) -> Tensor:
    b, s, h = x.shape
    return x.tape.new((b, s // t, h), x.dtype)


def gather_tokens(x: Tensor, t: int) -> Tensor:
    """All tokens on every rank; backward, each rank copies out its own tokens.

    Args:
        x: A rank's tokens [b, s/t, h]. [tensor]
        t: Ranks. [GPUs]

    Returns:
        [b, s, h]. [tensor]
    """
    return x.tape.record(
        "all_gather", _gathered(x, t), (x,), lambda grad: (_part(grad, t),)
    )


def gather_for_sum(x: Tensor, t: int) -> Tensor:
    """All tokens on every rank; backward, the ranks' gradients are summed by parts.

    Args:
        x: A rank's tokens [b, s/t, h]. [tensor]
        t: Ranks. [GPUs]

    Returns:
        [b, s, h]. [tensor]
    """
    return x.tape.record(
        "all_gather", _gathered(x, t), (x,), lambda grad: (_scattered(grad, t),)
    )


def scatter_sum(x: Tensor, t: int) -> Tensor:
    """Sum over ranks, each keeping its tokens; backward, gradients are gathered.

    Args:
        x: A rank's share of the sum [b, s, h]. [tensor]
        t: Ranks. [GPUs]

    Returns:
        [b, s/t, h]. [tensor]
    """
    return x.tape.record(
        "reduce_scatter", _scattered(x, t), (x,), lambda grad: (_gathered(grad, t),)
    )


def all_sum(x: Tensor) -> Tensor:
    """Sum over ranks on every rank; backward, each share gets the sum's gradient.

    Args:
        x: A rank's share of the sum. [tensor]

    Returns:
        A tensor of the same shape. [tensor]
    """
    out = x.tape.new(x.shape, x.dtype)
    return x.tape.record("all_reduce", out, (x,), lambda grad: (grad,))


def sum_gradient(x: Tensor) -> Tensor:
    """Alias of a tensor whose gradient is summed over ranks.

    Args:
        x: A tensor that is equal on every rank. [tensor]

    Returns:
        An alias in the graph. [tensor]
    """

    def backward(grad: Tensor) -> tuple[Tensor]:
        return (grad.tape.new(grad.shape, grad.dtype),)

    return x.tape.record("reduce_gradient", x.alias(), (x,), backward)
