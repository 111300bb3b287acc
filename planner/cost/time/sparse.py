"""Time of attention over chosen keys: index scores, top-k and the core."""

from functools import partial

from planner.cost.kernels import gemm_rate
from planner.cost.meshes import Floats
from planner.cost.pricing import Pricing
from planner.cost.streaming import memory_time
from planner.cost.time.columns import Context
from planner.models.layers.blocks import AttentionBlock, CompressedAttention
from planner.models.layers.blocks import SparseLatentAttention as Sparse

SCORE_TRAFFIC = 8.0
"""Bytes that an fp32 index score moves: written, and read by the top-k. [B]"""
CHOICES = 2
"""Kernels of the index: scores and top-k. [1]"""


def index_times(context: Context, block: AttentionBlock) -> tuple[Floats, Floats]:
    """Forward and backward time of the index scores and of the choice among them.

    Every tensor rank scores all of its tokens; scores run at the rate of products.
    A score moves 8 bytes, of every key or of one in m compressed ones::

        T = F tau / (P eps) + 8 s / (2 m) tau / (eta W),   2 F tau / (P eps)

    Returns:
        Forward and backward. [s], shape (meshes,)
    """
    pricing = context.pricing
    flops = context.by_span(partial(block.index_flops, causal=True))
    product = flops * context.local / gemm_rate(pricing, narrow=False).flops
    rate = block.rate if isinstance(block, CompressedAttention) else 1
    moved = SCORE_TRAFFIC * context.rows.span / 2 / rate * context.local
    return product + memory_time(pricing, moved, CHOICES), 2 * product


def sparse_sources(pricing: Pricing) -> tuple[str, ...]:
    """Say what the time of attention over chosen keys rests on.

    Returns:
        Sentences; none for a model that attends to all keys. [text]
    """
    cores = [kind.attention for kind in pricing.kinds]
    said = []
    if any(isinstance(core, Sparse) for core in cores):
        said.append(
            "sparse attention: the cheaper of a masked dense kernel and one over "
            "latents, at the rate of dense attention; index scores at the rate of "
            "products; neither was measured"
        )
    if any(isinstance(core, CompressedAttention) for core in cores):
        said.append(
            "compressed attention: keys of the window and compressed ones at the rate "
            "of dense attention; index scores at the rate of products; neither was "
            "measured, nor any kernel of hyper-connections"
        )
    return tuple(said)
