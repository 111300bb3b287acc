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
    """Every linear with its inputs, outputs and copies on a rank.

    Args:
        layer: Kind of layer. [-]
        meshes: Any meshes. [-]

    Yields:
        The GEMM; its inputs and outputs; experts on the rank, 1 for others. [1],
        shape (meshes,)
    """
    one = np.ones(len(meshes))
    for gemm in layer.gemms():
        expert = gemm.split.startswith("expert")
        ways = meshes.etp if expert else meshes.tp
        column = ways if gemm.split.endswith("column") else one
        row = ways if gemm.split.endswith("row") else one
        copies: Floats | float = 1.0
        if expert:
            assert isinstance(layer.ffn, Moe)
            copies = layer.ffn.experts / meshes.ep
        yield gemm, gemm.inputs / row, gemm.outputs / column, copies


def factored_elements(layer: LayerKind, meshes: Meshes) -> tuple[Floats, Floats]:
    """Rows and columns of a layer's matrices on a rank, and its vectors' elements.

    Adafactor keeps these sums in place of a second moment: ``r + c`` for a matrix of
    r x c, and every element of norms and biases. Q, K, V, gate and up count apart.

    Args:
        layer: Kind of layer. [-]
        meshes: Any meshes. [-]

    Returns:
        Elements of dense and of expert tensors. [1], shape (meshes,)

    References:
        Shazeer and Stern 2018, arXiv 1804.04235; transformers, optimization.py,
        Adafactor: tensors of one dimension are not factored.
    """
    dense, expert, held = (np.zeros(len(meshes)) for _ in range(3))
    for gemm, inputs, outputs, copies in weight_shapes(layer, meshes):
        weights = len(split_widths(layer).get(gemm.name, (gemm.outputs,)))
        sums = copies * (weights * inputs + outputs)
        if gemm.split.startswith("expert"):
            expert = expert + sums
        else:
            dense, held = dense + sums, held + inputs * outputs
    every = layer.sharded_parameters / meshes.tp + layer.replicated_parameters
    return dense + np.maximum(every - held, 0.0), expert
