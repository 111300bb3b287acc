"""Time of routed experts beside their products: exchanges, waits and launches."""

import numpy as np

from planner.cost.kernels import ELEMENT, NARROW
from planner.cost.meshes import Floats
from planner.cost.network import collectives as wire
from planner.cost.routing import imbalance, parts_reached
from planner.cost.time.columns import Context
from planner.hardware.reading.quantities import Column, Seconds
from planner.models.layers.blocks import LayerKind, Moe

PRODUCTS = 2, 4
"""Products of one expert, forward and backward. [1]"""
CASTS = 6, 6
"""Kernels that cast one expert's inputs below half precision: maximum, scale and
cast of two tensors each way. [1]"""
Passes = tuple[Floats, Floats]
"""Forward and backward. [s], shape (meshes,)"""
WAITING_GRAPHS = frozenset({"none", "router", "dense"})
"""Kinds of CUDA graphs that leave the experts to the host."""


def expert_exchange(context: Context, layer: LayerKind) -> Column[Seconds]:
    """Time of one dispatch and one combine on the busiest rank.

    Every rank sends ``tau_r k h`` numbers each way: to the experts in the stack's own
    format, back in 16 bits. Deduplicated, a token goes once to each rank that holds
    one of its experts. It crosses once to each domain, from each rank to its like there
    as pairs do, and the domain's own links pass it on. Routing limited to few groups of
    experts reaches fewer ranks and domains. Sent copy by copy, limited routing moves as
    much as free routing.

    Returns:
        Time, zero for dense layers. [s], shape (meshes,)

    Leaves out the multiprocessors that copy the tokens: a limit from DeepEP's tables
    made runs of other sources worse.

    References:
        DeepEP, github.com/deepseek-ai/DeepEP; HybridEP of Megatron-Core. Four nodes of
        H100 combine 48 of 50 GB/s, where all-to-alls between two nodes reach 37
        (github:ai-dynamo/aiconfigurator@095f58a).
    """
    if not isinstance(layer.ffn, Moe):
        return context.meshes.zeros()
    profile, group = context.pricing.profile, context.expert
    rows = context.local * context.sigma * imbalance(context.pricing, context.meshes)
    time = context.meshes.zeros()
    for width in (profile.dispatch_bytes, ELEMENT):
        token = width * layer.ffn.routed_width
        if profile.expert_dispatch == "deduplicated":
            time = time + _once_each(context, layer.ffn, rows, token)
        else:
            copies = token * rows * layer.ffn.top_k
            time = time + wire.all_to_all_time(context.links, copies, group)
    return (1 - profile.hidden_ep) * time


def _once_each(
    context: Context, ffn: Moe, rows: Floats, token: float
) -> Column[Seconds]:
    """Time to send each token once to every rank and domain of its experts. [s]."""
    group, links = context.expert, context.links
    copies = rows * parts_reached(ffn, group.size)
    crossing = token * rows * parts_reached(ffn, group.domains)
    pairs = links.network.p2p_efficiency
    return wire.dispatch_time(links, token * copies, crossing, group, pairs)


def shown_exchange(
    context: Context, dealt: Column[Seconds], passes: Column[Seconds]
) -> Column[Seconds]:
    """Exposed time of a dispatch and a combine each way beside another micro-batch.

    Of an exchange ``d`` each way and passes ``f + b`` of compute, where it overlaps::

        max(2 d - (f + b), 0) / 2 + kappa min(2 d, f + b) / 2

    Args:
        passes: Forward and backward without exchanges. [s], shape (meshes,)

    References:
        Megatron-Core, ``overlap_moe_expert_parallel_comm``: the forward of one
        micro-batch runs beside the backward of another.
    """
    profile = context.pricing.profile
    if not profile.ep_overlap:
        return dealt
    both = 2 * dealt
    shown = np.maximum(both - passes, 0.0)
    shown = shown + profile.overlap_contention * np.minimum(both, passes)
    hides = context.pricing.takes("ep_overlap", context.meshes)
    return np.where(hides, shown / 2, dealt)


def expert_waits(
    context: Context, layer: LayerKind, products: Passes, casts: Passes
) -> Passes:
    """Idle time of a GPU whose host steers the experts, forward and backward.

    The host reads how many tokens each expert got, so that it cannot run ahead. Then
    it launches every expert's casts and products one by one, which hides behind the
    kernels launched::

        w + max(n E / ep l - products, 0) + max(m E / ep l - casts, 0)

    Args:
        products: Time of all products of the experts, forward and backward. [s]
        casts: Time of all casts of the experts' inputs, forward and backward. [s]

    Returns:
        Forward and backward; zero for dense layers and under graphs that hold the
        experts. [s], shape (meshes,)

    References:
        TransformerEngine, GroupedLinear: one product and one cast per expert.
    """
    zero, profile = context.meshes.zeros(), context.pricing.profile
    if not isinstance(layer.ffn, Moe) or profile.cuda_graphs not in WAITING_GRAPHS:
        return zero, zero
    narrow = 1 if context.pricing.training.precision in NARROW else 0
    experts = layer.ffn.experts / context.meshes.ep
    launch = profile.latency * profile.expert_launch * experts
    ahead, behind = (
        profile.latency * profile.expert_wait
        + shown_launches(PRODUCTS[way] * launch, products[way])
        + shown_launches(narrow * CASTS[way] * launch, casts[way])
        for way in (0, 1)
    )
    return ahead, behind


def shown_launches(
    launches: Column[Seconds], kernels: Column[Seconds]
) -> Column[Seconds]:
    """Idle time of a GPU while the host launches: ``max(launches - kernels, 0)``."""
    shown: Floats = np.maximum(launches - kernels, 0.0)
    return shown
