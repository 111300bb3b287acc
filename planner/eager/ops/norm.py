"""Normalisation: RMSNorm in single operations, LayerNorm as one kernel."""

from __future__ import annotations

from planner.eager.engine.storage import F32, Tensor
from planner.eager.ops.pointwise import (
    mean_last,
    mul,
    power,
    rsqrt,
    shift,
    to,
)

Grad = Tensor | None


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """RMSNorm of Llama: fp32 inside, cast back, then the weight.

    Keeps the fp32 copy, the reciprocal root and the cast product: 6h + 4 bytes a token
    with bf16 weights.

    Args:
        x: The input [..., h]. [tensor]
        weight: The gain [h]. [tensor]

    Returns:
        The normalised input. [tensor]
    """
    dtype = x.dtype
    x = to(x, F32)
    variance = mean_last(power(x))
    x = mul(x, rsqrt(shift(variance)))
    return mul(weight, to(x, dtype))


def rms_norm_outside(x: Tensor, weight: Tensor) -> Tensor:
    """RMSNorm of OLMo 2: the gain is applied in fp32, before the cast.

    Args:
        x: The input [..., h]. [tensor]
        weight: The gain [h]. [tensor]

    Returns:
        The normalised input. [tensor]
    """
    dtype = x.dtype
    x = to(x, F32)
    variance = mean_last(power(x))
    x = mul(x, rsqrt(shift(variance)))
    return to(mul(weight, x), dtype)


def rms_norm_plus_one(x: Tensor, weight: Tensor) -> Tensor:
    """RMSNorm of Gemma: the gain is 1 + weight, applied in fp32 before the cast.

    Args:
        x: The input [..., h]. [tensor]
        weight: The gain minus 1 [h]. [tensor]

    Returns:
        The normalised input. [tensor]
    """
    out = _unit(to(x, F32))
    out = mul(out, shift(to(weight, F32)))
    return to(out, x.dtype)


def _unit(x: Tensor) -> Tensor:
    """The input over its root mean square."""
    return mul(x, rsqrt(shift(mean_last(power(x)))))


def layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """LayerNorm as one kernel: keeps its input, mean and reciprocal deviation.

    Under autocast the kernel runs in fp32 (the fp32 list of ``torch.autocast``).

    Args:
        x: The input [..., h]. [tensor]
        weight: The gain [h], if any. [tensor]
        bias: The bias [h], if any. [tensor]

    Returns:
        The normalised input. [tensor]
    """
    tape = x.tape
    if tape.autocast:
        x = to(x, F32)
    on = x.requires_grad
    rows = (*x.shape[:-1], 1)
    kept = [tape.save(x)] if on else []
    kept += [tape.save(t) for t in (weight, bias) if on and t is not None]
    out = tape.new(x.shape, x.dtype)
    mean, deviation = tape.new(rows, F32), tape.new(rows, F32)
    if on:
        kept += [tape.save(mean), tape.save(deviation)]
    gains = [
        (t.shape, t.dtype) if t is not None and t.requires_grad else None
        for t in (weight, bias)
    ]

    def backward(_: Tensor) -> tuple[Grad, ...]:
        held = [take() for take in kept]
        to_x = tape.new(held[0].shape, held[0].dtype)
        return to_x, *(None if like is None else tape.new(*like) for like in gains)

    return tape.record("layer_norm", out, (x, weight, bias), backward)


def unit_rows(matrix: Tensor) -> Tensor:
    """Frozen rows over their lengths (``functional.normalize``).

    Autocast takes the lengths in fp32 without a copy of the rows; so are the results.

    Args:
        matrix: The rows [n, k]. [tensor]

    Returns:
        The rows in fp32. [tensor]
    """
    lengths = matrix.tape.new((matrix.shape[0], 1), F32)
    lengths = shift(lengths)
    return lengths.tape.new(matrix.shape, F32)
