"""Weights of a model on one GPU of a tensor-parallel group, by format."""

from collections.abc import Iterator

from planner.cost.inference.formats import WeightFacts
from planner.models.architecture import Architecture
from planner.models.layers.blocks import LayerKind, Moe


def _linears(kind: LayerKind, tp: int) -> Iterator[tuple[float, float, int]]:
    """Inputs, outputs and copies of every linear of a layer on one GPU."""
    for gemm in kind.gemms():
        if gemm.name == "router":
            continue
        expert = isinstance(kind.ffn, Moe) and gemm.split.startswith("expert")
        copies = kind.ffn.experts if expert and isinstance(kind.ffn, Moe) else 1
        column = tp if gemm.split.endswith("column") else 1
        row = tp if gemm.split.endswith("row") else 1
        yield gemm.inputs / row, gemm.outputs / column, copies


def layer_weight_bytes(kind: LayerKind, facts: WeightFacts, tp: int) -> float:
    """Bytes of one layer's weights on one GPU: linears in the format, the rest wider.

    ``sum of copies linear_bytes(K / t, N) + (P / t - linears) others / 8``, where
    replicated parameters count whole on every GPU.

    Returns:
        Memory. [B]

    Leaves out copies of key and value heads where GPUs outnumber these heads.
    """
    linears = list(_linears(kind, tp))
    layer_weights = (kind.sharded_parameters + kind.expert_parameters) / tp
    weights = sum(copies * inputs * outputs for inputs, outputs, copies in linears)
    rest = layer_weights + kind.replicated_parameters - weights
    quantised = sum(c * facts.linear_bytes(i, o) for i, o, c in linears)
    return quantised + rest * facts.others / 8


def weight_bytes(model: Architecture, facts: WeightFacts, tp: int = 1) -> float:
    """Bytes of a model's weights on one GPU. [B].

    Embedding, head, norms and biases take ``facts.others`` bits. A tied head adds
    nothing to the table of the embedding.

    Leaves out modules for multi-token prediction, which plain generation skips.

    References:
        Llama 2 in fp16 at 2 bytes a parameter: 13.5, 26.0 and 138 GB.
    """
    layers = sum(n * layer_weight_bytes(kind, facts, tp) for kind, n in model.runs)
    tables = model.vocab * model.hidden + model.head_parameters
    others = model.outer_parameters - tables
    return layers + (tables / tp + others) * facts.others / 8


def largest_linear(model: Architecture, tp: int = 1) -> float:
    """Weights of the largest linear on one GPU."""
    sizes = (i * o for kind in model.kinds for i, o, _ in _linears(kind, tp))
    return max(sizes, default=0.0)
