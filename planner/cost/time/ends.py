"""Time and memory of the embedding and of the head with its loss."""

from dataclasses import dataclass

import numpy as np

from planner.cost.kernels import ELEMENT, added, gemm_rate, gemm_time
from planner.cost.memory.activations import saved_bytes
from planner.cost.memory.eager_bytes import replayed_ends
from planner.cost.memory.masks import mask_bytes
from planner.cost.meshes import Floats, Meshes
from planner.cost.network.offload_copies import copy_bandwidth
from planner.cost.parameters.rank_parameters import padded_vocab
from planner.cost.pricing import Pricing
from planner.cost.streaming import memory_time
from planner.cost.time.columns import Context, Parts
from planner.cost.time.exchange import input_exchange
from planner.cost.time.gradients import layer_pending_bytes, layer_weight_time
from planner.cost.time.host_launch import launched
from planner.cost.time.layers import layer_time
from planner.cost.workload import Workload
from planner.hardware.reading.quantities import Bytes, Column, Seconds
from planner.models.layers.blocks import Mlp

RETURNED = {"hf": 2, "upcast": 4}
"""Bytes of a logit that a forward returns, by form of the loss. [B]"""

TOKEN_ID = 8
"""Bytes of one token id. [B]"""
EMBEDDING_KERNELS = 0.3
"""Kernels of the embedding over a layer's: look-ups, sum, dropout of 16. [1]"""
HEAD_KERNELS = 0.6
"""Kernels of norm, head and loss over a layer's: 10 of 16. [1]"""
LOSS_FORWARD = 0.4
"""Share of the loss's traffic that the forward moves: 4 of 10 bytes, fused. [1]"""


@dataclass(frozen=True)
class End:
    """One end of the model on its stage."""

    forward: Parts
    backward: Parts
    saved: Column[Bytes]
    """Bytes held per micro-batch in flight. [B], shape (meshes,)"""
    transient: Column[Bytes]
    """Bytes alive while the end's own backward runs. [B], shape (meshes,)"""
    weight: Column[Seconds]
    """Part of the backward that makes weight gradients. [s], shape (meshes,)"""
    pending: Column[Bytes]
    """Bytes held per micro-batch that waits for its W. [B], shape (meshes,)"""


def embedding_end(context: Context) -> End:
    """Time and memory of the embedding: a look-up, and one exchange over tensor ranks.

    Moves ``4 h`` bytes a token forward and ``8 h`` backward, of layers' own embeddings
    as much for each column. Products outside layers and head run here, all of them.

    Returns:
        Time and memory of the first stage's extra work. A sent output that stays is
        counted here: later stages hold fewer micro-batches.
    """
    pricing = context.pricing
    hidden, rows = pricing.model.hidden, context.local * context.sigma
    tokens = context.longest.local * context.sigma
    looked_up = hidden + pricing.model.input_table / pricing.model.vocab
    product = _outer_time(context)
    stays = pricing.recipe.keeps_stage_outputs & (context.meshes.pp > 1)
    sent = np.where(stays, ELEMENT * pricing.model.stream_width * tokens, 0.0)
    ahead = memory_time(pricing, 4.0 * looked_up * rows, 1) + product
    weight = pending = context.meshes.zeros()
    if pricing.training.trains_embedding:
        weight = memory_time(pricing, 8.0 * looked_up * rows, 1) + product
        pending = ELEMENT * looked_up * tokens
    behind = weight + product
    _, once = input_exchange(context, hidden, gathers=1)
    masks = pricing.recipe.dropout_bytes * hidden * tokens
    forward = Parts().plus("compute", ahead).plus("tp_comm", once)
    backward = Parts().plus("compute", behind).plus("tp_comm", once)
    dense, loaded = mask_bytes(pricing, context.meshes)
    saved = TOKEN_ID * context.longest.local + masks + sent + _constants(context)
    return End(
        *launched(
            context, _masked(context, forward), backward, share=EMBEDDING_KERNELS
        ),
        saved + dense,
        loaded,
        weight=weight,
        pending=pending,
    )


def _masked(context: Context, forward: Parts) -> Parts:
    """A forward that waits for the copy of its dense masks, if there are any."""
    pricing, meshes = context.pricing, context.meshes
    if not pricing.profile.loads_masks:
        return forward
    tokens = np.asarray(meshes.micro_batch * pricing.training.seq_len, dtype=float)
    copied = tokens * pricing.training.seq_len
    return forward.plus("mask_copies", copied / copy_bandwidth(pricing))


def _outer_time(context: Context) -> Floats:
    """Time of the products outside layers and head, forward. [s], shape (meshes,)."""
    model, rows = context.pricing.model, context.local * context.sigma
    if not model.outer_weights:
        return np.zeros(len(rows))
    rate, wide = gemm_rate(context.pricing, narrow=False), np.ones(len(rows))
    columns = model.outer_weights / model.hidden
    return gemm_time(rate, rows, columns * wide, model.hidden * wide)


def _constants(context: Context) -> Column[Bytes]:
    """Bytes that all blocks share, where eager operators are replayed. [B]."""
    constants = replayed_ends(context.pricing, context.meshes).constants
    return np.where(np.isnan(constants), 0.0, constants)


def logit_bytes(pricing: Pricing, meshes: Meshes) -> Column[Bytes]:
    """Bytes per logit that are alive in the loss: kappa.

    A framework may have another loss for models without gates, which came before
    Llama, and where tensor ranks share the vocabulary. A loop that keeps its outputs
    has the logits as the forward returns them beside, unless the loss takes none.
    """
    recipe = pricing.recipe
    logits = recipe.logits_bytes
    if recipe.plain_logits_bytes is not None and _is_plain(pricing):
        logits = recipe.plain_logits_bytes
    kept = RETURNED.get(recipe.loss, 0) if recipe.keeps_outputs else 0
    return kept + np.where(meshes.tp > 1, recipe.split_logits_bytes or logits, logits)


def _is_plain(workload: Workload) -> bool:
    """True where no feed-forward layer has a gate or experts."""
    blocks = [kind.ffn for kind in workload.kinds]
    return all(isinstance(block, Mlp) and not block.gated for block in blocks)


def head_end(context: Context) -> End:
    """Time and memory of final norm, head GEMM, cross-entropy and any MTP modules.

    The logits live only from the forward to the backward of one micro-batch:
    ``kappa tau V / t``, beside the gathered input of the head; or as the framework's
    eager operators are replayed.

    Returns:
        Time and memory of the last stage's extra work.

    Leaves out recompute of an MTP layer, which is priced as if kept.
    """
    pricing, meshes = context.pricing, context.meshes
    model = pricing.model
    passes = 1 + model.mtp_layers
    forward, backward = _head_pass(context)
    parts = [Parts().joined(side, passes) for side in (forward, backward)]
    local = context.longest.local
    # The norm's input, and its output, which only the head's own gradient reads.
    inputs = 2 if pricing.training.trains_head else 1
    kept = inputs * ELEMENT * model.hidden * (local * context.sigma)
    vocab = padded_vocab(pricing, meshes)
    logits = logit_bytes(pricing, meshes) * local * vocab / meshes.tp
    gathered = np.where(meshes.sp > 0, ELEMENT * model.hidden * local, 0.0)
    if model.mtp_layers:
        kind = pricing.recipe.kind("none")
        extra = layer_time(context, model.mtp_kind, kind)
        for index, side in enumerate(extra):
            parts[index] = parts[index].joined(side, model.mtp_layers)
        kept = kept + model.mtp_layers * saved_bytes(
            pricing, model.mtp_kind, kind, meshes
        )
    loss = replayed_ends(pricing, meshes).loss
    known = ~np.isnan(loss)
    weight, pending = _head_gradients(context)
    apart = meshes.pp > 1
    dense, loaded = (apart * size for size in mask_bytes(pricing, meshes))
    return End(
        parts[0],
        parts[1],
        np.where(known, 0.0, kept) + dense,
        np.maximum(np.where(known, loss, logits + gathered), loaded),
        weight,
        pending,
    )


def _head_gradients(context: Context) -> tuple[Floats, Floats]:
    """Weight gradients of the head and of MTP modules [s], what waits for them [B]."""
    pricing, meshes = context.pricing, context.meshes
    model = pricing.model
    time = pending = meshes.zeros()
    if pricing.training.trains_head:
        logits = context.longest.local * padded_vocab(pricing, meshes) / meshes.tp
        passes = 1 + model.mtp_layers
        time, pending = passes * _head_weight_time(context), passes * ELEMENT * logits
    if model.mtp_layers:
        kind = model.mtp_kind
        time = time + model.mtp_layers * layer_weight_time(context, kind)
        pending = pending + model.mtp_layers * layer_pending_bytes(context, kind)
    return time, pending


def _head_weight_time(context: Context) -> Column[Seconds]:
    """Weight gradient of one head GEMM. [s], shape (meshes,)."""
    pricing, meshes = context.pricing, context.meshes
    rate = gemm_rate(pricing, narrow=False)
    inputs = np.full(len(meshes), float(pricing.model.hidden))
    outputs = padded_vocab(pricing, meshes) / meshes.tp
    return gemm_time(rate, inputs, outputs, context.local, wgrad=True)


def _head_pass(context: Context) -> tuple[Parts, Parts]:
    """Time of one norm, gather, head GEMM and cross-entropy, forward and backward."""
    _, once = input_exchange(context, context.pricing.model.hidden, gathers=1)
    forward, backward = (
        Parts().plus("compute", added(terms)).plus("tp_comm", once)
        for terms in head_terms(context)
    )
    return launched(context, forward, backward, share=HEAD_KERNELS)


def head_terms(context: Context) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Compute of one pass of the head, in the order in which it adds up.

    Returns:
        Products, and norm with cross-entropy, forward and backward. [s], shape
        (meshes,)
    """
    pricing, meshes = context.pricing, context.meshes
    model, rate = pricing.model, gemm_rate(pricing, narrow=False)
    rows, inputs = context.local, np.full(len(meshes), float(model.hidden))
    outputs = padded_vocab(pricing, meshes) / meshes.tp
    ahead = {"product": gemm_time(rate, rows, outputs, inputs)}
    behind = {"input_gradient": gemm_time(rate, rows, inputs, outputs)}
    if pricing.training.trains_head:
        behind["weight_gradient"] = _head_weight_time(context)
    logits = context.local * outputs
    norm = model.hidden * context.local * context.sigma
    loss = pricing.profile.loss_traffic * logits
    moved = LOSS_FORWARD * loss + 4.0 * norm, (1 - LOSS_FORWARD) * loss + 5.0 * norm
    for side, size in zip((ahead, behind), moved, strict=True):
        side["norm_and_loss"] = memory_time(pricing, size, 3)
    return ahead, behind
