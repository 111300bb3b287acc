"""Cached keys and values: bytes per token by attention family, and tokens kept."""

from planner.cost.inference.formats import CacheFacts
from planner.models.architecture import Architecture
from planner.models.layers.blocks import (
    CompressedAttention,
    LatentAttention,
    LayerKind,
    ScanBlock,
    SideBySide,
    SparseLatentAttention,
)

FP32, HALF = 4, 2
"""Bytes of a number of a state, and of an input that a convolution reads again. [B]"""


def token_bytes(kind: LayerKind, facts: CacheFacts, tp: int = 1) -> float:
    """Bytes that one layer caches of one token, on one GPU. [B].

    Grouped queries: ``2 max(g / t, 1) d`` numbers, a key and a value for each head.
    Latent attention: ``r_kv + d_r``, replicated on every GPU. No attention: none. An
    indexer: one key of ``d_i`` more. Compressed attention: one key of m tokens, and one
    of the index. Keys of an earlier layer, or a scan: none.

    Leaves out engines that cache latent attention decompressed, as transformers does.

    References:
        DeepSeek-V2, arXiv 2405.04434, section 2.1.3; Ainslie et al. 2023,
        arXiv 2305.13245; Llama 3 8B: 32 layers of 2 x 8 x 128 in 16 bits, 128 KiB.
    """
    attention = kind.attention
    if isinstance(attention, SideBySide):
        attention = attention.beside
    if isinstance(attention, ScanBlock):
        return 0.0
    if isinstance(attention, CompressedAttention):
        width = attention.head_dim + attention.index_dim
        return facts.vector_bytes(width) / (attention.rate or 1)
    if isinstance(attention, SparseLatentAttention):
        index = facts.vector_bytes(attention.index_dim)
        return index + facts.vector_bytes(attention.kv_rank + attention.rope_dim)
    if isinstance(attention, LatentAttention):
        return facts.vector_bytes(attention.kv_rank + attention.rope_dim)
    if not attention.key_matrices:
        return 0.0
    heads = max(attention.kv_heads / tp, 1.0)
    return 2.0 * heads * facts.vector_bytes(attention.head_dim)


def cached_tokens(kind: LayerKind, context: int) -> int:
    """Tokens of a sequence that one layer keeps: all, or those of its window.

    Args:
        context: Tokens of the sequence. [token]

    Returns:
        ``min(window, context)``; all where others than the window's are compressed.
        [token]
    """
    attention = kind.attention
    if isinstance(attention, CompressedAttention) and attention.rate:
        return context
    window = attention.window
    return context if window is None else min(window, context)


def state_bytes(kind: LayerKind, tp: int = 1) -> float:
    """Bytes of the states that one layer keeps of a sequence, on one GPU.

    A scan keeps its state in fp32, and in half precision the last tokens that its
    convolution reads. Compressed attention keeps the keys of its window beside.

    Returns:
        Memory, zero for layers with keys. [B]
    """
    attention = kind.attention
    if isinstance(attention, CompressedAttention) and attention.rate:
        return float(HALF * attention.window * attention.head_dim)
    if not isinstance(attention, ScanBlock):
        return 0.0
    tail = HALF * (attention.conv - 1) * attention.conv_width
    return (FP32 * attention.state_width + tail) / tp


def cache_bytes(
    model: Architecture, facts: CacheFacts, *, batch: int, context: int, tp: int = 1
) -> float:
    """Bytes of all cached keys, values and states on one GPU. [B].

    Args:
        batch: Sequences in flight. [sequence]
        context: Tokens of each sequence. [token]

    Leaves out the last block of a paged cache that is not full.
    """
    return batch * sum(
        layers
        * (
            cached_tokens(kind, context) * token_bytes(kind, facts, tp)
            + state_bytes(kind, tp)
        )
        for kind, layers in model.runs
    )
