"""Frozen weights in a quantised form, and their bytes."""

import numpy as np

from planner.cost.meshes import Floats, Meshes
from planner.cost.parameters.shapes import weight_shapes
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.hardware.formats import block_format
from planner.hardware.reading.quantities import Bytes, Column
from planner.models.layers.blocks import LayerKind
from planner.models.layers.parts import Gemm

HALF = 2
"""Bytes of a 16-bit number. [B]"""


def gather_width(pricing: Pricing, *, linears: bool) -> float:
    """Bytes in which a number of a unit's parameters is gathered.

    Only the weights of linears are narrower than 16 bits: tables stay wide.

    Args:
        linears: True where the unit is a layer, whose weights are linears'. [-]

    Returns:
        ``w_g``, at least 2 for a table. [B]

    Leaves out that norms and routers of a layer stay wide too.
    """
    width = pricing.recipe.gather_bytes
    return width if linears else max(width, HALF)


def is_quantised(workload: Workload, gemm: Gemm) -> bool:
    """Tell if a GEMM's weight is kept in the quantised format of the job.

    Linear layers are, embedding and head are not; routed experts are only where
    the job says so, since one tensor for all experts is no linear layer.

    Returns:
        False without quantisation, and for routers. [-]

    References:
        transformers, integrations/bitsandbytes.py: replaces nn.Linear alone, and
        leaves the output embedding.
    """
    training = workload.training
    if training.weight_format is None or gemm.name == "router":
        return False
    return training.quantized_experts or not gemm.split.startswith("expert")


def element_bytes(workload: Workload) -> float:
    """Bytes of one quantised weight with its share of the scales of blocks.

    Returns:
        NF4: 0.5625, doubly quantised 0.5159; int8: 1. [B]

    Leaves out int8's scales of rows, :func:`quantised_savings` has them.
    """
    training = workload.training
    assert training.weight_format is not None
    form = block_format("weights", training.weight_format)
    return form.bytes_each(nested=training.double_quantization)


def quantised_savings(
    workload: Workload, layer: LayerKind, meshes: Meshes
) -> tuple[Floats, Floats]:
    """Bytes that the quantised form saves over 16 bits on a rank.

    ``P (2 - b) - r rows`` with b the bytes of an element and r of a row's scale.

    Returns:
        Memory of dense and of expert linears, zero without quantisation. [B],
        shape (meshes,)
    """
    dense, expert = meshes.zeros(), meshes.zeros()
    name = workload.training.weight_format
    if name is None:
        return dense, expert
    form, width = block_format("weights", name), element_bytes(workload)
    for gemm, inputs, outputs, copies in weight_shapes(layer, meshes):
        if not is_quantised(workload, gemm):
            continue
        row = form.row_scale_bytes * outputs
        saved = copies * ((HALF - width) * inputs * outputs - row)
        if gemm.split.startswith("expert"):
            expert = expert + saved
        else:
            dense = dense + saved
    return dense, expert


def scale_bytes(workload: Workload, layer: LayerKind, meshes: Meshes) -> Column[Bytes]:
    """Bytes of the scales of a layer's quantised weights on a rank that shards none.

    ``P (b - n) + r rows``, b the bytes of an element with its share of the scales of
    blocks and n without, r the scale of a row.

    Returns:
        Memory, zero without quantisation. [B], shape (meshes,)
    """
    total: Floats = meshes.zeros()
    name = workload.training.weight_format
    if name is None:
        return total
    form = block_format("weights", name)
    excess = element_bytes(workload) - form.element_bytes
    for gemm, inputs, outputs, copies in weight_shapes(layer, meshes):
        if is_quantised(workload, gemm):
            total = total + copies * (excess * inputs + form.row_scale_bytes) * outputs
    return total


def dequantised_bytes(
    workload: Workload, layer: LayerKind, meshes: Meshes
) -> Column[Bytes]:
    """Bytes of the largest quantised weight of a layer in 16 bits.

    The 16-bit form exists while its product runs, forward and again backward.

    Returns:
        Memory, zero without quantisation. [B], shape (meshes,)

    References:
        bitsandbytes, autograd/_functions.py, MatMul4Bit and MatMul8bitLt.
    """
    largest = meshes.zeros()
    for gemm, inputs, outputs, _ in weight_shapes(layer, meshes):
        if is_quantised(workload, gemm):
            largest = np.maximum(largest, HALF * inputs * outputs)
    return largest
