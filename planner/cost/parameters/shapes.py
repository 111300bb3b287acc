"""Shapes of a layer's weights as one rank holds them."""

from collections.abc import Iterator

import numpy as np

from planner.cost.meshes import Floats, Meshes
from planner.models.layers.blocks import LayerKind, Moe
from planner.models.layers.linears import split_widths
from planner.models.layers.parts import Gemm


def weight_shapes(
    layer: LayerKind, meshes: Meshes
) -> Iterator[tuple[Gemm, Floats, Floats, "Floats | float"]]:
    """Every linear that a layer holds with its inputs, outputs and copies on a rank.

    Yields:
        The GEMM; its inputs and outputs; experts on the rank, 1 for others. [1],
        shape (meshes,)
    """
    ones = np.ones(len(meshes))
    for gemm in (gemm for gemm in layer.gemms() if gemm.held):
        expert = gemm.split.startswith("expert")
        ways = meshes.etp if expert else meshes.tp
        column = ways if gemm.split.endswith("column") else ones
        row = ways if gemm.split.endswith("row") else ones
        copies: Floats | float = 1.0
        if expert:
            assert isinstance(layer.ffn, Moe)
            copies = layer.ffn.experts / meshes.ep
        yield gemm, gemm.inputs / row, gemm.outputs / column, copies


def projected_elements(
    layer: LayerKind, meshes: Meshes, rank: int
) -> tuple[Floats, Floats]:
    """Elements of the moments and projections that a low-rank Adam keeps of a layer.

    ``2 r c + r q`` for a matrix of sides q <= c: two moments of the gradient projected
    on to r rows, and the projection. Norms and biases have Adam's two moments. Q, K,
    V, gate and up count apart.

    Args:
        rank: Rows of a projected gradient, at most q count. [1]

    Returns:
        Elements of dense and of expert tensors. [1], shape (meshes,)

    References:
        Zhao et al. 2024, arXiv 2403.03507, table 1; Zhu et al. 2024, arXiv 2412.05270.
        github:jiaweizzhao/GaLore galore_torch/galore_projector.py, ortho_matrix.

    Leaves out that APOLLO can make its random projection anew from a seed.
    """
    dense, expert, packed = (meshes.zeros() for _ in range(3))
    for gemm, inputs, outputs, copies in weight_shapes(layer, meshes):
        for width in split_widths(layer).get(gemm.name, (gemm.outputs,)):
            own = outputs * width / gemm.outputs
            short, long = np.minimum(inputs, own), np.maximum(inputs, own)
            kept = copies * np.minimum(rank, short) * (2 * long + short)
            if gemm.split.startswith("expert"):
                expert = expert + kept
            else:
                dense, packed = dense + kept, packed + inputs * own
    every = layer.sharded_parameters / meshes.tp + layer.replicated_parameters
    return dense + 2 * np.maximum(every - packed, 0.0), expert


def factored_elements(layer: LayerKind, meshes: Meshes) -> tuple[Floats, Floats]:
    """Rows and columns of a layer's matrices on a rank, and its vectors' elements.

    Adafactor keeps these sums in place of a second moment: ``r + c`` for a matrix of
    r x c, and every element of norms and biases. Q, K, V, gate and up count apart.

    Returns:
        Elements of dense and of expert tensors. [1], shape (meshes,)

    References:
        Shazeer and Stern 2018, arXiv 1804.04235; transformers, optimization.py,
        Adafactor: tensors of one dimension are not factored.
    """
    dense, expert, packed = (meshes.zeros() for _ in range(3))
    for gemm, inputs, outputs, copies in weight_shapes(layer, meshes):
        weights = len(split_widths(layer).get(gemm.name, (gemm.outputs,)))
        sums = copies * (weights * inputs + outputs)
        if gemm.split.startswith("expert"):
            expert = expert + sums
        else:
            dense, packed = dense + sums, packed + inputs * outputs
    every = layer.sharded_parameters / meshes.tp + layer.replicated_parameters
    return dense + np.maximum(every - packed, 0.0), expert
