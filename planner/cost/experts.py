"""What routed experts cost beside their products: exchanges, waits and launches."""

import numpy as np

from planner.cost import collectives as wire
from planner.cost.context import Context
from planner.cost.kernels import ELEMENT, NARROW
from planner.cost.meshes import Floats, Ints
from planner.models.blocks import LayerKind, Moe

PRODUCTS = 2, 4
"""Products of one expert, forward and backward. [1]"""
CASTS = 6, 6
"""Kernels that cast one expert's inputs below half precision: maximum, scale and
cast of two tensors each way. [1]"""
WAITING_GRAPHS = frozenset({"none", "dense"})
"""Kinds of CUDA graphs that leave the experts to the host."""


def expert_exchange(context: Context, layer: LayerKind) -> Floats:
    """Time of one dispatch and one combine on the busiest rank.

    Every rank sends ``tau_r k h`` numbers each way. Deduplicated, a token goes once
    to each rank that holds one of its experts, and crosses once to each domain.

    Args:
        context: Shared columns.
        layer: Kind of layer.

    Returns:
        Time, zero for dense layers. [s], shape (meshes,)

    References:
        DeepEP, github.com/deepseek-ai/DeepEP; HybridEP of Megatron-Core.
    """
    if not isinstance(layer.ffn, Moe):
        return np.zeros(len(context.meshes))
    profile, group = context.workload.profile, context.expert
    rows = context.local * context.sigma * profile.expert_imbalance
    token = ELEMENT * layer.hidden * rows
    if profile.expert_dispatch == "deduplicated":
        inside = token * _reached(layer.ffn, group.size)
        outside = token * _reached(layer.ffn, group.domains)
        once = wire.dispatch_time(context.links, inside, outside, group)
    else:
        once = wire.all_to_all_time(context.links, token * layer.ffn.top_k, group)
    return (1 - profile.hidden_ep) * 2 * once


def _reached(ffn: Moe, parts: Ints) -> Floats:
    """Mean number of other parts of the experts that a token's k distinct ones hit.

    ``(n - 1) (1 - prod_{i < k} (1 - (E / n) / (E - i)))`` for even routing.
    """
    missed = np.ones(len(parts))
    for drawn in range(ffn.top_k):
        left = 1.0 - (ffn.experts / parts) / (ffn.experts - drawn)
        missed = missed * np.maximum(left, 0.0)
    reached: Floats = (parts - 1) * (1.0 - missed)
    return reached


def shown_exchange(context: Context, dealt: Floats, passes: Floats) -> Floats:
    """What a dispatch and a combine each way show beside another micro-batch.

    Of an exchange ``d`` each way and passes ``f + b`` of compute, where it overlaps::

        max(2 d - (f + b), 0) / 2 + kappa min(2 d, f + b) / 2

    Args:
        context: Shared columns.
        dealt: Dispatch and combine of one pass. [s], shape (meshes,)
        passes: Forward and backward of the layer without them. [s], shape (meshes,)

    Returns:
        Exposed time of one pass. [s], shape (meshes,)

    References:
        Megatron-Core, ``overlap_moe_expert_parallel_comm``: the forward of one
        micro-batch runs beside the backward of another.
    """
    profile, group = context.workload.profile, context.expert
    if not profile.ep_overlap:
        return dealt
    both = 2 * dealt
    shown = np.maximum(both - passes, 0.0)
    shown = shown + profile.overlap_contention * np.minimum(both, passes)
    return np.where(group.intra, dealt, shown / 2)


def expert_waits(context: Context, layer: LayerKind) -> tuple[Floats, Floats]:
    """Idle time of a GPU whose host steers the experts, forward and backward.

    The host reads how many tokens each expert got, so that it cannot run ahead, and
    then launches every expert's kernels one by one: ``w + n E / ep l``.

    Args:
        context: Shared columns.
        layer: Kind of layer.

    Returns:
        Forward and backward; zero for dense layers and under graphs that hold the
        experts. [s], shape (meshes,)

    Leaves out what the GPU does of the experts' work meanwhile.

    References:
        TransformerEngine, GroupedLinear: one product and one cast per expert.
    """
    zero, profile = np.zeros(len(context.meshes)), context.workload.profile
    if not isinstance(layer.ffn, Moe) or profile.cuda_graphs not in WAITING_GRAPHS:
        return zero, zero
    narrow = context.workload.training.precision in NARROW
    each = profile.expert_launch * layer.ffn.experts / context.meshes.ep
    ahead, behind = (
        profile.expert_wait + (products + narrow * casts) * each
        for products, casts in zip(PRODUCTS, CASTS, strict=True)
    )
    return profile.latency * ahead, profile.latency * behind
