"""Tokens of routed experts that stay between a layer's forward and its recompute."""

import numpy as np

from planner.cost.kernels import ELEMENT
from planner.cost.memory.tokens import sequence_split, tokens
from planner.cost.meshes import Meshes
from planner.cost.pricing import Pricing
from planner.cost.routing import parts_reached
from planner.hardware.reading.quantities import Bytes, Column
from planner.models.layers.blocks import LayerKind, Moe
from planner.specs.layouts.recompute import RecomputeKind


def dispatched_bytes(
    pricing: Pricing, layer: LayerKind, kind: RecomputeKind, meshes: Meshes
) -> Column[Bytes]:
    """Bytes that a recomputed layer's exchange between expert ranks leaves behind.

    ``2 h tau_r (c + 1)``: tokens that other ranks sent, a copy for each of the c ranks
    that a token reaches under even routing, and sums that came back.

    Args:
        pricing: The job: whether its stack sends tokens again.

    Returns:
        Memory, zero where experts lie on one rank. [B], shape (meshes,)
    """
    ffn = layer.ffn
    stays = pricing.recipe.keeps_dispatched and kind.rebuilds_layer
    if not stays or not isinstance(ffn, Moe):
        return meshes.zeros()
    others = parts_reached(ffn, meshes.ep)
    reached = others * meshes.ep / np.maximum(meshes.ep - 1, 1)
    rows = tokens(pricing, meshes) * sequence_split(meshes)
    return (meshes.ep > 1) * ELEMENT * ffn.routed_width * rows * (reached + 1.0)
