"""Columns that context ranks exchange, and the buffers that the exchange needs."""

import numpy as np

from planner.cost.context_kinds import exchanges
from planner.cost.kernels import ELEMENT
from planner.cost.meshes import Floats, Meshes
from planner.models.layers.blocks import (
    Attention,
    CompressedAttention,
    LayerKind,
    ScanBlock,
)

DEAL_BUFFERS = 2
"""Copies of what Ulysses sends: as sent, and as received. [1]"""


def key_width(layer: LayerKind, meshes: Meshes, *, repeated: bool = False) -> Floats:
    """Columns of keys and values on all tensor ranks: ``2 max(g, t u) d``.

    No rank has less than one head. Heads are copied where the tensor ranks times the
    ranks that Ulysses deals to, ``t u``, are more than g. Latent attention sends its
    decompressed heads, compressed attention the key that all heads share.

    Args:
        repeated: Every query head has a copy, ``2 a d``. [bool]
    """
    attention = layer.attention
    assert not isinstance(attention, ScanBlock)
    if isinstance(attention, CompressedAttention):
        return np.full(len(meshes), float(attention.head_dim))
    if not isinstance(attention, Attention):
        return np.full(len(meshes), float(attention.query_width + attention.out_width))
    if not attention.heads:
        return meshes.zeros()
    fewest = attention.heads if repeated else attention.kv_heads
    heads = np.maximum(fewest, meshes.tp * meshes.ulysses)
    return np.asarray(2.0 * heads * attention.head_dim)


def dealt_width(layer: LayerKind, meshes: Meshes) -> Floats:
    """Columns that Ulysses deals out: queries, keys, values and the output.

    Returns:
        ``2 a d + 2 max(g, t u) d``. [1], shape (meshes,)
    """
    attention = layer.attention
    assert not isinstance(attention, ScanBlock)
    out = attention.out_width
    queries = out if isinstance(attention, Attention) else attention.query_width
    return queries + out + key_width(layer, meshes)


def repeated_width(layer: LayerKind, meshes: Meshes) -> Floats:
    """Columns of a scan's inputs that context ranks repeat; 0 of other layers."""
    block, ranks = layer.attention, np.asarray(meshes.tp * meshes.cp, dtype=float)
    return block.repeated_width(ranks) if isinstance(block, ScanBlock) else 0.0 * ranks


def context_buffers(
    layer: LayerKind, meshes: Meshes, *, repeated: bool = False
) -> Floats:
    """Bytes per local token that the exchange needs in a layer's backward.

    With K bytes of keys and values a token, an exchange of keys has as many K beside
    the rank's own as its record says. Ulysses has two copies of what it deals out;
    Ulysses inside a ring has the buffers of both. A scan's heads are always dealt out.

    Args:
        repeated: Keys and values travel with a copy for every query head. [bool]

    Returns:
        Memory over all tensor ranks, zero without context ranks. [B/token],
        shape (meshes,)
    """
    if isinstance(layer.attention, ScanBlock):
        block = layer.attention
        columns = block.inner_width + block.out_width + repeated_width(layer, meshes)
        return np.where(meshes.cp > 1, DEAL_BUFFERS * ELEMENT * columns, 0.0)
    ranks = meshes.cp / meshes.ulysses
    kept = meshes.zeros()
    for exchange, rows in exchanges(meshes):
        kept = np.where(rows, exchange.buffers(ranks), kept)
    keys = kept * ELEMENT * key_width(layer, meshes, repeated=repeated)
    dealt = DEAL_BUFFERS * ELEMENT * dealt_width(layer, meshes)
    return np.where(ranks > 1, keys, 0.0) + np.where(meshes.ulysses > 1, dealt, 0.0)
