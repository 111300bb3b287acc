"""Columns of keys and values: their share of a fused product, and their repeats."""

from planner.cost.pricing import Pricing
from planner.models.layers.blocks import Attention, LayerKind


def key_share(layer: LayerKind) -> float:
    """Share of the fused QKV width that is the keys."""
    attention = layer.attention
    if not isinstance(attention, Attention):
        return 0.0
    return attention.kv_heads / (attention.heads + 2 * attention.kv_heads)


def repeated_columns(pricing: Pricing, layer: LayerKind) -> float:
    """Columns that repeated keys and values add: ``2 (a - g) d``, else none.

    Returns:
        Columns over all tensor ranks. [1]
    """
    attention = layer.attention
    if not pricing.recipe.repeats_kv or not isinstance(attention, Attention):
        return 0.0
    return 2.0 * (attention.heads - attention.kv_heads) * attention.head_dim
