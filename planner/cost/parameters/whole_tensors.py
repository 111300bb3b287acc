"""States that are divided by whole tensors, and what their owners' turns cost."""

import numpy as np

from planner.cost.meshes import Floats, Groups
from planner.cost.network.collectives import Fabric, turn_latency
from planner.cost.pricing import Pricing
from planner.models.layers.blocks import LayerKind, Mlp


def tensors_of(layer: LayerKind) -> int:
    """Weights that a layer holds, gate and up apart, and its norms.

    Leaves out biases, which travel with their weights.
    """
    dense = layer.ffn if isinstance(layer.ffn, Mlp) else layer.ffn.shared
    products = [gemm for gemm in layer.gemms() if gemm.held]
    gates = 1 if dense.gated and dense.held else 0
    return len(products) + gates + layer.norms


def owner_turns(pricing: Pricing, links: Fabric, group: Groups, tensors: int) -> Floats:
    """Latency of a unit's reductions to, or broadcasts from, the owners in turn.

    A collective with one root has only a ring, and an owner joins its own tensors::

        T = tensors min(1, n / all tensors) ring latency

    Args:
        group: Ranks that share one copy of the states. shape (meshes,)

    Returns:
        Time, zero where a stack divides states evenly. [s], shape (meshes,)

    References:
        InternEvo, solver/optimizer/hybrid_zero_optim.py: whole parameters are dealt
        to ranks, reduced to their owner and broadcast from it.
    """
    if not pricing.profile.whole_tensors:
        return np.zeros(len(group.size))
    kinds = pricing.kinds
    everything = sum(count * tensors_of(kinds[kind]) for kind, count in pricing.runs)
    turns = tensors * np.minimum(1.0, group.size / everything)
    return turns * turn_latency(links, group)
