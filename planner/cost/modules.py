"""Which tensors of a layer a kind of recompute keeps, drops and builds again."""

from planner.models.blocks import LatentAttention, LayerKind, Moe
from planner.specs.framework import RecomputeKind
from planner.specs.recompute import RecomputeModule, Where

ATTENTION_TENSORS = frozenset(
    {
        "attention_norm_input",
        "attention_norm_output",
        "latents",
        "qkv",
        "attention_output",
        "logsumexp",
    }
)
"""Saved tensors of the attention half; all others are the feed-forward half's."""


def is_where(where: Where, layer: LayerKind) -> bool:
    """Whether a layer is one of those that a condition names.

    Args:
        where: The condition. [text]
        layer: Kind of layer.

    Returns:
        True for `any`.
    """
    routed = isinstance(layer.ffn, Moe)
    latent = isinstance(layer.attention, LatentAttention)
    return {"any": True, "latent": latent, "routed": routed, "dense": not routed}[where]


def dropped(module: RecomputeModule, layer: LayerKind) -> frozenset[str]:
    """Saved tensors of a layer that a recomputed module does not keep.

    Args:
        module: The module. [-]
        layer: Kind of layer.

    Returns:
        Names; none where the module does nothing in this layer. [text]
    """
    there = {tensor.name for tensor in layer.saved()}
    drops = module.drops.items()
    return frozenset(t for t, where in drops if t in there and is_where(where, layer))


def at_work(kind: RecomputeKind, layer: LayerKind) -> tuple[RecomputeModule, ...]:
    """Modules of a kind that do anything in a layer.

    Args:
        kind: Kind of recompute.
        layer: Kind of layer.

    Returns:
        Modules, in the framework's order. [-]
    """
    return tuple(module for module in kind.modules if dropped(module, layer))


def kept_share(kind: RecomputeKind, layer: LayerKind, tensor: str) -> float:
    """Share of a saved tensor that stays in memory until the backward.

    Args:
        kind: Kind of recompute.
        layer: Kind of layer.
        tensor: Name of the tensor. [text]

    Returns:
        0 where a recomputed module drops it. [1]
    """
    gone = any(tensor in dropped(module, layer) for module in kind.modules)
    return 0.0 if gone else kind.keeps.get(tensor, 0.0)


def rebuilt(kind: RecomputeKind, layer: LayerKind) -> frozenset[str]:
    """Dropped tensors that exist again while their half has its backward.

    Not what the attention core drops: its kernel computes that inside itself.

    Args:
        kind: Kind of recompute.
        layer: Kind of layer.

    Returns:
        Names. [text]
    """
    sets = (dropped(module, layer) for module in kind.modules if not module.core)
    return frozenset[str]().union(*sets)


def runs_norm_again(kind: RecomputeKind, layer: LayerKind, norm: str) -> bool:
    """Whether the norm that reads a saved tensor runs again in the backward.

    Args:
        kind: Kind of recompute.
        layer: Kind of layer.
        norm: Name of its input, for example `ffn_norm_input`. [text]

    Returns:
        True where all memory-bound operators do, or where its output is dropped.
    """
    output = norm.replace("_input", "_output")
    return kind.memory_ops > 0 or output in rebuilt(kind, layer)
