"""Exposed time of what context ranks exchange around the attention core."""

import numpy as np

from planner.cost.kernels import ELEMENT, operator_latency
from planner.cost.memory.context_buffers import WHOLE, dealt_width, key_width
from planner.cost.meshes import Floats
from planner.cost.network import collectives as wire
from planner.cost.time.columns import Context
from planner.cost.time.exchange import core_times
from planner.models.layers.blocks import LayerKind

DEALS = 4
"""All-to-alls of Ulysses each way: queries, keys, values and the output. [1]"""
RING_BACK = 3
"""Bytes of a ring's backward over those of its forward: keys and values again, and
their gradients in fp32. [1]"""
GATHER_BACK = 2
"""Bytes of an all-gather's backward over those of its forward: keys and values
again, and their gradients scattered. [1]"""


def context_exchange(context: Context, layer: LayerKind) -> tuple[Floats, Floats]:
    """Exposed context-parallel time, forward and backward.

    u neighbours deal heads out and r = c / u groups of them see each other's keys;
    a ring has u = 1 and Ulysses u = c. With K the columns of keys and values::

        Ulysses     4 all-to-alls over u ranks of (2 a d + K) 2 tau / t bytes in all
        ring        (r - 1) K 2 tau / t bytes, three times that backward, beside the
                    attention of the chunks already there: the excess shows,
                    contention slows the rest, a further chunk is one more kernel
        all-gather  K 2 tau c / t gathered; backward again, and gradients scattered

    Args:
        context: Shared columns. [-]
        layer: Kind of layer. [-]

    Returns:
        Forward and backward. [s], shape (meshes,)

    References:
        Liu et al., arXiv:2310.01889 (ring); Llama 3, arXiv:2407.21783, section 3.3.2
        (all-gather); Jacobs et al., arXiv:2309.14509 (Ulysses); Fang and Zhao,
        arXiv:2405.07719 (Ulysses inside a ring).
    """
    meshes = context.meshes
    local = ELEMENT * context.local / meshes.tp
    outer = meshes.cp // meshes.ulysses
    message = key_width(layer, meshes) * local * outer
    gather = wire.all_gather_time(context.links, message, context.ring)
    ahead, behind = core_times(context, layer)
    shown = 1 - context.workload.profile.hidden_cp
    whole = meshes.cp_kind == WHOLE
    once = np.where(whole, shown * gather, _beside(context, gather, ahead))
    moved = RING_BACK * gather
    back = np.where(
        whole, shown * GATHER_BACK * gather, _beside(context, moved, behind)
    )
    sent = dealt_width(layer, meshes) * local / DEALS
    deal = DEALS * wire.all_to_all_time(context.links, sent, context.ulysses)
    return once + deal, back + deal


def _beside(context: Context, moved: Floats, core: Floats) -> Floats:
    """Exposed time of a ring exchange that runs beside the attention core."""
    workload, ranks = context.workload, context.ring.size
    kappa = workload.profile.overlap_contention
    launches = (ranks - 1) * operator_latency(workload)
    shown = np.maximum(moved - core, 0.0) + kappa * np.minimum(moved, core)
    return np.where(ranks > 1, shown + launches, 0.0)
