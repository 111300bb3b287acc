"""Exposed time of what context ranks exchange around the attention core."""

import numpy as np

from planner.cost.context_kinds import Moved, exchanges
from planner.cost.kernels import ELEMENT
from planner.cost.memory.context_buffers import dealt_width, key_width
from planner.cost.meshes import Floats
from planner.cost.network import collectives as wire
from planner.cost.streaming import operator_latency
from planner.cost.time.columns import Context
from planner.cost.time.exchange import core_times
from planner.models.layers.blocks import LayerKind

DEALS = 4
"""All-to-alls of Ulysses each way: queries, keys, values and the output. [1]"""


def context_exchange(context: Context, layer: LayerKind) -> tuple[Floats, Floats]:
    """Exposed context-parallel time, forward and backward.

    u neighbours deal heads out and r = c / u groups of them see each other's keys;
    a ring has u = 1 and Ulysses u = c. With K the columns of keys and values::

        Ulysses  4 all-to-alls over u ranks of (2 a d + K) 2 tau / t bytes in all
        keys     gathers of K r 2 tau / t bytes, as many each way as the kind's record
                 says: before the attention, or beside a share of it. There the excess
                 shows, contention slows the rest, a further chunk is one more kernel

    Args:
        context: Shared columns. [-]
        layer: Kind of layer. [-]

    Returns:
        Forward and backward. [s], shape (meshes,)

    References:
        Jacobs et al., arXiv:2309.14509 (Ulysses); Fang and Zhao, arXiv:2405.07719
        (Ulysses inside a ring); of keys see ``planner.cost.context_kinds``.
    """
    meshes = context.meshes
    local = ELEMENT * context.local / meshes.tp
    outer = meshes.cp // meshes.ulysses
    message = key_width(layer, meshes) * local * outer
    gather = wire.all_gather_time(context.links, message, context.ring)
    ahead, behind = core_times(context, layer)
    once = back = np.zeros(len(meshes))
    for exchange, rows in exchanges(meshes):
        once = np.where(rows, _shown(context, exchange.forward, gather, ahead), once)
        back = np.where(rows, _shown(context, exchange.backward, gather, behind), back)
    sent = dealt_width(layer, meshes) * local / DEALS
    deal = DEALS * wire.all_to_all_time(context.links, sent, context.ulysses)
    return once + deal, back + deal


def _shown(
    context: Context, moves: tuple[Moved, ...], gather: Floats, core: Floats
) -> Floats:
    """Exposed time of an exchange of keys in one pass; zero on one rank."""
    workload, ranks = context.workload, context.ring.size.astype(np.float64)
    alone = 1 - workload.profile.hidden_cp
    shown: Floats = np.zeros(len(ranks))
    for move in moves:
        moved = move.gathers * gather
        if move.beside is None:
            shown = shown + alone * moved
        else:
            shown = shown + _excess(context, moved, move.beside(ranks) * core)
    if any(move.beside for move in moves):
        shown = shown + (ranks - 1) * operator_latency(workload)
    return np.where(ranks > 1, shown, 0.0)


def _excess(context: Context, moved: Floats, core: Floats) -> Floats:
    """Time by which a transfer lengthens the attention that runs beside it. [s]."""
    kappa = context.workload.profile.overlap_contention
    return np.maximum(moved - core, 0.0) + kappa * np.minimum(moved, core)
