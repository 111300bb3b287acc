"""Weight gradients of linears: how long they take, and what waits for them."""

from typing import NamedTuple

import numpy as np

from planner.cost.kernels import ELEMENT, NARROW, gemm_rate, gemm_time
from planner.cost.meshes import Floats
from planner.cost.parameters.adapter_times import adapter_weight_times, adapter_width
from planner.cost.parameters.adapters import is_frozen
from planner.cost.parameters.weights import keeps_quantised
from planner.cost.time.columns import Context
from planner.hardware.reading.quantities import Bytes, Column, Seconds
from planner.models.layers.blocks import LayerKind, Moe
from planner.models.layers.parts import Gemm

HALF_PRECISION = frozenset({"router"})
"""GEMMs of a layer that no recipe casts below half precision."""


class Shape(NamedTuple):
    """A GEMM as one rank runs it. [1], shape (meshes,) each."""

    rows: Floats
    """Tokens, all copies of them for routed experts."""
    outputs: Floats
    inputs: Floats


def gemm_shape(context: Context, gemm: Gemm) -> Shape:
    """Tokens, columns and inputs of one GEMM on a rank."""
    meshes = context.meshes
    ones = np.ones(len(meshes))
    routed = gemm.split.startswith("expert")
    ranks = meshes.etp if routed else meshes.tp
    column = ranks if gemm.split.endswith("column") else ones
    row = ranks if gemm.split.endswith("row") else ones
    rows = context.local
    if routed:
        rows = context.routed * gemm.calls
    elif gemm.split == "replicated":
        rows = rows * context.sigma
    return Shape(rows, gemm.outputs / column, gemm.inputs / row)


def gemm_weight_time(context: Context, layer: LayerKind, gemm: Gemm) -> Column[Seconds]:
    """Time of one GEMM's weight gradient, or its adapters' where it is frozen.

    Routed experts write the gradients of all local experts.

    Returns:
        A part of the backward of :func:`planner.cost.time.layers.gemm_times`. [s],
        shape (meshes,)
    """
    pricing, shape = context.pricing, gemm_shape(context, gemm)
    rows, outputs, inputs = shape
    if is_frozen(pricing, layer):
        return adapter_weight_times(pricing, layer, gemm, shape)
    if not gemm.split.startswith("expert"):
        rate = gemm_rate(pricing, narrow=gemm.name not in HALF_PRECISION)
        return gemm_time(rate, inputs, outputs, rows, wgrad=True)
    assert isinstance(layer.ffn, Moe)
    rate = gemm_rate(pricing, grouped=True)
    others = layer.ffn.experts / context.meshes.ep - 1
    element_time = ELEMENT / rate.bandwidth + rate.adding
    gradients = others * outputs * inputs * element_time
    return gemm_time(rate, inputs, outputs, rows, wgrad=True) + gradients


def layer_weight_time(context: Context, layer: LayerKind) -> Column[Seconds]:
    """Part of a layer's backward that makes weight gradients: its linears' alone.

    Args:
        layer: Kind of layer; one below all that trains has none.

    Leaves out the gradients of norms and biases, which the kernels of their inputs'
    gradients make; waits for the host, which are counted with the inputs' gradients.

    References:
        P. Qi et al., arXiv:2401.10241, table 1: W of a layer has as many FLOPs as
        its linears forward; attention, norms and activations have none.
    """
    time = context.meshes.zeros()
    if layer.role == "below":
        return time
    for gemm in layer.gemms():
        time = time + gemm_weight_time(context, layer, gemm)
    return time


def layer_pending_bytes(context: Context, layer: LayerKind) -> Column[Bytes]:
    """Bytes of the gradients that enter a layer's linears and wait for W.

    ``2 B`` for every output that the rank makes of every linear that trains. Below half
    precision, the bytes that the product reads. These are 18 of the paper's
    ``M_W = 32 s b h``, whose other 14 are kept inputs.

    References:
        P. Qi et al., arXiv:2401.10241, section 2.2 and table 1.
    """
    pricing, context = context.pricing, context.longest
    size = context.meshes.zeros()
    if layer.role == "below":
        return size
    for gemm in layer.gemms():
        rows, outputs, _ = gemm_shape(context, gemm)
        if is_frozen(pricing, layer):
            outputs = adapter_width(pricing, layer, gemm, outputs)
        narrow = keeps_quantised(pricing) and gemm.name not in HALF_PRECISION
        element = NARROW[pricing.training.precision] if narrow else ELEMENT
        size = size + element * rows * outputs
    return size
