"""Memory-bound operators of a layer: the bytes they move and the time they take."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from planner.cost.meshes import Floats
from planner.cost.streaming import memory_time
from planner.cost.time.columns import Context
from planner.hardware.reading.quantities import Bytes, Column
from planner.models.layers.blocks import Attention, LayerKind, Mlp, Moe, ScanBlock

NORM_AGAIN = 4.0
"""Bytes per element of a norm alone, without the residual that is added. [B]"""


class Operator(NamedTuple):
    """One memory-bound operator of a layer."""

    name: str
    split: str
    """Split of the tokens or columns: `sequence`, `tensor` or `expert`. [text]"""
    forward: float
    """Bytes that the forward moves. [B/token]"""
    backward: float


def operators(layer: LayerKind) -> Iterator[Operator]:
    """Fused memory-bound operators of a layer with the bytes that they move.

    Residual-add and norm: 8 h forward, 10 h backward for each norm; rotation
    4 (a+g) d; SwiGLU 6 f and 10 f, GeLU 4 f and 6 f; permute and unpermute
    4 h (1 + k). A gate of attention's output: 6 a d and 10 a d. Beside a scan: the
    convolution reads and writes its columns, backward reads twice and writes; the gated
    norm as SwiGLU. Copies of the stream, or a layer's own inputs: what they move, and
    twice that.

    Yields:
        Operators, within a split in the order in which they add up. [B/token]
    """
    h, ffn = layer.hidden, layer.ffn
    dense = ffn if isinstance(ffn, Mlp) else ffn.shared
    ahead, behind = (6.0, 10.0) if dense.gated else (4.0, 6.0)
    yield Operator("norms", "sequence", 8.0 * h * layer.norms, 10.0 * h * layer.norms)
    if layer.stream is not None:
        moved = 2.0 * layer.stream.traffic
        yield Operator("stream", "sequence", moved, 2.0 * moved)
    yield from _beside_core(layer)
    yield Operator("activation", "tensor", ahead * dense.ffn, behind * dense.ffn)
    if isinstance(ffn, Mlp):
        return
    permute = 4.0 * ffn.routed_width * (1 + ffn.top_k)
    yield Operator("permute", "sequence", permute, permute)
    rows = ahead * ffn.ffn * ffn.top_k, behind * ffn.ffn * ffn.top_k
    yield Operator("expert_activation", "expert", *rows)


def _beside_core(layer: LayerKind) -> Iterator[Operator]:
    """Operators between the projections of attention and its core."""
    attention = layer.attention
    if isinstance(attention, ScanBlock):
        mixed, out = attention.conv_width, attention.out_width
        yield Operator("convolution", "tensor", 4.0 * mixed, 6.0 * mixed)
        yield Operator("gated_norm", "tensor", 6.0 * out, 10.0 * out)
        return
    rotated = 2 * attention.heads
    if isinstance(attention, Attention):
        rotated = attention.heads + attention.kv_heads
    rope = 4.0 * rotated * (attention.out_width / attention.heads)
    yield Operator("rotation", "tensor", rope, rope)
    if isinstance(attention, Attention) and attention.output_gate:
        width = attention.gate_width
        yield Operator("output_gate", "tensor", 6.0 * width, 10.0 * width)


def shares(context: Context) -> dict[str, Floats]:
    """Tokens, or share of the columns of all tokens, on a rank for every split.

    Returns:
        Tokens by split. [token], shape (meshes,)
    """
    meshes = context.meshes
    return {
        "sequence": context.local * context.sigma,
        "tensor": context.local / meshes.tp,
        "expert": context.routed / meshes.etp,
    }


def operator_times(context: Context, layer: LayerKind) -> tuple[Floats, Floats]:
    """Forward and backward time of norms, rotations, activations, permutes. [s]."""
    share, profile = shares(context), context.pricing.profile
    moved: dict[str, tuple[float, float]] = {}
    for operator in operators(layer):
        ahead, behind = moved.get(operator.split, (0.0, 0.0))
        moved[operator.split] = ahead + operator.forward, behind + operator.backward
    sorting = sorting_bytes(context, layer)
    forward = np.sum([moved[key][0] * share[key] for key in moved], axis=0) + sorting
    backward = np.sum([moved[key][1] * share[key] for key in moved], axis=0) + sorting
    return (
        memory_time(context.pricing, forward, profile.forward_operators),
        memory_time(context.pricing, backward, profile.backward_operators),
    )


def sorting_bytes(context: Context, layer: LayerKind) -> Column[Bytes]:
    """Bytes that sort all received copies of tokens by expert, and back: 8 h k.

    An all-to-all leaves the copies in the order of their senders. Several experts of a
    rank then need a second permutation before their products and one after.

    References:
        Megatron-Core, MoEAlltoAllTokenDispatcher: sort_chunks_by_idxs if
        num_local_experts > 1. DeepEP and HybridEP send tokens without that step.
    """
    ffn, meshes = layer.ffn, context.meshes
    dispatch = context.pricing.profile.expert_dispatch
    if not isinstance(ffn, Moe) or dispatch != "all-to-all":
        return meshes.zeros()
    several = (meshes.ep > 1) & (ffn.experts > meshes.ep)
    copies = ffn.top_k * context.routed
    return np.where(several, 8.0 * ffn.routed_width * copies, 0.0)
