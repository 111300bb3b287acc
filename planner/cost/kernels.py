"""Time of single kernels: GEMM, attention, memory-bound operators."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hardware.calibration import AttentionCurve, GemmCalibration
from planner.cost.meshes import Floats
from planner.cost.workload import Workload

ELEMENT = 2
"""Bytes of one bf16 or fp16 number. [B]"""
ACCUMULATED = 8
"""Bytes moved per element of an fp32 gradient that is added to. [B]"""
QUERY_BLOCK = 128
"""Query rows that one block of a flash-attention kernel works on. [1]"""
BACKWARD_ATTENTION = 2.5
"""Kernel FLOPs of a flash-attention backward over its forward. [1]"""


@dataclass(frozen=True)
class GemmRate:
    """The additive GEMM model of one GPU and number format."""

    flops: float
    """Sustained matrix rate. [FLOP/s]"""
    bandwidth: float
    """HBM bandwidth over the traffic factor. [B/s]"""
    overhead: float
    """Launch, prologue and tail. [s]"""


def gemm_rate(workload: Workload, *, grouped: bool = False) -> GemmRate:
    """Look up the rate of dense or grouped GEMMs for the job's precision.

    Args:
        workload: The job.
        grouped: Whether many experts share one launch.

    Returns:
        The constants of :func:`gemm_time`.
    """
    calibration = workload.calibration
    table = calibration.grouped_gemm if grouped else calibration.gemm
    fp8 = workload.training.precision == "fp8" and "fp8" in table
    entry: GemmCalibration = table["fp8" if fp8 else _half(table)]
    gpu = workload.gpu
    peak = gpu.peak_fp8 if fp8 else workload.peak_flops
    assert peak is not None
    return GemmRate(
        flops=peak * entry.efficiency * workload.profile.clock,
        bandwidth=gpu.memory_bandwidth / entry.traffic if entry.traffic else np.inf,
        overhead=entry.overhead,
    )


def _half(table: Mapping[str, GemmCalibration]) -> str:
    """Format of the half-precision constants: fp16 where a GPU has no bf16."""
    return "bf16" if "bf16" in table else "fp16"


def gemm_time(
    rate: GemmRate,
    rows: Floats,
    outputs: Floats,
    inputs: Floats,
    *,
    wgrad: bool = False,
) -> Floats:
    """Time of one matrix product ``(rows x inputs) @ (inputs x outputs)``.

    Work, traffic and overhead add up::

        T = 2 M N K / (P eps) + mu bytes / W + t0

    Args:
        rate: Constants of the GPU.
        rows: M. [1]
        outputs: N. [1]
        inputs: K. [1]
        wgrad: The product is added to an fp32 gradient.

    Returns:
        Kernel time. [s]

    Leaves out wave quantisation, worth under one point of mean error.

    References:
        Fit on 183 A100 and 514 B200 shapes of SimuMax's published kernel tables.
    """
    out = ACCUMULATED if wgrad else ELEMENT
    traffic = ELEMENT * (rows * inputs + inputs * outputs) + out * rows * outputs
    work = 2.0 * rows * outputs * inputs / rate.flops
    return work + traffic / rate.bandwidth + rate.overhead


def attention_kernel(workload: Workload) -> str:
    """Name of the attention kernel that the stack runs on this GPU.

    Where the stack names none for the GPU's architecture, the first kernel that
    its calibration has.
    """
    kernel = workload.profile.attention_kernel
    if isinstance(kernel, str):
        return kernel
    first = workload.calibration.attention[0].kernel
    return kernel.get(workload.gpu.arch, first)


def attention_curve(workload: Workload, head_dim: int) -> AttentionCurve:
    """The measured causal curve nearest in head size.

    Args:
        workload: The job.
        head_dim: Size of a query head. [1]

    Returns:
        The curve; ties go to the smaller head, which is the slower one.

    Raises:
        ValueError: No measurement of this kernel on this GPU.
    """
    kernel = attention_kernel(workload)
    curves = [
        curve
        for curve in workload.calibration.attention
        if curve.kernel == kernel and curve.causal
    ]
    if not curves:
        known = sorted({curve.kernel for curve in workload.calibration.attention})
        raise ValueError(
            f"no measurement of attention kernel {kernel!r} on {workload.gpu.name}; "
            f"measured: {', '.join(known)}"
        )
    return min(
        curves, key=lambda curve: (abs(curve.head_dim - head_dim), curve.head_dim)
    )


def attention_time(
    workload: Workload, *, flops: Floats, query_blocks: Floats, head_dim: int
) -> tuple[Floats, Floats]:
    """Forward and backward time of the attention core.

    The rate is read off the measured curve at the sequence length; where the
    GPU is less full than in the benchmark it falls as ``w / (w + w0)``, with
    ``w`` the waves of query blocks over the SMs.

    Args:
        workload: The job: kernel, GPU, sequence length.
        flops: Causal-halved forward FLOPs. [FLOP]
        query_blocks: Blocks of 128 query rows over all heads. [1]
        head_dim: Size of a query head. [1]

    Returns:
        Forward and backward kernel time. [s]

    References:
        FlashAttention-2 and -3 benchmark figures; backward is 2.5x the FLOPs.
    """
    curve = attention_curve(workload, head_dim)
    at = np.log2(workload.training.seq_len)
    lengths = np.log2(np.array(curve.seq_len, dtype=np.float64))
    half = workload.calibration.attention_waves
    waves = query_blocks / workload.gpu.sm_count
    times = []
    for factor, measured, w0 in (
        (1.0, curve.forward, half.forward),
        (BACKWARD_ATTENTION, curve.backward, half.backward),
    ):
        rate = np.interp(at, lengths, np.array(measured, dtype=np.float64))
        measured_at = 1.0 if curve.waves is None else 1.0 + w0 / curve.waves
        emptier = np.maximum((1.0 + w0 / waves) / measured_at, 1.0)
        clock = workload.profile.clock
        times.append(factor * flops / (rate * clock) * emptier)
    return times[0], times[1]


def memory_time(workload: Workload, moved: Floats, operators: float) -> Floats:
    """Time of memory-bound operators.

    ::

        T = traffic bytes / (eta W) + operators t_op

    Args:
        workload: The job: HBM, measured efficiency, the stack's traffic factor.
        moved: Bytes that fused kernels would move. [B]
        operators: Kernels. [1]

    Returns:
        Time. [s]
    """
    memory = workload.calibration.memory
    bandwidth = workload.gpu.memory_bandwidth * memory.efficiency
    traffic = workload.profile.memory_traffic
    return traffic * moved / bandwidth + operators * memory.op_latency
