"""Scaled dot-product attention as CUDA chooses it, and softmax attention by hand."""

from __future__ import annotations

from collections.abc import Callable

from planner.eager.engine.storage import BF16, BOOL, F32, I64, Tensor
from planner.eager.engine.tape import Tape, kept, needs
from planner.eager.ops.pointwise import add, dropout, scale, softmax, tanh, to
from planner.eager.ops.products import batched, cast
from planner.eager.ops.views import contiguous, repeat_heads, transpose

Grad = Tensor | None
FLASH_HEAD = 256
"""Widest head of the flash kernel. [elements]"""


def flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Flash attention: keeps q, k, v, the output, logsumexp and the random state.

    Args:
        q: Queries [b, a, s, d]. [tensor]
        k: Keys [b, g, s, d]. [tensor]
        v: Values [b, g, s, d]. [tensor]

    Returns:
        The output [b, a, s, d], laid out as the queries. [tensor]
    """
    tape = q.tape

    def compute() -> tuple[Tensor, ...]:
        logsumexp = tape.new(q.shape[:3], F32)
        return tape.pointwise(q), logsumexp, tape.new((2,), I64), tape.new((), I64)

    return _fused("flash", (q, k, v), (), compute)


def efficient(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
    """Memory-efficient attention: as flash, with a bias kept and no grouped queries.

    Args:
        q: Queries [b, a, s, d]. [tensor]
        k: Keys [b, a, s, d]. [tensor]
        v: Values [b, a, s, d]. [tensor]
        bias: Tensor added to the scores, if any. [tensor]

    Returns:
        The output [b, a, s, d], in memory [b, s, a, d]. [tensor]
    """
    tape = q.tape

    def compute() -> tuple[Tensor, ...]:
        b, a, s, _ = q.shape
        d = v.shape[-1]
        out = tape.new((b, a, s, d), q.dtype, _rows_first(b, a, s, d))
        logsumexp = tape.new((b, a, -(-s // 32) * 32), F32)
        return out, logsumexp, tape.new((), I64), tape.new((), I64)

    return _fused("efficient", (q, k, v), () if bias is None else (bias,), compute)


def _rows_first(_: int, a: int, s: int, d: int) -> tuple[int, ...]:
    return s * a * d, d, a * d, 1


def _fused(
    name: str,
    qkv: tuple[Tensor, Tensor, Tensor],
    more: tuple[Tensor, ...],
    compute: Callable[[], tuple[Tensor, ...]],
) -> Tensor:
    """A fused kernel that keeps its operands and everything it returns."""
    tape = qkv[0].tape
    trains = needs(*qkv)
    saved = [tape.save(t) for t in (*qkv, *more)] if trains else []
    outputs = kept(tape, name, compute)
    if trains:
        saved += [tape.save(t) for t in outputs]
    efficient_layout = name == "efficient"

    def backward(_: Tensor) -> tuple[Grad, ...]:
        held = [take() for take in saved]
        scratch = [] if tape.tracked or efficient_layout else _scratch(held[0], held[1])
        del scratch
        if efficient_layout:
            return tuple(
                t.tape.new(t.shape, t.dtype, _rows_first(*t.shape)) for t in held[:3]
            )
        return tuple(t.tape.pointwise(t) for t in held[:3])

    return tape.record(name, outputs[0], qkv, backward)


def _scratch(q: Tensor, k: Tensor) -> list[Tensor]:
    """Scratch that the backward of flash attention allocates inside.

    An fp32 sum of the queries' gradient and the row sums, both over rounded lengths.
    Where queries are grouped, also keys' and values' gradients per query head
    (``mha_bwd``, aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp).
    """
    tape = q.tape
    b, a, s, d = q.shape
    rows, width = -(-s // 128) * 128, -(-d // 32) * 32
    made = [tape.new((b, a, rows, width), F32), tape.new((b, a, rows), F32)]
    if k.shape[1] != a:
        made += [tape.new((b, k.shape[2], a, d), q.dtype) for _ in range(2)]
    return made


def by_hand(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    *,
    drop: bool = False,
    softcap: bool = False,
    upcast: bool = True,
) -> tuple[Tensor, Tensor]:
    """Attention in single operations, as the ``eager`` implementation runs it.

    The scores are scaled (and capped), masked, softmaxed in fp32 and cast back.

    Args:
        q: Queries [b, a, s, d]. [tensor]
        k: Keys [b, g, s, d]. [tensor]
        v: Values [b, g, s, d]. [tensor]
        mask: Tensor added to the scores, if any. [tensor]
        drop: True if dropout thins the probabilities. [flag]
        softcap: True if the scores are capped by a tanh. [flag]
        upcast: True if the softmax runs in fp32. [flag]

    Returns:
        The output [b, s, a, d] and the probabilities [b, a, s, s]. [tensors]
    """
    keys = repeat_heads(k, q.shape[1] // k.shape[1])
    values = repeat_heads(v, q.shape[1] // v.shape[1])
    weights = scale(batched(q, transpose(keys, 2, 3)))
    if softcap:
        weights = scale(weights)
        weights = tanh(weights)
        weights = scale(weights)
    if mask is not None:
        weights = add(weights, mask)
    weights = softmax(to(weights, F32) if upcast else weights)
    weights = to(weights, v.dtype)
    if drop:
        weights = dropout(weights)
    out = batched(weights, values)
    return contiguous(transpose(out, 1, 2)), weights


def sdpa(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, drop: bool = False
) -> Tensor:
    """The kernel that ``scaled_dot_product_attention`` picks on a CUDA device.

    Flash runs bf16 without a mask and with heads up to 256 elements. Grouped queries
    with a mask or wider heads first get repeated keys and values. Grouped queries that
    remain, not run by flash, take the plain composition. All others take the
    memory-efficient kernel.

    Args:
        q: Queries [b, a, s, d]. [tensor]
        k: Keys [b, g, s, d]. [tensor]
        v: Values [b, g, s, d]. [tensor]
        mask: A boolean mask, if any. [tensor]
        drop: True if dropout is on; the fused kernels keep no dropout mask. [flag]

    Returns:
        The output [b, s, a, d]. [tensor]
    """
    groups = q.shape[1] // k.shape[1]
    if groups > 1 and (mask is not None or k.shape[-1] > FLASH_HEAD):
        k, v, groups = repeat_heads(k, groups), repeat_heads(v, groups), 1
    q, k, v = cast(q), cast(k), cast(v)
    if q.dtype == BF16 and mask is None and q.shape[-1] <= FLASH_HEAD:
        out = flash(q, k, v)
    elif groups > 1:
        out = plain(q, k, v, drop=drop)
    else:
        out = efficient(q, k, v, None if mask is None else _bias(mask, q))
    return contiguous(transpose(out, 1, 2))


def plain(q: Tensor, k: Tensor, v: Tensor, *, drop: bool) -> Tensor:
    """Causal attention in single operations, where no fused kernel takes the case.

    Queries and keys are scaled and an additive mask [s, s] is made. Keys and values
    of grouped queries are repeated (``_scaled_dot_product_attention_math``,
    aten/src/ATen/native/transformers/attention.cpp).

    Args:
        q: Queries [b, a, s, d]. [tensor]
        k: Keys [b, g, s, d]. [tensor]
        v: Values [b, g, s, d]. [tensor]
        drop: True if dropout thins the probabilities. [flag]

    Returns:
        The output [b, a, s, d]. [tensor]
    """
    tape, s = q.tape, q.shape[2]
    q = scale(q)
    mask = _additive(tape, s, q.dtype)
    groups = q.shape[1] // k.shape[1]
    k = repeat_heads(k, groups, copied=True)
    v = repeat_heads(v, groups, copied=True)
    scores = batched(q, scale(transpose(k, 2, 3)))
    scores = add(scores, mask)
    scores = softmax(scores)
    if drop:
        scores = dropout(scores)
    return batched(scores, v)


def _additive(tape: Tape, s: int, dtype: str) -> Tensor:
    ones = tape.new((s, s), BOOL)
    lower = tape.pointwise(ones)
    del ones
    return tape.pointwise(lower, dtype=dtype)


def _bias(mask: Tensor, q: Tensor) -> Tensor:
    """A boolean mask as numbers: zeros, the inverse mask, and their filled copy."""
    tape = q.tape
    zeros = tape.new(mask.shape, q.dtype)
    tape.pointwise(mask)
    b, a, s, _ = q.shape
    lead = tuple(
        0 if n == 1 else st
        for n, st in zip(mask.shape[:2], zeros.strides[:2], strict=True)
    )
    return zeros.alias((b, a, s, s), (*lead, *zeros.strides[2:]))
