"""Time of the attention core: fused kernels by measured curves, or explicit scores."""

from typing import NamedTuple

import numpy as np

from planner.cost.kernels import attention_curve, gemm_rate
from planner.cost.meshes import Floats, Number
from planner.cost.pricing import Pricing
from planner.cost.streaming import stream_rate
from planner.cost.workload import Workload
from planner.hardware.reading.quantities import Column, FlopPerSecond, Flops

QUERY_BLOCK = 128
"""Query rows that one block of a flash-attention kernel works on. [1]"""
BACKWARD_ATTENTION = 2.5
"""Kernel FLOPs of a flash-attention backward over its forward. [1]"""
UNALIGNED_RATE = 0.5
"""Rate of products on vector units that load two bytes each, over peak. [1]"""
TENSOR_CORE_ALIGNMENT = 8
"""Half-precision numbers that rows of a tensor-core operand come in. [1]"""


def attention_level(pricing: Pricing) -> float:
    """Rate of the stack's attention kernel over the measured curve. [1].

    The level of products, ``clock``, is not part of it: attention does not lose what a
    stack loses there to casts, layouts and launches.
    """
    return pricing.profile.attention_rate


def unfused_time(
    pricing: Pricing, *, flops: Column[Flops], scores: Floats, head_dim: int
) -> tuple[Floats, Floats]:
    """Forward and backward time of attention by explicit scores. [s].

    Two batched products forward and four backward at the rate of GEMMs, and
    what softmax, dropout and the products move::

        T = F / (P eps) + b S / (eta W),   2 F / (P eps) + b' S / (eta W)

    Args:
        flops: Forward FLOPs over the whole square of scores. [FLOP]
        scores: Scores, one per head, query and key. [1]
        head_dim: Size of a query head; one that 8 does not divide cannot feed the
            tensor cores, so that the vector units multiply. [1]

    References:
        Korthikanti et al., arXiv:2205.05198, section 4.1: the tensors of the core.
        arXiv:2401.14489 and NVIDIA's guide to matrix products: 16-byte alignment.
    """
    flops_rate = gemm_rate(pricing, narrow=False).flops
    if head_dim % TENSOR_CORE_ALIGNMENT:
        flops_rate = UNALIGNED_RATE * (pricing.gpu.peak_fp32 or flops_rate)
    bandwidth = stream_rate(pricing)
    speed = pricing.profile.attention_rate
    traffic = pricing.profile.score_forward, pricing.profile.score_backward
    ahead, behind = (moved * scores / bandwidth for moved in traffic)
    return (
        (flops / flops_rate + ahead) / speed,
        (2 * flops / flops_rate + behind) / speed,
    )


def attention_time(
    pricing: Pricing,
    *,
    span: Number,
    flops: Column[Flops],
    blocks: Floats,
    head_dim: int,
) -> tuple[Floats, Floats]:
    """Forward and backward time of the attention core. [s].

    The rate is read off the measured curve at the length that attends. Where the
    GPU is less full than in the benchmark, the rate falls as ``w / (w + w0)``. There
    ``w`` is the waves of query blocks over the SMs.

    Args:
        span: Tokens that attend to each other. [token]
        blocks: Blocks of 128 query rows over all heads. [1]

    References:
        FlashAttention-2 and -3 benchmark figures; backward is 2.5x the FLOPs.
    """
    paces = attention_paces(pricing, span=span, blocks=blocks, head_dim=head_dim)
    level = attention_level(pricing)
    ahead, behind = (
        pace.factor * flops / (pace.rate * level) * pace.emptier for pace in paces
    )
    return ahead, behind


class AttentionPace(NamedTuple):
    """Factors of the time of one direction of the attention core."""

    factor: float
    """FLOPs over those of the forward. [1]"""
    rate: Column[FlopPerSecond]
    """Rate off the measured curve. [FLOP/s]"""
    emptier: Floats
    """Time over that of a GPU as full as in the benchmark. [1]"""


def attention_paces(
    workload: Workload, *, span: Number, blocks: Floats, head_dim: int
) -> tuple[AttentionPace, AttentionPace]:
    """Factors of :func:`attention_time`, forward and backward.

    Args:
        span: Tokens that attend to each other. [token]
        blocks: Blocks of 128 query rows over all heads. [1]
    """
    curve = attention_curve(workload, head_dim)
    lengths = np.log2(np.array(curve.seq_len, dtype=np.float64))
    half = workload.calibration.attention_waves
    waves = blocks / workload.gpu.sm_count
    paces = []
    for factor, measured, w0 in (
        (1.0, curve.forward, half.forward),
        (BACKWARD_ATTENTION, curve.backward, half.backward),
    ):
        rate = np.interp(np.log2(span), lengths, np.array(measured, dtype=np.float64))
        measured_at = 1.0 if curve.waves is None else 1.0 + w0 / curve.waves
        emptier = np.maximum((1.0 + w0 / waves) / measured_at, 1.0)
        paces.append(AttentionPace(factor, rate, emptier))
    return paces[0], paces[1]
