"""Bytes of whole weights that magnitudes beside an adapter need (DoRA)."""

from collections.abc import Iterator

import numpy as np

from planner.cost.meshes import Floats, Meshes
from planner.cost.parameters.adapters import SINGLE, adapter_width, adapters_beside
from planner.cost.parameters.quantised import HALF, is_quantised
from planner.cost.parameters.shapes import weight_shapes
from planner.cost.workload import Workload
from planner.hardware.reading.quantities import Bytes, Column
from planner.models.layers.blocks import LayerKind


def norm_bytes(workload: Workload, layer: LayerKind, meshes: Meshes) -> Column[Bytes]:
    """Bytes of the matrices that exist while the largest weight's norms are taken.

    ``w (i^2 + 3 i o)`` for adapters of w bytes a number: the unit matrix, the product
    of both factors, the product scaled, and its sum with the frozen weight; ``2 i o``
    more for a weight that is unpacked, ``4 i o`` for one that is widened.

    Returns:
        Memory, zero without magnitudes. [B], shape (meshes,)

    References:
        peft 0.21.2 tuners/lora/dora.py, DoraLinearLayer.forward.
    """
    most: Floats = meshes.zeros()
    wide = adapter_width(workload)
    for inputs, size, made in _weights(workload, layer, meshes):
        most = np.maximum(most, wide * (inputs**2 + 3.0 * size) + made * size)
    return most


def kept_weight_bytes(
    workload: Workload, layer: LayerKind, meshes: Meshes
) -> Column[Bytes]:
    """Bytes of weights that a dropped input's own product keeps for its backward.

    A weight in the adapter's format is kept as it lies; one that is unpacked or
    widened is kept beside it.

    Returns:
        Memory, zero without dropout or magnitudes. [B], shape (meshes,)
    """
    total: Floats = meshes.zeros()
    if not workload.training.lora.dropout:
        return total
    wide = adapter_width(workload)
    for _, size, made in _weights(workload, layer, meshes):
        total = total + min(made, wide) * size
    return total


def _weights(
    workload: Workload, layer: LayerKind, meshes: Meshes
) -> Iterator[tuple[Floats, Floats, int]]:
    """Inputs and size of each weight with magnitudes, and bytes to make it. [1]."""
    if not workload.training.lora.dora:
        return
    widened = SINGLE if adapter_width(workload) == SINGLE else 0
    for gemm, inputs, outputs, copies in weight_shapes(layer, meshes):
        made = widened + HALF if is_quantised(workload, gemm) else widened
        for columns in adapters_beside(workload, layer, gemm.name):
            share = columns / gemm.outputs * outputs
            yield inputs, copies * inputs * share, made
