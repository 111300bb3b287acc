"""Memory of a rank that depends on no stage split: what is left to divide."""

import numpy as np
import numpy.typing as npt

from planner.cost.kernels import ELEMENT
from planner.cost.memory.chance import multiple
from planner.cost.memory.communicators import communication_bytes
from planner.cost.memory.eager_bytes import is_replayed
from planner.cost.memory.tokens import sequence_split, tokens
from planner.cost.meshes import Floats, Meshes
from planner.cost.parameters.magnitudes import norm_bytes
from planner.cost.parameters.quantised import dequantised_bytes, gather_width
from planner.cost.parameters.rank_parameters import Owned, layer_owned
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.hardware.reading.quantities import Bytes, Column
from planner.models.layers.blocks import LayerKind

GB = 1e9
MIB = 2**20
GRAIN = 0.01
"""Rounding error of a device's memory, far below one block. [B]"""


def context_bytes(workload: Workload) -> float:
    """CUDA context and workspaces of a rank. [B]."""
    return workload.framework.profile.context_gb * GB


def _dummy_weights(layer: LayerKind, meshes: Meshes) -> Column[Bytes]:
    """Bytes of one bf16 gradient per distinct weight shape of a layer. [B]."""
    shapes = {(g.inputs, g.outputs, g.split) for g in layer.gemms()}
    total = meshes.zeros()
    for inputs, outputs, split in shapes:
        share = meshes.etp if split.startswith("expert") else meshes.tp
        total += ELEMENT * inputs * outputs / np.where(split == "replicated", 1, share)
    return total


def _stage_messages(workload: Workload, meshes: Meshes) -> Column[Bytes]:
    """Bytes of an activation sent and a gradient received, with a pipeline. [B]."""
    width = ELEMENT * workload.model.stream_width
    message = width * tokens(workload, meshes) * sequence_split(meshes)
    return np.where(meshes.pp > 1, 2.0 * message, 0.0)


def buffer_bytes(pricing: Pricing, meshes: Meshes) -> Floats:
    """Buffers that a framework keeps whatever the split. [B].

    The libraries' workspaces, messages between stages, a bucket of gradients, which
    ZeRO-3 fills in 16 bits, and TransformerEngine's cached dummy weight gradients. The
    weight that is dequantised, or the matrices of which magnitudes are norms, unless a
    replay has them among a block's own bytes.
    """
    recipe = pricing.recipe
    total = np.full(len(meshes), recipe.workspace_mib.get(pricing.gpu.arch, 0.0) * MIB)
    room, counted = total, ~is_replayed(pricing, meshes)
    for kind in pricing.kinds:
        unpacked = dequantised_bytes(pricing, kind, meshes)
        passing = counted * np.maximum(unpacked, norm_bytes(pricing, kind, meshes))
        total = np.maximum(total, room + passing)
    total = total + _stage_messages(pricing, meshes)
    if recipe.reduced_parameters is not None:
        bucketed = (meshes.zero == 1) | (meshes.zero == 2)
        width = np.where(meshes.zero == 3, ELEMENT, recipe.gradient_bytes * bucketed)
        total = total + width * recipe.reduced_parameters
    if recipe.dummy_weight_gradients and not pricing.training.frozen:
        total = total + np.maximum.reduce(
            [_dummy_weights(kind, meshes) for kind in pricing.kinds]
        )
    return total


def layer_buffers(pricing: Pricing, owned: Owned, meshes: Meshes) -> Column[Bytes]:
    """Bytes of sharded states that the backward of a layer has whole.

    Under ZeRO-3 ``w_g n_g + (w_r + 2) n_r``: parameters of the layers that are
    gathered, gradients as they are made and as they are reduced. Where linears are
    gathered one by one, at most a limit, or the largest linear where that is more.
    Under ZeRO-2 ``w_r n_r``: the buffer that a layer's gradients are made and reduced
    in. A rank of few layers thus holds more than under ZeRO-1. One gradient of the
    layer where the optimizer runs inside the backward.

    References:
        PyTorch FSDP2 as its memory tracker sees it; DeepSpeed's
        stage3_max_live_parameters and reduce_bucket_size, whose buffer stays from the
        start on (runtime/zero/stage3.py, ipg_bucket_flat_buffer); Megatron-LM issue
        6314.
    """
    recipe = pricing.recipe
    trained = owned.dense + owned.expert
    copies = recipe.gather_buffers * (trained + owned.packed[0] + owned.packed[1])
    largest = np.asarray(owned.largest[0] * owned.largest[1])
    gathered = _limited(copies, recipe.live_parameters, largest)
    reduced = _limited(
        recipe.reduce_buffers * trained,
        recipe.reduced_parameters,
        np.minimum(largest, trained),
    )
    # A bucket of its own lies among the buffers that stay.
    own = ELEMENT if recipe.reduced_parameters is None else 0
    gradient_width = recipe.gradient_bytes + own
    sharded = recipe.gather_bytes * gathered + gradient_width * reduced
    inside = ELEMENT * trained if pricing.training.optimizer_in_backward else 0.0
    making = (meshes.zero == 2) & (not recipe.accumulates_unsharded)
    unit = np.where(making, _reduced_unit(pricing, owned), 0.0)
    return np.where(meshes.zero == 3, sharded, unit) + inside


def _reduced_unit(pricing: Pricing, owned: Owned) -> Column[Bytes]:
    """Buffers that ZeRO-2 reduces a unit's whole gradients from. [B]."""
    recipe = pricing.recipe
    count = recipe.reduce_buffers if recipe.reduces_units else 0
    return count * recipe.gradient_bytes * (owned.dense + owned.expert)


def working_bytes(
    pricing: Pricing,
    owned: Owned,
    meshes: Meshes,
    saved: Column[Bytes],
    own: Column[Bytes],
) -> Column[Bytes]:
    """Bytes of a layer beside its saved activations while it is at work.

    The backward's own buffers and the sharded states that are whole. Where gradients
    accumulate whole, ZeRO-2 copies them into a buffer once the layer's activations
    are gone: ``max(own, w_r n_r - saved)``.

    References:
        PyTorch FSDP2, ``_fsdp_collectives.foreach_reduce``.
    """
    buffers = own + layer_buffers(pricing, owned, meshes)
    after = (meshes.zero == 2) & pricing.recipe.accumulates_unsharded
    copied = _reduced_unit(pricing, owned) - saved
    return np.where(after, np.maximum(buffers, copied), buffers)


def _limited(size: Floats, limit: float | None, largest: Floats) -> Floats:
    """Size, at most a limit, or the largest piece where that is above the limit."""
    if limit is None:
        return size
    return np.minimum(size, np.maximum(limit, largest))


def head_buffers(pricing: Pricing, meshes: Meshes) -> Column[Bytes]:
    """Bytes of ZeRO-3 shards that are whole while the loss has its backward.

    The layer whose parameters are gathered ahead, and the head with its gradient.
    A head that stays whole for the entire step is counted with the states. A replayed
    loss has the head's gradient already, and is over when a layer is gathered, but for
    FSDP1: the gradient of the loss, an output of the model, sets off that gather.

    References:
        torch/distributed/fsdp/_runtime_utils.py, _register_pre_backward_hooks and
        _prefetch_handle of the root.
    """
    recipe = pricing.recipe
    units = [layer_owned(pricing, kind, meshes) for kind in pricing.kinds]
    ahead = np.maximum.reduce(
        [unit.dense + unit.expert + unit.packed[0] + unit.packed[1] for unit in units]
    )
    if recipe.live_parameters is not None:
        ahead = meshes.zeros()
    total = recipe.gather_bytes * ahead
    replayed = is_replayed(pricing, meshes)
    total = np.where(replayed & (not recipe.flat_parameters), 0.0, total)
    if not recipe.head_stays_whole:
        total = total + head_bytes(pricing, meshes, made=replayed)
    return np.where(meshes.zero == 3, total, 0.0)


def root_bytes(pricing: Pricing, meshes: Meshes) -> tuple[Floats, Floats]:
    """Bytes of embedding and head that ZeRO-3 leaves whole from forward to backward.

    The gathered tables, ``w_g V h / t`` each, and the head's whole gradient; a tied
    head on the embedding's stage is the same table.

    Returns:
        Memory on the first stage and on the last; zero below ZeRO-3, and where both
        ends are units like all others. [B], shape (meshes,) each

    References:
        PyTorch FSDP2: the root's units are not resharded after forward, and
        their gradients wait for the root's post-backward.
    """
    model = pricing.model
    stays = (meshes.zero == 3) & pricing.recipe.head_stays_whole
    apart = (meshes.pp > 1) | (not model.tied_embeddings)
    width = gather_width(pricing, linears=False)
    table = width * model.vocab * model.hidden / meshes.tp
    kept = stays & apart & pricing.recipe.embedding_stays_whole
    embedding = np.where(kept, table, 0.0)
    return embedding, np.where(stays, head_bytes(pricing, meshes), 0.0)


def head_bytes(
    pricing: Pricing, meshes: Meshes, *, made: "npt.NDArray[np.bool_] | bool" = False
) -> Floats:
    """Bytes of the whole head as gathered, and of its gradient if it has one. [B].

    Args:
        made: True where the gradient is counted with the loss. [-]
    """
    head = pricing.model.vocab * pricing.model.hidden / meshes.tp
    width = ELEMENT if pricing.training.trains_head else 0
    gradient = np.where(made, 0, width)
    return head * (gather_width(pricing, linears=False) + gradient)


def budget_bytes(pricing: Pricing, meshes: Meshes) -> Column[Bytes]:
    """Memory left on a rank for states and activations.

    ``(room / z - context - NCCL) phi / f - buffers`` with phi the packing that the
    allocator reaches when it must, and f the factor of the user's own runs; negative
    where nothing is left. The room is the capacity without what has to stay free. For z
    see :mod:`planner.cost.memory.chance`. No more than :func:`within_bytes` leaves.
    """
    left = (
        pricing.room / multiple(pricing)
        - context_bytes(pricing)
        - communication_bytes(pricing, meshes)
    )
    profile = pricing.profile
    own = profile.packing / profile.memory_factor
    room = left * own - buffer_bytes(pricing, meshes)
    return np.minimum(room, within_bytes(pricing, meshes, pricing.aim.most_bytes))


def within_bytes(pricing: Pricing, meshes: Meshes, most: float) -> Floats:
    """Memory for states and activations with which the driver reports at most so much.

    The inverse of :func:`device_bytes` below the capacity: ``(most - F) phi / f -
    buffers``, as below the capacity the allocator keeps what it has freed.

    Args:
        most: Device memory of a rank; no limit from the capacity on. [B]

    Returns:
        Memory. [B], shape (meshes,)
    """
    if most >= pricing.gpu.memory_capacity:
        return np.full(len(meshes), np.inf)
    fixed = context_bytes(pricing) + communication_bytes(pricing, meshes)
    profile = pricing.profile
    reserved = (most + GRAIN - fixed) * profile.fragmentation
    return reserved / profile.memory_factor - buffer_bytes(pricing, meshes)


def device_bytes(
    pricing: Pricing,
    allocated: float,
    fixed: float,
    scale: float = 1.0,
    *,
    cached: float | None = None,
    known: float = 0.0,
) -> float:
    """Memory that the driver reports of a rank.

    ``max(A / phi_0 + F, min(R + F, capacity))``. While there is room, the allocator
    keeps what it has freed: R is ``r (A + C)`` with a simulated cache C, else A / phi.
    Before it fails, it gives memory back, down to A / phi_0.

    Args:
        pricing: The job: GPU, fragmentation phi, packing phi_0 and factor r.
        allocated: Memory A in tensors at its peak. [B]
        fixed: Context and communication F. [B]
        scale: Factor on both sums, to price the bounds of an interval. [1]
        cached: Memory C beside the tensors; None: not simulated. [B]
        known: Part of both sums that is counted, and that no factor changes. [B]

    Returns:
        Memory; above the capacity only where the run cannot fit. [B]

    References:
        PyTorch's CUDACachingAllocator: release_cached_blocks before an error.
    """
    profile = pricing.profile
    reserved = allocated / profile.fragmentation
    if cached is not None:
        reserved = max(allocated, (allocated + cached) * profile.reserved_factor)
    roomy = reserved + fixed
    packed = min(allocated / profile.packing + fixed, roomy)
    low, high = (known + (size - known) * scale for size in (packed, roomy))
    return max(low, min(high, pricing.gpu.memory_capacity))
