"""Time that magnitudes beside an adapter take: norms of whole weights, and scalings."""

from planner.cost.kernels import gemm_rate, gemm_time
from planner.cost.meshes import Floats
from planner.cost.parameters.adapters import SINGLE, adapter_width
from planner.cost.parameters.quantised import HALF, element_bytes, is_quantised
from planner.cost.pricing import Pricing
from planner.cost.streaming import memory_time, operator_latency, stream_rate
from planner.hardware.reading.quantities import Column, Seconds
from planner.models.layers.parts import Gemm

WEIGHT_PASSES = 6.0
"""Reads and writes of an (o x i) matrix: the product is scaled (2) and added to the
weight (3), whose rows have their norms taken (1). [1]"""
AHEAD_PASSES, BEHIND_PASSES = 7.0, 15.0
"""Reads and writes of (tokens x o). Forward: the frozen output times m - 1 (2), the
adapter's times m (2), their sum (3). Backward: gradients of both outputs (4), that of
the frozen one added (3), and of m by a product and a sum each (8). [1]"""
NORM_KERNELS, AHEAD_KERNELS, BEHIND_KERNELS = 6, 3, 9
"""Kernels of the norms, and beside the products of a pass. [1]"""


def magnitude_times(
    pricing: Pricing, gemm: Gemm, shape: tuple[Floats, Floats, Floats]
) -> tuple[Floats, Floats]:
    """Time of the magnitudes of one adapter (DoRA), as PEFT runs them. [s].

    Every forward makes the product of both factors in full from a unit matrix,
    ``2 rho i (i + o)`` FLOP, and the norms of the rows of its sum with the frozen
    weight, which is unpacked where it is quantised. A dropped input runs the frozen
    product once more, forward and backward.

    References:
        peft 0.21.2 tuners/lora/dora.py, DoraLinearLayer.forward and get_weight_norm.
    """
    rows, outputs, inputs = shape
    moved, wide = rows * outputs, adapter_width(pricing)
    forward = _norm_time(pricing, gemm, outputs, inputs)
    forward = forward + _streamed(pricing, AHEAD_PASSES * wide * moved, AHEAD_KERNELS)
    backward = _streamed(pricing, BEHIND_PASSES * wide * moved, BEHIND_KERNELS)
    if pricing.training.lora.dropout:
        rate = gemm_rate(pricing, narrow=False)
        forward = forward + gemm_time(rate, rows, outputs, inputs)
        backward = backward + gemm_time(rate, rows, inputs, outputs)
    return forward, backward


def _norm_time(
    pricing: Pricing, gemm: Gemm, outputs: Floats, inputs: Floats
) -> Column[Seconds]:
    """Time of the product in full and of the norms. [s], shape (meshes,)."""
    rate, wide = gemm_rate(pricing, narrow=False), adapter_width(pricing)
    inner = 0.0 * inputs + pricing.training.lora.rank
    size = outputs * inputs
    moved = wide * (WEIGHT_PASSES * size + inputs * inputs)
    if wide == SINGLE:
        moved = moved + (HALF + SINGLE) * size
    made = gemm_time(rate, inputs, inner, inputs)
    made = made + gemm_time(rate, inputs, outputs, inner)
    if is_quantised(pricing, gemm):
        unpacked = (element_bytes(pricing) + HALF) * size
        made = made + memory_time(pricing, unpacked, 1)
    return made + _streamed(pricing, moved, NORM_KERNELS)


def _streamed(pricing: Pricing, moved: Floats, kernels: int) -> Column[Seconds]:
    """Time of kernels of one operation each, whose bytes are all counted. [s]."""
    return moved / stream_rate(pricing) + kernels * operator_latency(pricing)
