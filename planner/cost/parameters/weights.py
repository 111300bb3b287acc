"""Weights of a layer's linears: number, bytes by format, and Muon's work on them."""

import numpy as np

from planner.cost.kernels import NARROW
from planner.cost.meshes import Floats, Meshes
from planner.cost.parameters.shapes import weight_shapes
from planner.cost.pricing import Pricing
from planner.hardware.reading.quantities import Column, Flops
from planner.models.layers.blocks import LayerKind

NEWTON_SCHULZ = 5
"""Iterations of Muon's orthogonalisation. [1]"""
ONE_LAYOUT = frozenset({"ada", "hopper"})
"""Architectures whose fp8 tensor cores read one layout: both layouts are kept."""


def linear_weights(layer: LayerKind, meshes: Meshes) -> Floats:
    """Weights of a layer's linears on a rank, the router's left out."""
    total = meshes.zeros()
    for gemm, inputs, outputs, copies in weight_shapes(layer, meshes):
        if gemm.name != "router":
            total = total + copies * inputs * outputs
    return total


def largest_matrix(layer: LayerKind, meshes: Meshes) -> tuple[Floats, Floats]:
    """Sides of a layer's largest linear on a rank.

    Returns:
        The shorter and the longer side. [1], shape (meshes,) each
    """
    short, long = meshes.zeros(), meshes.zeros()
    for _, inputs, outputs, _ in weight_shapes(layer, meshes):
        larger = inputs * outputs > short * long
        short = np.where(larger, np.minimum(inputs, outputs), short)
        long = np.where(larger, np.maximum(inputs, outputs), long)
    return short, long


def newton_schulz_flops(layer: LayerKind, meshes: Meshes) -> Column[Flops]:
    """Work of Muon on a rank's part of one layer.

    ``5 (4 r^2 q + 2 r^3)`` for a matrix of r <= q, each tensor rank its own part.

    References:
        Jordan et al. 2024, Muon; five iterations of a quintic polynomial.
    """
    total = meshes.zeros()
    for _, inputs, outputs, copies in weight_shapes(layer, meshes):
        short, long = np.minimum(inputs, outputs), np.maximum(inputs, outputs)
        work = NEWTON_SCHULZ * (4 * short**2 * long + 2 * short**3)
        total = total + copies * work
    return total


def keeps_quantised(pricing: Pricing) -> bool:
    """Tell if linears keep quantised weights and inputs for their backward.

    Returns:
        False in 16-bit formats, and where the stack quantises again. [-]
    """
    return pricing.recipe.keeps_fp8 and pricing.training.precision in NARROW


def weight_copies(pricing: Pricing) -> float:
    """Bytes of the quantised forms of one weight. [B].

    Block scales run along one direction, so both directions are kept. fp8 with one
    scale is kept twice only where the tensor cores need the transpose. For a frozen
    weight that is stored in fp8, only the backward makes the transpose, each time.

    References:
        Megatron-Core's ``disable_parameter_transpose_cache``.
    """
    precision = pricing.training.precision
    stored = pricing.training.frozen and pricing.recipe.fp8_primary
    cached = pricing.gpu.arch in ONE_LAYOUT and not stored
    twice = precision != "fp8" or cached
    return NARROW[precision] * (2 if twice else 1)
