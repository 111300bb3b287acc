"""The attention core, and exposed time of the collectives over tensor ranks."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypedDict

import numpy as np

from planner.cost.attention import (
    QUERY_BLOCK,
    attention_time,
    unfused_time,
)
from planner.cost.kernels import ELEMENT, NARROW, by_blocks, is_unfused
from planner.cost.meshes import Floats, Number
from planner.cost.network import collectives as wire
from planner.cost.parameters.adapters import carries, is_frozen
from planner.cost.time.columns import Context
from planner.cost.time.scans import scan_times
from planner.cost.time.sparse import index_times
from planner.hardware.reading.quantities import Column, Seconds
from planner.models.layers.blocks import (
    LatentAttention,
    LayerKind,
    Moe,
    ScanBlock,
    SideBySide,
)

GemmTimes = tuple[Floats, Floats]
"""Forward and backward of some GEMMs. [s], shape (meshes,)"""


def core_times(context: Context, layer: LayerKind) -> tuple[Floats, Floats]:
    """Forward and backward time of the attention core. [s].

    Causal work is shared evenly by the context ranks (zig-zag chunks). A scan and
    attention side by side run one after the other.
    """
    attention = layer.attention
    if isinstance(attention, ScanBlock):
        scan = scan_times(context, attention)
        if not isinstance(attention, SideBySide):
            return scan
        second = core_times(context, replace(layer, attention=attention.beside))
        return scan[0] + second[0], scan[1] + second[1]
    if is_unfused(context.pricing):
        return _score_times(context, layer)
    ahead, behind = attention_time(context.pricing, **core_case(context, layer))
    if not attention.index_flops(context.pricing.training.seq_len, causal=True):
        return ahead, behind
    index = index_times(context, attention)
    return ahead + index[0], behind + index[1]


class CoreCase(TypedDict):
    """Size of a fused attention core on a rank, as ``attention_time`` takes it."""

    span: Number
    flops: Floats
    blocks: Floats
    head_dim: int


def core_case(context: Context, layer: LayerKind) -> CoreCase:
    """Size of the fused attention core of a layer on a rank.

    Returns:
        Tokens that attend [token], forward FLOPs, blocks of queries, size of a head.
    """
    meshes, attention = context.meshes, layer.attention
    flops = context.by_span(attention.kernel_flops)
    blocks = attention.heads / meshes.tp * context.local / QUERY_BLOCK
    return {
        "span": context.rows.span,
        "flops": flops * context.local / meshes.tp,
        "blocks": np.maximum(blocks, 1.0),
        "head_dim": _query_dim(layer),
    }


def _query_dim(layer: LayerKind) -> int:
    """Size of a query head. [1]."""
    attention = layer.attention
    assert not isinstance(attention, ScanBlock)
    if isinstance(attention, LatentAttention):
        return attention.nope_dim + attention.rope_dim
    return attention.head_dim


def _score_times(context: Context, layer: LayerKind) -> tuple[Floats, Floats]:
    """Forward and backward time of the core by all explicit scores. [s]."""
    attention, pricing = layer.attention, context.pricing
    attended = partial(attention.attended, causal=False)
    keys = context.by_span(attended)
    share = context.local / context.meshes.tp
    return unfused_time(
        pricing,
        flops=context.by_span(lambda s: attention.core_flops(attended(s))) * share,
        scores=attention.heads * keys * share,
        head_dim=_query_dim(layer),
    )


def input_exchange(
    context: Context, hidden: int, *, gathers: int
) -> tuple[Floats, Floats]:
    """Time of the tensor ranks to exchange the input of a layer.

    Args:
        gathers: All-gathers and reduce-scatters of an exchange with sp. [1]

    Returns:
        One all-gather, as long as a reduce-scatter; and the exchange, one all-reduce
        without sp. [s], shape (meshes,)
    """
    message = ELEMENT * hidden * context.local
    gather = wire.all_gather_time(context.links, message, context.tensor)
    reduce = wire.all_reduce_time(context.links, message, context.tensor)
    return gather, np.where(context.meshes.sp > 0, gathers * gather, reduce)


class Exchanges(NamedTuple):
    """Exchanges of the tensor ranks around one half. [s], shape (meshes,)."""

    wide: Floats
    """All-gather of 16-bit inputs; as long as the reduce-scatter of a sum."""
    inputs: Floats
    """All-gather of inputs as their products read them."""
    gradients: Floats
    """All-gather of the gradients of a row-split product's output."""


def tensor_exchange(
    context: Context, layer: LayerKind, gemms: dict[str, GemmTimes]
) -> tuple[Floats, Floats]:
    """Exposed tensor-parallel time, forward and backward. [s].

    With sp an all-gather and a reduce-scatter around each half that is there,
    without it one all-reduce; parallel halves share one. Expert halves exchange
    over the expert tensor group instead. The backward may gather once more.

    Args:
        gemms: Forward and backward of the layer's GEMMs by half and split. [s]
    """
    meshes, profile = context.meshes, context.pricing.profile
    times = _exchanges(context, layer)
    once, back = _one_by_one(context, layer, times)
    if profile.tp_overlap:
        pieces = _in_pieces(context, layer, times, gemms)
        beside_gemms = context.pricing.takes("tp_overlap", meshes)
        once = np.where(beside_gemms, pieces[0], once)
        back = np.where(beside_gemms, pieces[1], back)
    if isinstance(layer.ffn, Moe):
        routed = _expert_tensor_exchange(context, layer)
        once, back = once + routed, back + routed
    return once, back


def _exchanges(context: Context, layer: LayerKind) -> Exchanges:
    """Times of the exchanges around a half, in the formats that they are sent in.

    TransformerEngine casts before it gathers (LayerNormLinear, and
    grad_output_preprocess of module/base.py); sums are of 16 bits. Gradients with
    scales by blocks travel by rows and by columns.
    """
    pricing = context.pricing
    wide, _ = input_exchange(context, layer.hidden, gathers=2)
    width = NARROW.get(pricing.training.precision, ELEMENT)
    if width == ELEMENT or not pricing.profile.narrow_gathers:
        return Exchanges(wide, wide, wide)

    def gathered(columns: float) -> Floats:
        message = columns * layer.hidden * context.local
        return wire.all_gather_time(context.links, message, context.tensor)

    copies = 2 if by_blocks(pricing) and not is_frozen(pricing, layer) else 1
    inputs = gathered(width)
    return Exchanges(wide, inputs, gathered(copies * width) if copies > 1 else inputs)


def _one_by_one(
    context: Context, layer: LayerKind, times: Exchanges
) -> tuple[Floats, Floats]:
    """Exposed time of exchanges before and after their GEMMs."""
    sp, profile = context.meshes.sp > 0, context.pricing.profile
    again = profile.gathered_inputs == "regathered"
    open_share = 1 - profile.hidden_regather if again else 0.0
    _, reduce = input_exchange(context, layer.hidden, gathers=1)
    shown = 1 - profile.hidden_tp
    ahead, behind = np.zeros(len(sp)), np.zeros(len(sp))
    for region in _exchanging(layer):
        gather = times.wide if _is_adapted(context, layer, region) else times.inputs
        ahead = ahead + shown * (reduce + np.where(sp, gather, 0.0))
        behind = behind + shown * (reduce + np.where(sp, times.gradients, 0.0))
        if _is_trained(context, layer, region):
            behind = behind + np.where(sp, open_share * times.inputs, 0.0)
    return ahead, behind


def _in_pieces(
    context: Context,
    layer: LayerKind,
    times: Exchanges,
    gemms: dict[str, GemmTimes],
) -> tuple[Floats, Floats]:
    """Exposed time of exchanges that run beside their GEMM in t pieces.

    A pair lasts ``max(g + kappa min(g, c), c) + min(g, c) / t``: the first piece
    has nothing to run beside. Forward, the gather runs beside the column-split
    GEMMs of a half and the scatter beside the row-split ones; backward each runs
    beside one of the two products, and a third gather beside the other. An adapter
    reads the gathered input itself, so that its gather runs beside nothing
    (TransformerEngine, LayerNormLinear: not with return_layernorm_output).
    """
    meshes, profile = context.meshes, context.pricing.profile
    again = profile.gathered_inputs == "regathered"
    products = 1 if is_frozen(context.pricing, layer) else 2

    def shown(gemm: Floats, exchange: Floats) -> Floats:
        less = np.minimum(gemm, exchange)
        both = np.maximum(gemm + profile.tp_contention * less, exchange)
        return both + less / meshes.tp - gemm

    ahead, behind = meshes.zeros(), meshes.zeros()
    for region in _exchanging(layer):
        column, row = (_of(gemms, region, split) for split in ("column", "row"))
        adapted = _is_adapted(context, layer, region)
        ahead = ahead + (times.wide if adapted else shown(column[0], times.inputs))
        ahead = ahead + shown(row[0], times.wide)
        behind = behind + shown(column[1] / products, times.wide)
        if again and _is_trained(context, layer, region):
            behind = behind + shown(column[1] / products, times.inputs)
        behind = behind + shown(row[1] / products, times.gradients)
    return ahead, behind


def _exchanging(layer: LayerKind) -> tuple[str, ...]:
    """Halves with an exchange of their own; parallel halves share one."""
    if layer.parallel:
        return ("",)
    dense = layer.ffn.shared_ffn if isinstance(layer.ffn, Moe) else layer.ffn.ffn
    there = {"attention": layer.attention.out_width > 0, "ffn": dense > 0}
    return tuple(region for region, is_there in there.items() if is_there)


def _is_trained(context: Context, layer: LayerKind, region: str) -> bool:
    """Tell if a weight gradient reads the gathered input of a half."""
    return any(
        carries(context.pricing, layer, gemm.name)
        for gemm in layer.gemms()
        if gemm.split == "column" and gemm.region.startswith(region)
    )


def _is_adapted(context: Context, layer: LayerKind, region: str) -> bool:
    """Tell if an adapter beside a frozen half reads the half's gathered input."""
    frozen = is_frozen(context.pricing, layer)
    return frozen and _is_trained(context, layer, region)


def _of(gemms: dict[str, GemmTimes], region: str, split: str) -> GemmTimes:
    """Times of the GEMMs of one half, or of both, under one tensor split. [s]."""
    chosen = [
        times
        for key, times in gemms.items()
        if key.startswith(region) and key.endswith(f" {split}")
    ]
    zero = np.zeros(1)
    return sum((c[0] for c in chosen), zero), sum((c[1] for c in chosen), zero)


def _expert_tensor_exchange(context: Context, layer: LayerKind) -> Column[Seconds]:
    """Time to gather and reduce-scatter tokens over the expert tensor group. [s]."""
    assert isinstance(layer.ffn, Moe)
    meshes = context.meshes
    copies = np.where(meshes.ep > 1, layer.ffn.top_k, 1)
    rows = context.routed * copies
    message = ELEMENT * layer.ffn.routed_width * rows
    return 2 * wire.all_gather_time(context.links, message, context.expert_tensor)
