"""Time of one layer on one rank, by cause, for every mesh at once."""

from dataclasses import dataclass, field

import numpy as np

from planner.cost import collectives as wire
from planner.cost import meshes as axes
from planner.cost.activations import (
    expert_tokens,
    key_share,
    sequence_split,
    tokens,
)
from planner.cost.collectives import Fabric
from planner.cost.kernels import (
    ELEMENT,
    QUERY_BLOCK,
    attention_time,
    gemm_rate,
    gemm_time,
    memory_time,
)
from planner.cost.meshes import CP_KINDS, Floats, Groups, Meshes
from planner.cost.workload import Workload
from planner.models.blocks import Attention, LatentAttention, LayerKind, Mlp, Moe
from planner.models.parts import Gemm
from planner.specs.framework import RecomputeKind

CAUSES = ("compute", "tp_comm", "cp_comm", "ep_comm", "dp_comm", "recompute", "other")
"""Causes of exposed time inside a layer, in the words of the estimate."""


@dataclass(frozen=True)
class Parts:
    """Time by cause; each a column of shape (meshes,). [s]."""

    by_cause: dict[str, Floats] = field(default_factory=dict)

    def plus(self, cause: str, time: Floats) -> "Parts":
        """Add time under one cause.

        Args:
            cause: One of ``CAUSES``. [text]
            time: Exposed time. [s], shape (meshes,)

        Returns:
            New parts.
        """
        assert cause in CAUSES
        return Parts({**self.by_cause, cause: self.by_cause.get(cause, 0.0) + time})

    @property
    def total(self) -> Floats:
        """Sum over the causes. [s], shape (meshes,)."""
        total: Floats = np.sum(list(self.by_cause.values()), axis=0)
        return total


@dataclass(frozen=True)
class Context:
    """What every layer kind shares: fabrics, groups, token counts."""

    workload: Workload
    meshes: Meshes
    links: Fabric
    tensor: Groups
    context: Groups
    expert: Groups
    expert_tensor: Groups

    @classmethod
    def of(cls, workload: Workload, meshes: Meshes) -> "Context":
        """Look up groups and rates once for all layer kinds.

        Args:
            workload: The job.
            meshes: Any meshes.

        Returns:
            The shared context.
        """
        topology = workload.topology
        return cls(
            workload,
            meshes,
            wire.fabric(workload),
            axes.tensor_groups(topology, meshes),
            axes.context_groups(topology, meshes),
            axes.expert_groups(topology, meshes),
            axes.expert_tensor_groups(topology, meshes),
        )

    @property
    def local(self) -> Floats:
        """Tokens of a micro-batch before tensor splits. [token]."""
        return tokens(self.workload, self.meshes)

    @property
    def sigma(self) -> Floats:
        """Share of the tokens outside tensor regions. [1]."""
        return sequence_split(self.meshes)


def layer_time(
    context: Context, layer: LayerKind, kind: RecomputeKind
) -> tuple[Parts, Parts]:
    """Forward and backward time of one layer under a kind of recompute.

    GEMMs, attention core and memory-bound operators add up; collectives add
    what is not hidden; recompute adds its share of the forward.

    Args:
        context: Shared columns.
        layer: Kind of layer.
        kind: Kind of recompute.

    Returns:
        Forward and backward, by cause. [s], shape (meshes,)
    """
    forward, backward, again = Parts(), Parts(), np.zeros(len(context.meshes))
    for gemm in layer.gemms():
        ahead, behind = gemm_times(context, layer, gemm)
        forward, backward = (
            forward.plus("compute", ahead),
            backward.plus("compute", behind),
        )
        again = again + _gemm_again(kind, layer, gemm) * ahead
    ahead, behind = core_times(context, layer)
    again = again + kind.core * ahead
    forward = forward.plus("compute", ahead)
    backward = backward.plus("compute", behind)
    ahead, behind = operator_times(context, layer)
    again = again + kind.memory_ops * ahead
    forward = forward.plus("compute", ahead)
    backward = backward.plus("compute", behind)
    forward, backward, repeated = _communicate(context, layer, forward, backward)
    again = again + kind.collectives * repeated
    return forward, backward.plus("recompute", again)


def _gemm_again(kind: RecomputeKind, layer: LayerKind, gemm: Gemm) -> float:
    """Share of a GEMM's forward that the recompute kind runs again."""
    share = kind.gemms.get(gemm.name, kind.gemms.get("*", 0.0))
    if kind.drops_key and gemm.name == "qkv":
        return key_share(layer)
    return share


def gemm_times(context: Context, layer: LayerKind, gemm: Gemm) -> tuple[Floats, Floats]:
    """Forward and backward (input and weight gradient) time of one GEMM.

    Args:
        context: Shared columns.
        layer: The layer, for its experts.
        gemm: Shape and split.

    Returns:
        Forward and backward. [s], shape (meshes,)
    """
    meshes = context.meshes
    if gemm.split.startswith("expert"):
        return _expert_times(context, layer, gemm)
    one = np.ones(len(meshes))
    column = meshes.tp if gemm.split == "column" else one
    row = meshes.tp if gemm.split == "row" else one
    rows = context.local
    if gemm.split == "replicated":
        rows = rows * context.sigma
    outputs, inputs = gemm.outputs / column, gemm.inputs / row
    rate = gemm_rate(context.workload)
    forward = gemm_time(rate, rows, outputs, inputs)
    backward = gemm_time(rate, rows, inputs, outputs)
    return forward, backward + gemm_time(rate, inputs, outputs, rows, wgrad=True)


def _expert_times(
    context: Context, layer: LayerKind, gemm: Gemm
) -> tuple[Floats, Floats]:
    """The same for routed experts: one grouped launch over the local experts.

    Work and activations are those of all copies; the weights of every local
    expert are read once.
    """
    assert isinstance(layer.ffn, Moe)
    meshes = context.meshes
    local_experts = layer.ffn.experts / meshes.ep
    copies = expert_tokens(context.workload, meshes) * gemm.calls
    one = np.ones(len(meshes))
    column = meshes.etp if gemm.split == "expert-column" else one
    row = meshes.etp if gemm.split == "expert-row" else one
    outputs, inputs = gemm.outputs / column, gemm.inputs / row
    rate = gemm_rate(context.workload, grouped=True)
    weights = ELEMENT * (local_experts - 1) * outputs * inputs / rate.bandwidth
    forward = gemm_time(rate, copies, outputs, inputs) + weights
    backward = gemm_time(rate, copies, inputs, outputs) + weights
    gradient = gemm_time(rate, inputs, outputs, copies, wgrad=True)
    return forward, backward + gradient + 4 * weights


def core_times(context: Context, layer: LayerKind) -> tuple[Floats, Floats]:
    """Forward and backward time of the attention core.

    Causal work is shared evenly by the context ranks (zig-zag chunks).

    Args:
        context: Shared columns.
        layer: Kind of layer.

    Returns:
        Forward and backward. [s], shape (meshes,)
    """
    meshes, attention = context.meshes, layer.attention
    keys = attention.attended(context.workload.training.seq_len, causal=True)
    flops = attention.core_flops(keys) * context.local / meshes.tp
    blocks = attention.heads / meshes.tp * context.local / QUERY_BLOCK
    head = (
        attention.nope_dim + attention.rope_dim
        if isinstance(attention, LatentAttention)
        else attention.head_dim
    )
    return attention_time(
        context.workload,
        flops=flops,
        query_blocks=np.maximum(blocks, 1.0),
        head_dim=head,
    )


def operator_bytes(layer: LayerKind) -> dict[str, tuple[float, float]]:
    """Bytes per token that fused memory-bound operators move, by split.

    Two residual-add + norm: 8 h forward, 10 h backward each pair; rotation
    4 (a+g) d; SwiGLU 6 f and 10 f, GeLU 4 f and 6 f; permute and unpermute
    4 h (1 + k).

    Args:
        layer: Kind of layer.

    Returns:
        ``sequence``, ``tensor`` and ``expert`` to (forward, backward). [B/token]
    """
    h, attention, ffn = layer.hidden, layer.attention, layer.ffn
    rotated = (
        attention.heads + attention.kv_heads
        if isinstance(attention, Attention)
        else 2 * attention.heads
    )
    width = attention.out_width / attention.heads
    rope = 4.0 * rotated * width
    dense = ffn if isinstance(ffn, Mlp) else ffn.shared
    ahead, behind = (6.0, 10.0) if dense.gated else (4.0, 6.0)
    tensor = (rope + ahead * dense.ffn, rope + behind * dense.ffn)
    if isinstance(ffn, Mlp):
        return {"sequence": (8.0 * h, 10.0 * h), "tensor": tensor}
    permute = 4.0 * h * (1 + ffn.top_k)
    return {
        "sequence": (8.0 * h + permute, 10.0 * h + permute),
        "tensor": tensor,
        "expert": (ahead * ffn.ffn * ffn.top_k, behind * ffn.ffn * ffn.top_k),
    }


def operator_times(context: Context, layer: LayerKind) -> tuple[Floats, Floats]:
    """Forward and backward time of norms, rotations, activations, permutes.

    Args:
        context: Shared columns.
        layer: Kind of layer.

    Returns:
        Forward and backward. [s], shape (meshes,)
    """
    meshes, profile = context.meshes, context.workload.profile
    share = {
        "sequence": context.local * context.sigma,
        "tensor": context.local / meshes.tp,
        "expert": expert_tokens(context.workload, meshes) / meshes.etp,
    }
    moved = operator_bytes(layer)
    ahead = np.sum([moved[key][0] * share[key] for key in moved], axis=0)
    behind = np.sum([moved[key][1] * share[key] for key in moved], axis=0)
    return (
        memory_time(context.workload, ahead, profile.forward_operators),
        memory_time(context.workload, behind, profile.backward_operators),
    )


def _communicate(
    context: Context, layer: LayerKind, forward: Parts, backward: Parts
) -> tuple[Parts, Parts, Floats]:
    """Add exposed collectives; also what a full recompute would repeat."""
    once, regather = tensor_exchange(context, layer)
    ahead, behind = context_exchange(context, layer)
    dealt = expert_exchange(context, layer)
    forward = forward.plus("tp_comm", once).plus("cp_comm", ahead)
    backward = backward.plus("tp_comm", once + regather).plus("cp_comm", behind)
    forward = forward.plus("ep_comm", dealt)
    return forward, backward.plus("ep_comm", dealt), once + ahead + dealt


def tensor_exchange(context: Context, layer: LayerKind) -> tuple[Floats, Floats]:
    """Exposed tensor-parallel time of one pass, and of the backward's regather.

    With sp an all-gather and a reduce-scatter around each half, without it one
    all-reduce. Expert halves exchange over the expert tensor group instead.

    Args:
        context: Shared columns.
        layer: Kind of layer.

    Returns:
        One pass, and the extra gathers of the backward. [s], shape (meshes,)
    """
    meshes, profile, links = context.meshes, context.workload.profile, context.links
    message = ELEMENT * layer.hidden * context.local
    gather = wire.all_gather_time(links, message, context.tensor)
    reduce = wire.all_reduce_time(links, message, context.tensor)
    half = np.where(meshes.sp > 0, 2 * gather, reduce)
    routed = isinstance(layer.ffn, Moe)
    halves = 1 if isinstance(layer.ffn, Moe) and not layer.ffn.shared_ffn else 2
    exposed = (1 - profile.hidden_tp) * halves * half
    if routed:
        exposed = exposed + _expert_tensor_exchange(context, layer)
    again = profile.gathered_inputs == "regathered"
    open_share = again * (1 - profile.hidden_regather)
    return exposed, np.where(meshes.sp > 0, open_share * halves * gather, 0.0)


def _expert_tensor_exchange(context: Context, layer: LayerKind) -> Floats:
    """Gather and reduce-scatter of dispatched tokens over the expert tensor group."""
    assert isinstance(layer.ffn, Moe)
    meshes = context.meshes
    copies = np.where(meshes.ep > 1, layer.ffn.top_k, 1)
    rows = expert_tokens(context.workload, meshes) * copies
    message = ELEMENT * layer.hidden * rows
    return 2 * wire.all_gather_time(context.links, message, context.expert_tensor)


def context_exchange(context: Context, layer: LayerKind) -> tuple[Floats, Floats]:
    """Exposed context-parallel time, forward and backward.

    All-gather: keys and values gathered once forward; gathered and their
    gradients reduce-scattered backward. Ring: the same bytes (three times
    backward, with fp32 gradients) beside the attention of the chunks already
    there: the excess shows, contention slows the rest, and every further chunk
    is one more kernel. Ulysses: four all-to-alls each way.

    Args:
        context: Shared columns.
        layer: Kind of layer.

    Returns:
        Forward and backward. [s], shape (meshes,)
    """
    meshes, attention = context.meshes, layer.attention
    exchanged = (
        2 * attention.kv_heads * attention.head_dim
        if isinstance(attention, Attention)
        else attention.query_width + attention.out_width
    )
    local = context.local / meshes.tp
    message = ELEMENT * exchanged * local * meshes.cp
    gather = wire.all_gather_time(context.links, message, context.context)
    ahead, behind = core_times(context, layer)
    ring = _beside(context, gather, ahead), _beside(context, 3 * gather, behind)
    open_share = 1 - context.workload.profile.hidden_cp
    whole = open_share * gather, open_share * 2 * gather
    width = 2 * attention.out_width + exchanged
    deal = wire.all_to_all_time(context.links, ELEMENT * width * local, context.context)
    choice = [meshes.cp_kind == CP_KINDS.index(kind) for kind in CP_KINDS]
    return (
        np.select(choice, [ring[0], whole[0], deal]),
        np.select(choice, [ring[1], whole[1], deal]),
    )


def _beside(context: Context, moved: Floats, core: Floats) -> Floats:
    """Exposed time of a ring exchange that runs beside the attention core."""
    workload, cp = context.workload, context.meshes.cp
    kappa = workload.profile.overlap_contention
    launches = (cp - 1) * workload.calibration.memory.op_latency
    shown = np.maximum(moved - core, 0.0) + kappa * np.minimum(moved, core)
    return np.where(cp > 1, shown + launches, 0.0)


def expert_exchange(context: Context, layer: LayerKind) -> Floats:
    """Exposed time of one dispatch and one combine on the busiest rank.

    Every rank sends ``tau_r k h`` numbers each way.

    Args:
        context: Shared columns.
        layer: Kind of layer.

    Returns:
        Time, zero for dense layers. [s], shape (meshes,)
    """
    if not isinstance(layer.ffn, Moe):
        return np.zeros(len(context.meshes))
    profile = context.workload.profile
    routed = context.local * context.sigma * layer.ffn.top_k
    sent = ELEMENT * layer.hidden * routed * profile.expert_imbalance
    both = 2 * wire.all_to_all_time(context.links, sent, context.expert)
    return (1 - profile.hidden_ep) * both
