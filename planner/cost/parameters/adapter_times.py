"""Time of the products of low-rank adapters beside frozen linears."""

import numpy as np

from planner.cost.kernels import ELEMENT, gemm_rate, gemm_time
from planner.cost.meshes import Floats
from planner.cost.parameters.adapters import adapters_beside, copy_bytes
from planner.cost.parameters.magnitude_times import magnitude_times
from planner.cost.parameters.quantised import HALF, element_bytes, is_quantised
from planner.cost.pricing import Pricing
from planner.cost.streaming import memory_time
from planner.cost.workload import Workload
from planner.hardware.reading.quantities import Column, Seconds
from planner.models.layers.blocks import LayerKind
from planner.models.layers.parts import Gemm


def adapter_times(
    pricing: Pricing,
    layer: LayerKind,
    gemm: Gemm,
    shape: tuple[Floats, Floats, Floats],
) -> tuple[Floats, Floats]:
    """Time of one frozen linear beside its own two GEMMs. [s].

    Forward, the adapters' two GEMMs and one addition; backward, the adapters' four
    GEMMs and one addition; the dropped or widened copy of the input; for quantised
    weights the dequantisation of both passes; what magnitudes take.

    Leaves out that products in fp32 run below the rate of those in 16 bits.
    """
    rows, outputs, inputs = shape
    forward, backward = np.zeros(len(rows)), np.zeros(len(rows))
    if is_quantised(pricing, gemm):
        moved = (element_bytes(pricing) + HALF) * inputs * outputs
        once = memory_time(pricing, moved, 1)
        forward, backward = forward + once, backward + once
    for columns in adapters_beside(pricing, layer, gemm.name):
        share = columns / gemm.outputs * outputs
        ahead, behind = _pair_times(pricing, rows, share, inputs)
        forward, backward = forward + ahead, backward + behind
        if pricing.training.lora.dora:
            ahead, behind = magnitude_times(pricing, gemm, (rows, share, inputs))
            forward, backward = forward + ahead, backward + behind
    return forward, backward


def adapter_weight_times(
    pricing: Pricing,
    layer: LayerKind,
    gemm: Gemm,
    shape: tuple[Floats, Floats, Floats],
) -> Floats:
    """Weight gradients of the adapters beside one frozen linear.

    Args:
        shape: Tokens, columns and inputs, as for :func:`adapter_times`. [1],
            shape (meshes,) each

    Returns:
        A part of the backward of :func:`adapter_times`. [s], shape (meshes,)
    """
    rows, outputs, inputs = shape
    time = np.zeros(len(rows))
    for columns in adapters_beside(pricing, layer, gemm.name):
        share = columns / gemm.outputs * outputs
        time = time + _pair_weight_time(pricing, rows, share, inputs)
    return time


def adapter_width(
    workload: Workload, layer: LayerKind, gemm: Gemm, outputs: Floats
) -> Floats:
    """Outputs per token of the factors of the adapters beside one frozen linear.

    Returns:
        Columns, none where no adapter is. [1], shape (meshes,)
    """
    linears = adapters_beside(workload, layer, gemm.name)
    inner = float(workload.training.lora.rank * len(linears))
    return inner + sum(linears) / gemm.outputs * outputs


def _pair_weight_time(
    pricing: Pricing, rows: Floats, outputs: Floats, inputs: Floats
) -> Column[Seconds]:
    """Weight gradients of one adapter's two factors. [s], shape (meshes,)."""
    rate = gemm_rate(pricing, narrow=False)
    inner = np.full(len(rows), float(pricing.training.lora.rank))
    outer = gemm_time(rate, inner, outputs, rows, wgrad=True)
    return outer + gemm_time(rate, inputs, inner, rows, wgrad=True)


def _pair_times(
    pricing: Pricing, rows: Floats, outputs: Floats, inputs: Floats
) -> tuple[Floats, Floats]:
    """Forward and backward of one adapter's two factors. [s], shape (meshes,)."""
    rate = gemm_rate(pricing, narrow=False)
    inner = np.full(len(rows), float(pricing.training.lora.rank))
    forward = (
        gemm_time(rate, rows, inner, inputs)
        + gemm_time(rate, rows, outputs, inner)
        + memory_time(pricing, 3.0 * ELEMENT * rows * outputs, 1)
    )
    backward = (
        gemm_time(rate, rows, inner, outputs)
        + gemm_time(rate, rows, inputs, inner)
        + _pair_weight_time(pricing, rows, outputs, inputs)
        + memory_time(pricing, 3.0 * ELEMENT * rows * inputs, 1)
    )
    copied = copy_bytes(pricing)
    if copied:
        moved = memory_time(pricing, (ELEMENT + copied) * rows * inputs, 1)
        forward, backward = forward + moved, backward + moved
    return forward, backward
