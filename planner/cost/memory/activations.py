"""Bytes that a layer keeps for its backward pass, and what it needs beside them."""

from typing import cast

import numpy as np

from planner.cost.kernels import ELEMENT, NARROW, is_unfused
from planner.cost.memory.attention_columns import key_share, repeated_columns
from planner.cost.memory.context_buffers import context_buffers, repeated_width
from planner.cost.memory.dispatched_bytes import dispatched_bytes
from planner.cost.memory.eager_bytes import replayed_block
from planner.cost.memory.recompute_modules import (
    kept_share,
    rebuilt,
    runs_norm_again,
)
from planner.cost.memory.tokens import sequence_split, tokens
from planner.cost.meshes import Floats, Meshes
from planner.cost.parameters.adapters import (
    adapter_widths,
    copied_bytes,
    is_frozen,
    is_kept,
)
from planner.cost.parameters.magnitudes import kept_weight_bytes
from planner.cost.parameters.weights import keeps_quantised, linear_weights
from planner.cost.pricing import Pricing
from planner.cost.routing import imbalance
from planner.hardware.reading.quantities import Bytes, Column
from planner.models.layers.blocks import LayerKind, Mlp, Moe, ScanBlock
from planner.models.layers.parts import Region, SavedTensor
from planner.specs.layouts.recompute import RecomputeKind

FP32 = 4
"""Bytes of one fp32 number. [B]"""
WIDE = ("fp32", "tf32")
"""Formats whose activations are kept in 32 bits. [text]"""
STAGED_LAYERS = 2
"""Layers whose offloaded activations are back on the GPU at one time. [1]"""
NARROW_INPUTS = frozenset(
    {
        "attention_norm_output",
        "attention_output",
        "ffn_norm_output",
        "activation",
        "expert_input",
        "expert_activation",
        "shared_activation",
    }
)
"""Inputs of GEMMs, which a linear below half precision keeps in its format."""


def expert_tokens(
    pricing: Pricing,
    meshes: Meshes,
    layers: "Floats | float" = 1,
    local: Floats | None = None,
) -> Floats:
    """Tokens that a rank's experts see per copy, on the busiest rank.

    Dispatch spreads the tokens of the ep ranks; expert tensor ranks see the
    same tokens: ``tau_r x iota``.

    Args:
        layers: Layers whose loads of one rank add up. [1], shape (meshes,)
        local: Tokens of a micro-batch; none: of the longest. [token], shape (meshes,)

    Returns:
        Tokens before the top-k copies. [token], shape (meshes,)
    """
    there = tokens(pricing, meshes) if local is None else local
    routed = there * sequence_split(meshes)
    return routed * meshes.etp * imbalance(pricing, meshes, layers)


def saved_bytes(
    pricing: Pricing, layer: LayerKind, kind: RecomputeKind, meshes: Meshes
) -> Column[Bytes]:
    """Bytes that one layer keeps on the GPU per micro-batch.

    The bytes kept at all, less the share that is offloaded to the host.
    """
    here = 1.0 - pricing.offload.activations
    return here * kept_bytes(pricing, layer, kind, meshes)


def kept_bytes(
    pricing: Pricing, layer: LayerKind, kind: RecomputeKind, meshes: Meshes
) -> Column[Bytes]:
    """Bytes that one layer keeps per micro-batch under a kind of recompute.

    Replayed where the framework's eager operators are known, else
    :func:`counted_bytes`.
    """
    replayed, _ = replayed_block(pricing, layer, kind.name, meshes)
    known = ~np.isnan(replayed)
    if known.all():
        return replayed
    return np.where(known, replayed, counted_bytes(pricing, layer, kind, meshes))


def counted_bytes(
    pricing: Pricing, layer: LayerKind, kind: RecomputeKind, meshes: Meshes
) -> Column[Bytes]:
    """Bytes that one layer keeps per micro-batch, by formula.

    The sum over the layer's saved tensors of width x element size x the rank's
    share of tokens or columns. Each tensor counts by the share that the recompute
    kind keeps; a layer below all that trains keeps nothing. Fused dense blocks
    without recompute keep
    ``8 h tau sigma + [2 (a+2g) d + 2 a d + 4 a + 2 n_m f] tau / t``. Dropout adds
    its masks; frozen linears drop the inputs that no adapter reads; autocast keeps a
    16-bit copy of every weight, magnitudes and dropout one in the adapter's format.

    References:
        Korthikanti et al., arXiv:2205.05198, section 4.
    """
    total = meshes.zeros()
    if layer.role == "below":
        return total
    for tensor in layer.saved():
        keep = kept_share(kind, layer, tensor.name)
        if kind.drops_key and tensor.name == "qkv":
            keep *= 1.0 - key_share(layer)
        if keep:
            total += keep * _tensor_bytes(pricing, layer, tensor, kind, meshes)
    if kind.keeps_output:
        total += ELEMENT * layer.hidden * layer.copies * tokens(pricing, meshes)
    if pricing.replay == "amp_bf16" and not kind.rebuilds_layer:
        total += (meshes.zero == 0) * ELEMENT * linear_weights(layer, meshes)
    if not kind.rebuilds_layer and is_frozen(pricing, layer):
        total += kept_weight_bytes(pricing, layer, meshes)
    total += dispatched_bytes(pricing, layer, kind, meshes)
    return total + _beside_bytes(pricing, layer, kind, meshes)


def _tensor_bytes(
    pricing: Pricing,
    layer: LayerKind,
    tensor: SavedTensor,
    kind: RecomputeKind,
    meshes: Meshes,
) -> "Floats | float":
    """Bytes of one saved tensor on a rank, all of the tensor. [B]."""
    width = tensor.width * _element(pricing, layer, tensor, kind)
    width += copied_bytes(pricing, layer, tensor.name)
    again = repeated_width(layer, meshes) if tensor.name == "scan_input" else 0.0
    copies = np.where(meshes.tp > 1, _readers(pricing, layer, tensor.name), 1)
    return (width + ELEMENT * again) * copies * _share(pricing, tensor, kind, meshes)


def _readers(pricing: Pricing, layer: LayerKind, tensor: str) -> int:
    """Copies of a norm's output over tensor ranks: one for each linear, or one. [1]."""
    gated = isinstance(layer.ffn, Mlp) and layer.ffn.gated
    readers = {"attention_norm_output": 3, "ffn_norm_output": 2 if gated else 1}
    return readers.get(tensor, 1) if pricing.recipe.copies_inputs else 1


def _beside_bytes(
    pricing: Pricing, layer: LayerKind, kind: RecomputeKind, meshes: Meshes
) -> Column[Bytes]:
    """Bytes of dropout masks, adapters' columns, repeated K and V, and scores. [B].

    Masks are kept with the norms' inputs.
    """
    local = tokens(pricing, meshes)
    masks = kind.kept("ffn_norm_input") * pricing.recipe.dropout_bytes
    halves = min(layer.norms, 2)
    total = masks * halves * layer.hidden * local * sequence_split(meshes)
    keeps_all = kept_share(kind, layer, "qkv")
    columns = adapter_widths(pricing, layer) + repeated_columns(pricing, layer)
    inner = keeps_all * ELEMENT * columns
    scores = kind.kept("logsumexp") * score_bytes(pricing, layer)
    return total + (inner + scores) * local / meshes.tp


def score_bytes(pricing: Pricing, layer: LayerKind) -> float:
    """Bytes per token of the explicit scores that an unfused attention keeps.

    The softmax's output, ``2 a s``; with dropout also the dropout's output and mask,
    ``5 a s`` in all.

    Returns:
        Memory over all tensor ranks, zero for fused kernels. [B]

    References:
        Korthikanti et al., arXiv:2205.05198, section 4.1.
    """
    attention = layer.attention
    if not is_unfused(pricing) or isinstance(attention, ScanBlock):
        return 0.0
    if not attention.out_width:
        return 0.0
    keys = attention.attended(pricing.training.longest_row, causal=False)
    width = 2 * ELEMENT + 1 if pricing.recipe.dropout_bytes else ELEMENT
    return float(width * attention.heads * keys)


def _share(
    pricing: Pricing, tensor: SavedTensor, kind: RecomputeKind, meshes: Meshes
) -> "Floats | float":
    """Tokens of one saved tensor on a rank, times the share of its columns."""
    if tensor.split == "expert":
        layers = pricing.model.layers / meshes.pp
        return expert_tokens(pricing, meshes, layers) / _columns(tensor, meshes)
    local = tokens(pricing, meshes)
    if tensor.split == "tensor":
        return local / meshes.tp
    gathered = (
        pricing.profile.gathered_inputs == "saved"
        and tensor.name in ("attention_norm_output", "ffn_norm_output")
        and not kind.rebuilds_layer
    )
    return local * (1.0 if gathered else sequence_split(meshes))


def _columns(tensor: SavedTensor, meshes: Meshes) -> "Floats | float":
    """Ranks that share an expert's columns: etp, but 1 for the expert input. [1]."""
    return 1.0 if tensor.name == "expert_input" else cast("Floats", meshes.etp * 1.0)


def _element(
    pricing: Pricing, layer: LayerKind, tensor: SavedTensor, kind: RecomputeKind
) -> float:
    """Bytes per element of a saved tensor as the stack keeps it. [B].

    A frozen norm keeps no normalised 16-bit copy for its weight's gradient; a norm
    that runs again keeps its input alone; an input that only a weight's gradient
    needs is not there without that gradient.
    """
    profile, frozen = pricing.profile, is_frozen(pricing, layer)
    if tensor.precision == "fp32" or pricing.training.precision in WIDE:
        return FP32
    kept = is_kept(pricing, layer, tensor.name)
    if keeps_quantised(pricing) and tensor.name in pricing.recipe.formats_kept:
        return pricing.recipe.formats_kept[tensor.name]
    if keeps_quantised(pricing) and tensor.name in NARROW_INPUTS:
        # The attention kernel's own backward reads its output in 16 bits.
        own = ELEMENT if tensor.name == "attention_output" else 0
        return own + NARROW[pricing.training.precision] if kept else own
    is_input = tensor.name.endswith("norm_input")
    if is_input and not runs_norm_again(kind, layer, tensor.name):
        spared = ELEMENT if frozen and profile.norm_input_bytes > FP32 else 0
        return profile.norm_input_bytes - spared
    if tensor.name.endswith("activation"):
        spared = 0 if kept else ELEMENT
        return max(profile.activation_bytes - spared, 0.0)
    return ELEMENT if kept else 0


def transient_bytes(
    pricing: Pricing, layer: LayerKind, kind: RecomputeKind, meshes: Meshes
) -> Column[Bytes]:
    """Bytes that the backward of one layer needs beside the saved activations.

    Two gathered inputs with sp, and the larger of the layer's two halves. The
    feed-forward half has the gradients of the inner activations. The attention half
    has the gradients of Q, K, V, the fp32 query accumulator and what context ranks
    exchange. Each half adds what recomputed modules build again; a rebuilt layer adds
    all of the layer's activations. Below all that trains there is no backward.
    Replayed where the eager operators are known.

    Leaves out workspaces inside kernels other than the query accumulator; where it is
    replayed that one too.
    """
    _, replayed = replayed_block(pricing, layer, kind.name, meshes)
    known = ~np.isnan(replayed)
    peak = replayed
    if not known.all():
        peak = np.where(known, peak, _counted_transient(pricing, layer, kind, meshes))
    if pricing.offload.activations:
        staged = STAGED_LAYERS * pricing.offload.activations
        peak = peak + staged * kept_bytes(pricing, layer, kind, meshes)
    return peak


def _counted_transient(
    pricing: Pricing, layer: LayerKind, kind: RecomputeKind, meshes: Meshes
) -> Column[Bytes]:
    """Bytes that the backward of one layer needs by formula, without offload. [B]."""
    if layer.role == "below":
        return meshes.zeros()
    local = tokens(pricing, meshes)
    gathered = np.where(meshes.sp > 0, 2.0 * ELEMENT * layer.hidden * local, 0.0)
    ffn = _ffn_gradients(pricing, layer, meshes)
    width = sum(t.width for t in layer.saved() if t.name == "qkv")
    out = sum(t.width for t in layer.saved() if t.name == "attention_output")
    scores = score_bytes(pricing, layer)
    # Unfused: gradients of scores and probabilities, and the rebuilt ones.
    fused: float = FP32 * out if not scores else ELEMENT * out
    if isinstance(layer.attention, ScanBlock):
        width, fused = 0, ELEMENT * layer.attention.backward_width
    lost = 1.0 if kind.rebuilds_layer else 1.0 - kind.kept("logsumexp")
    again = 0.0 if kind.rebuilds_layer else lost * scores
    pair = 0.0
    if scores:
        pair = 2.0 * ELEMENT * layer.attention.heads * pricing.training.longest_row
    keys = context_buffers(layer, meshes, repeated=pricing.recipe.cp_repeats_kv)
    keys = keys + ELEMENT * repeated_width(layer, meshes)
    extra = again + pair + keys
    attention = (ELEMENT * width + fused + extra) * local / meshes.tp
    rebuilds = _rebuilt_bytes(pricing, layer, kind, meshes)
    halves = ffn + rebuilds["ffn"], attention + rebuilds["attention"]
    peak = gathered + np.maximum(*halves)
    if kind.rebuilds_layer:
        none = pricing.recipe.kind("none")
        kept = counted_bytes(pricing, layer, kind, meshes)
        peak = peak + counted_bytes(pricing, layer, none, meshes) - kept
    return peak


def _rebuilt_bytes(
    pricing: Pricing, layer: LayerKind, kind: RecomputeKind, meshes: Meshes
) -> dict[Region, Floats]:
    """Bytes that recomputed modules build again, by half of the layer. [B]."""
    halves: dict[Region, Floats]
    halves = {"attention": meshes.zeros(), "ffn": meshes.zeros()}
    names = rebuilt(kind, layer) if kind.modules else frozenset()
    for tensor in layer.saved():
        if tensor.name in names:
            gathered = _tensor_bytes(pricing, layer, tensor, kind, meshes)
            halves[tensor.region] += gathered
    return halves


def _ffn_gradients(pricing: Pricing, layer: LayerKind, meshes: Meshes) -> Floats:
    """Gradients of a feed-forward half's inner tensors, alive together."""
    ffn = layer.ffn
    if isinstance(ffn, Mlp):
        inner = ELEMENT * (ffn.ffn + ffn.inner_width)
        return inner * tokens(pricing, meshes) / meshes.tp
    assert isinstance(ffn, Moe)
    copies = expert_tokens(pricing, meshes) * ffn.top_k
    inner = ELEMENT * (ffn.ffn + ffn.expert.inner_width)
    buffers = 2 * ELEMENT * ffn.routed_width
    return copies * (inner / meshes.etp + buffers)
