"""Peak memory of one forward pass: one layer of a chunk, or the logits."""

from planner.cost.inference.formats import RuntimeFacts
from planner.models.architecture import Architecture
from planner.models.layers.blocks import LayerKind
from planner.models.layers.parts import SavedTensor

FP32 = 4
"""Bytes of a 32-bit number. [B]"""


def layer_bytes(kind: LayerKind, rows: int, element: float, tp: int = 1) -> float:
    """Bytes of one layer's activations while it computes; no other layer keeps any.

    The residual stream and the larger half of the layer. One half is attention: norm
    output, projections and result. The other half is the feed-forward block.

    Args:
        rows: Tokens of the pass. [token]
        element: Bytes of a number that is computed with. [B]

    Returns:
        Memory. [B]

    Leaves out the matrix of scores, which flash attention never holds.
    """
    halves = {"attention": 0.0, "ffn": 0.0}
    for tensor in kind.saved():
        if tensor.kept_for != "norm":
            size = FP32 if tensor.precision == "fp32" else element
            halves[tensor.region] += _width(tensor, tp) * size
    return rows * (kind.hidden * element + max(halves.values()))


def _width(tensor: SavedTensor, tp: int) -> float:
    """Columns on one GPU: divided by tp unless only the sequence is split. [1]."""
    return tensor.width / (1 if tensor.split == "sequence" else tp)


def logit_bytes(model: Architecture, facts: RuntimeFacts, batch: int) -> float:
    """Bytes of the logits of every sequence's next token.

    Args:
        batch: Sequences. [sequence]

    Returns:
        Memory, gathered whole on every GPU. [B]
    """
    return facts.logits_bytes * batch * model.vocab


def pass_bytes(
    model: Architecture,
    facts: RuntimeFacts,
    *,
    rows: int,
    batch: int,
    element: float,
    expanded: float,
    tp: int = 1,
) -> float:
    """Most bytes that a forward pass holds beside weights and cache. [B].

    ``max over layers (layer + expanded weight), logits``

    Args:
        rows: Tokens of the pass. [token]
        batch: Sequences that get a next token. [sequence]
        element: Bytes of a number that is computed with. [B]
        expanded: Weight of a quantised linear, widened to multiply with. [B]
    """
    layers = max(layer_bytes(kind, rows, element, tp) for kind in model.kinds)
    return max(layers + expanded, logit_bytes(model, facts, batch))
