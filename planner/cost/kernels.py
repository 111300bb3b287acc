"""Time of single kernels: GEMM, attention, memory-bound operators."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Self

import numpy as np

from planner.cost.meshes import Floats
from planner.cost.pricing import Pricing
from planner.cost.streaming import operator_latency, stream_rate
from planner.cost.waves import FULL, Waves
from planner.cost.workload import Workload
from planner.hardware.calibration import AttentionCurve, GemmCalibration
from planner.hardware.kernels.attention import UNFUSED, stand_in
from planner.hardware.reading.quantities import (
    BytesPerSecond,
    Column,
    FlopPerSecond,
    Seconds,
)
from planner.hardware.specs import GpuSpec

ELEMENT = 2
"""Bytes of one bf16 or fp16 number. [B]"""
NARROW = {"fp8": 1.0, "mxfp8": 1.0 + 1 / 32, "nvfp4": 0.5 + 1 / 16}
"""Bytes of one GEMM input in the formats below half precision, scales included. [B]"""
WIDE = ("fp32", "tf32")
"""Formats of 32 bits, whose products do not run in half precision. [text]"""
CAST_TRAFFIC = {"delayed": 4.0, "current": 6.0, "blockwise": 4.0}
"""Bytes moved per element that is cast to fp8: read 2, write 1 by rows and 1 by
columns; scaling by a first pass reads 2 more. [B]"""
ANY_LAYOUT = frozenset({"blackwell"})
"""Architectures whose fp8 products take operands by rows or by columns."""
BLOCK_CAST_TRAFFIC = {"mxfp8": 4.0, "nvfp4": 5.0}
"""Bytes moved per cast element where the format fixes the scaling; nvfp4 finds a
maximum first. [B]"""
ACCUMULATED = 8
"""Bytes moved per element of an fp32 gradient that a product adds to. [B]"""
SHOWN_GRADIENT = 0.6
"""Part of the bytes of adding that hides behind no product, as 61 products on A100
take longer than those without, in quartiles 0.42 to 0.77. On B200 0.7 for 2,048
tokens, 0.3 for 4,096 (MooreThreads/SimuMax configs/system, accumulate=True). [1]"""


@dataclass(frozen=True)
class GemmRate:
    """The additive GEMM model of one GPU and number format."""

    flops: FlopPerSecond
    """Sustained matrix rate. [FLOP/s]"""
    bandwidth: BytesPerSecond
    """HBM bandwidth over the traffic factor. [B/s]"""
    overhead: Seconds
    """Launch, prologue and tail. [s]"""
    element: float = ELEMENT
    """Bytes of one number of a GEMM's inputs. [B]"""
    adding: float = 0.0
    """Time to add an element to its weight gradient. [s]"""
    waves: Waves = FULL
    """Loss to waves that are not full."""
    ramp: float = 0.0
    """Inputs' worth of time to fill and drain a block. [1]"""

    @classmethod
    def of(
        cls,
        entry: GemmCalibration,
        gpu: GpuSpec,
        peak: FlopPerSecond,
        *,
        latency: float = 1.0,
        element: float = ELEMENT,
        adding: float = 0.0,
    ) -> Self:
        """Constants of a calibrated product on a GPU.

        Args:
            peak: Peak of the format times the stack's clock. [FLOP/s]
            latency: Factor of the stack on what a launch takes. [1]
        """
        return cls(
            flops=peak * entry.efficiency,
            bandwidth=gpu.memory_bandwidth / (entry.traffic or 1e-9),
            overhead=entry.overhead * latency,
            ramp=entry.ramp,
            waves=Waves(gpu.sm_count, entry.tail, entry.depth),
            element=element,
            adding=adding,
        )


def gemm_rate(
    pricing: Pricing, *, grouped: bool = False, narrow: bool = True
) -> GemmRate:
    """Look up the rate of dense or grouped GEMMs for the job's precision.

    Args:
        grouped: True where many experts share one launch.
        narrow: True where inputs are cast if the job trains below half
            precision; those of head, router and attention scores never are.

    Returns:
        The constants of :func:`gemm_time`.
    """
    wanted, entry = gemm_constants(pricing, grouped=grouped, narrow=narrow)
    gpu = pricing.gpu
    return GemmRate.of(
        entry,
        gpu,
        _peak(pricing, wanted) * pricing.profile.clock,
        latency=pricing.profile.latency,
        element=_element(pricing, wanted),
        adding=_adding_time(pricing, entry),
    )


def gemm_constants(
    workload: Workload, *, grouped: bool = False, narrow: bool = True
) -> tuple[str, GemmCalibration]:
    """Number format that a GEMM runs in, and its calibrated constants.

    Args:
        grouped: True where many experts share one launch.
        narrow: True where inputs are cast if the job trains below half precision.
    """
    calibration = workload.calibration
    table = calibration.grouped_gemm if grouped else calibration.gemm
    half = _half(table)
    wanted = workload.training.precision if narrow else half
    wanted = wanted if wanted in NARROW else half
    entry = table[half] if wanted not in table else table[wanted]
    if wanted not in table:
        dense = calibration.gemm  # grouped products lose what dense ones lose
        lost = dense[wanted].efficiency / dense[half].efficiency
        own = {"efficiency": entry.efficiency * lost, "ramp": dense[wanted].ramp}
        entry = entry.model_copy(update=own)
    return wanted, entry


def _element(workload: Workload, dtype: str) -> float:
    """Bytes of one number that a product reads. [B]."""
    wide = workload.training.precision in WIDE
    return 2 * ELEMENT if wide else NARROW.get(dtype, ELEMENT)


def _adding_time(pricing: Pricing, entry: GemmCalibration) -> float:
    """Time per element to add a weight gradient to those of earlier micro-batches. [s].

    A product adds as it writes; beyond its 8 B a kernel of its own adds, which hides
    behind nothing. Of fp16 the sum has 2 B, and adding moves 6 B.
    """
    moved = pricing.profile.gradient_traffic
    apart = moved > ACCUMULATED
    if pricing.training.precision == "fp16":
        moved = min(moved, ACCUMULATED)
    added = moved - ELEMENT
    if apart:
        return added / stream_rate(pricing)
    share = max(SHOWN_GRADIENT, entry.traffic)
    return share * added / pricing.gpu.memory_bandwidth


def _peak(workload: Workload, dtype: str) -> FlopPerSecond:
    """Dense peak of the units that a format runs on. [FLOP/s]."""
    gpu = workload.gpu
    peaks = {"fp8": gpu.peak_fp8, "mxfp8": gpu.peak_fp8, "nvfp4": gpu.peak_fp4}
    if workload.training.precision in WIDE:
        peaks[dtype] = _wide_peak(workload)
    peak = peaks.get(dtype, workload.peak_flops)
    assert peak is not None
    return peak


def cast_time(pricing: Pricing, elements: Floats) -> Column[Seconds]:
    """Time to cast a GEMM's input to the job's format below half precision.

    Returns:
        Time, zero in half precision. [s]

    A cast is one kernel whatever the stack fuses, so that no traffic factor of
    the stack applies. Without weight gradients nothing is written by columns, nor
    of a tensor with one scale where products take any layout. Weights that a stack
    keeps quantised are cast once a step, which is left out.

    References:
        TransformerEngine, is_non_tn_fp8_gemm_supported.
    """
    precision = pricing.training.precision
    if precision not in NARROW:
        return elements * 0.0
    recipe = CAST_TRAFFIC[pricing.profile.fp8_recipe]
    moved = BLOCK_CAST_TRAFFIC.get(precision, recipe)
    any_layout = pricing.gpu.arch in ANY_LAYOUT
    if (any_layout and not by_blocks(pricing)) or pricing.training.frozen:
        moved -= NARROW[precision]
    return moved * elements / stream_rate(pricing) + operator_latency(pricing)


def by_blocks(pricing: Pricing) -> bool:
    """Tell if inputs below half precision have a scale for each block.

    Products by rows and by columns then read copies of their own.

    Returns:
        False where one scale holds for a tensor.
    """
    recipe = pricing.profile.fp8_recipe
    return pricing.training.precision != "fp8" or recipe == "blockwise"


def _wide_peak(workload: Workload) -> FlopPerSecond:
    """Peak of fp32 on the vector units, of tf32 on the tensor cores. [FLOP/s]."""
    gpu = workload.gpu
    ways = [gpu.peak_fp32, gpu.peak_tf32]
    if workload.training.precision == "tf32":
        ways.reverse()
    return next(filter(None, ways), workload.peak_flops)


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
) -> Column[Seconds]:
    """Time of one matrix product ``(rows x inputs) @ (inputs x outputs)``.

    A last wave that is not full and blocks that fill and drain cost work, too. A
    weight gradient is added to those before, at ``a`` an element::

        T = 2 (M N + lost) (K + ramp) / (P eps) + mu bytes / W + a M N + t0

    Args:
        rows: M. [1]
        outputs: N. [1]
        inputs: K. [1]
        wgrad: The product is added to a gradient that lasts.

    References:
        Fit on the kernel tables of nine NVIDIA GPUs, ``benchmarks/kernels``.
    """
    return added(gemm_parts(rate, rows, outputs, inputs, wgrad=wgrad))


def added(terms: Mapping[str, Floats]) -> Column[Seconds]:
    """Sum of terms, in their order.

    Args:
        terms: Times by name. [s]
    """
    return reduce(np.add, terms.values())


def gemm_parts(
    rate: GemmRate,
    rows: Floats,
    outputs: Floats,
    inputs: Floats,
    *,
    wgrad: bool = False,
) -> dict[str, Floats]:
    """Terms of :func:`gemm_time`, in the order in which they add up.

    Args:
        rows: M. [1]
        outputs: N. [1]
        inputs: K. [1]
        wgrad: The product is added to a gradient that lasts.

    Returns:
        Multiplication, operands through memory, launch, and addition. [s]
    """
    made = rows * outputs
    traffic = rate.element * (rows * inputs + inputs * outputs) + ELEMENT * made
    lost = rate.waves.lost(rows, outputs, inputs)
    work = 2.0 * (made + lost) * (inputs + rate.ramp) / rate.flops
    parts = {
        "multiply": work,
        "operands": traffic / rate.bandwidth,
        "launch": np.asarray(rate.overhead),
    }
    return parts | ({"add": rate.adding * made} if wgrad else {})


def attention_kernel(workload: Workload) -> str:
    """Name of the attention kernel that the stack runs on this GPU.

    The first kernel of the GPU's calibration, where the stack names none for the
    architecture.
    """
    kernel = workload.framework.profile.attention_kernel
    if isinstance(kernel, str):
        return kernel
    first = workload.calibration.attention[0].kernel
    return kernel.get(workload.gpu.arch, first)


def priced_kernel(workload: Workload) -> str | None:
    """Measured kernel whose rates price the attention of a job.

    Returns:
        The kernel that runs, or the nearest to it that was measured on this GPU; None
        where none is like it. [text]
    """
    curves = workload.calibration.attention
    measured = {curve.kernel for curve in curves if curve.causal}
    return stand_in(attention_kernel(workload), measured)


def attention_curve(workload: Workload, head_dim: int) -> AttentionCurve:
    """The measured causal curve nearest in kernel and in head size.

    Returns:
        The curve; ties go to the smaller head, which is the slower one.

    Raises:
        ValueError: No measurement of a kernel like this one on this GPU.
    """
    kernel = priced_kernel(workload)
    curves = [
        curve
        for curve in workload.calibration.attention
        if curve.kernel == kernel and curve.causal
    ]
    if not curves:
        known = sorted({curve.kernel for curve in workload.calibration.attention})
        raise ValueError(
            f"no measurement of attention kernel {attention_kernel(workload)!r} on "
            f"{workload.gpu.name}; measured: {', '.join(known)}"
        )
    return min(
        curves, key=lambda curve: (abs(curve.head_dim - head_dim), curve.head_dim)
    )


def is_unfused(workload: Workload) -> bool:
    """Tell if the attention core writes its scores to memory.

    Returns:
        True for the kernel ``unfused``.
    """
    return attention_kernel(workload) == UNFUSED
