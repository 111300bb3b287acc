"""Exposed time of what context ranks exchange around the attention core."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from planner.cost.context_kinds import Moved, exchanges
from planner.cost.kernels import ELEMENT
from planner.cost.memory.context_buffers import dealt_width, key_width
from planner.cost.meshes import Floats
from planner.cost.network import collectives as wire
from planner.cost.streaming import memory_time, operator_latency
from planner.cost.time.columns import Context
from planner.cost.time.contention import lost_share
from planner.cost.time.exchange import core_times
from planner.cost.time.scans import dealt_times
from planner.hardware.reading.quantities import Column, Seconds
from planner.models.layers.blocks import (
    Attention,
    LayerKind,
    ScanBlock,
    SideBySide,
)

DEALS = 4
"""All-to-alls of Ulysses each way: queries, keys, values and the output. [1]"""


class Gather(NamedTuple):
    """A gather of all keys of the context ranks. shape (meshes,)."""

    time: Column[Seconds]
    """Time alone. [s]"""
    lost: Floats
    """Compute lost per second of the gather beside it. [1]"""


def context_exchange(context: Context, layer: LayerKind) -> tuple[Floats, Floats]:
    """Exposed context-parallel time, forward and backward. [s].

    u neighbours deal heads out and r = c / u groups of them see each other's keys;
    a ring has u = 1 and Ulysses u = c. With K the columns of keys and values::

        Ulysses  4 all-to-alls over u ranks of (2 a d + K) 2 tau / t bytes in all
        keys     gathers of K r 2 tau / t bytes, as many each way as the kind's record
                 says: before the attention, or beside a share of it. There the excess
                 shows, contention slows the rest, a further chunk is one more kernel

    A stack may add the results of a ring's chunks up in kernels of their own: r - 1
    outputs forward, r gradients of queries, keys and values backward.

    References:
        Jacobs et al., arXiv:2309.14509 (Ulysses); Fang and Zhao, arXiv:2405.07719
        (Ulysses inside a ring); of keys see ``planner.cost.context_kinds``.
    """
    meshes = context.meshes
    if isinstance(layer.attention, SideBySide):
        scan = dealt_times(context, layer.attention)
        second = replace(layer, attention=layer.attention.beside)
        ahead, behind = context_exchange(context, second)
        return scan[0] + ahead, scan[1] + behind
    if isinstance(layer.attention, ScanBlock):
        return dealt_times(context, layer.attention)
    local = ELEMENT * context.local / meshes.tp
    outer = meshes.cp // meshes.ulysses
    keys = key_width(layer, meshes, repeated=context.pricing.recipe.cp_repeats_kv)
    message = keys * local * outer
    time = wire.all_gather_time(context.links, message, context.ring)
    gather = Gather(time, lost_share(context.pricing, message, time))
    ahead, behind = core_times(context, layer)
    once = back = meshes.zeros()
    added = _sums(context, layer, keys)
    for exchange, rows in exchanges(meshes):
        more = added if exchange.sums else (0.0, 0.0)
        shown = _shown(context, exchange.forward, gather, ahead) + more[0]
        once = np.where(rows, shown, once)
        shown = _shown(context, exchange.backward, gather, behind) + more[1]
        back = np.where(rows, shown, back)
    sent = dealt_width(layer, meshes) * local / DEALS
    deal = DEALS * wire.all_to_all_time(context.links, sent, context.ulysses)
    return once + deal, back + deal


def ring_chunks(context: Context, layer: LayerKind) -> Floats:
    """Number of chunks of keys that a rank attends to one by one.

    Returns:
        The ranks of a ring; zero without one. [1], shape (meshes,)
    """
    ranks = context.ring.size.astype(np.float64)
    chunks = np.zeros(len(ranks))
    if isinstance(layer.attention, ScanBlock):
        return chunks
    for exchange, rows in exchanges(context.meshes):
        chunks = np.where(rows & (ranks > 1) & exchange.sums, ranks, chunks)
    return chunks


def _shown(
    context: Context, moves: tuple[Moved, ...], gather: Gather, core: Floats
) -> Floats:
    """Exposed time of an exchange of keys in one pass; zero on one rank."""
    pricing, ranks = context.pricing, context.ring.size.astype(np.float64)
    alone = 1 - pricing.profile.hidden_cp
    shown: Floats = np.zeros(len(ranks))
    for move in moves:
        moved = move.gathers * gather.time
        if move.core_share is None:
            shown = shown + alone * moved
        else:
            shown = shown + _excess(moved, move.core_share(ranks) * core, gather.lost)
    if any(move.core_share for move in moves):
        shown = shown + (ranks - 1) * operator_latency(pricing)
    return np.where(ranks > 1, shown, 0.0)


def _sums(context: Context, layer: LayerKind, keys: Floats) -> tuple[Floats, Floats]:
    """Time to add up the results of all chunks; zero on one rank. [s]."""
    ranks, attention = context.ring.size.astype(np.float64), layer.attention
    out, queries = attention.out_width, attention.out_width
    assert not isinstance(attention, ScanBlock)
    if not isinstance(attention, Attention):
        queries = attention.query_width
    moved = context.pricing.profile.cp_sum_bytes * context.local / context.meshes.tp
    ahead = memory_time(context.pricing, moved * (ranks - 1) * out, 0)
    behind = memory_time(context.pricing, moved * ranks * (queries + keys), 0)
    return np.where(ranks > 1, ahead, 0.0), np.where(ranks > 1, behind, 0.0)


def _excess(moved: Floats, core: Floats, lost: Floats) -> Column[Seconds]:
    """Time by which a transfer lengthens the attention that runs beside it. [s]."""
    return np.maximum(moved - core, 0.0) + lost * np.minimum(moved, core)
