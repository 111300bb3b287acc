"""Bytes that a framework takes to step, gather, save and load one unit."""

import numpy as np

from planner.cost.kernels import ELEMENT
from planner.cost.meshes import Floats, Meshes
from planner.cost.network.offload_copies import kept_share
from planner.cost.parameters.optimizers import (
    ADAM_MOMENTS,
    is_projected,
    stage_moments,
)
from planner.cost.parameters.quantised import HALF, gather_width
from planner.cost.parameters.rank_parameters import Owned, padded_vocab
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.hardware.reading.quantities import Bytes, Column

ADAM = frozenset({"adamw", "lamb"})
"""Optimizers that divide by the root of a moment: one more number a parameter."""
ROOTS = {"foreach": 1, "foreach-2.0": 2}
"""Numbers that Adam over lists of tensors makes per parameter, by kernel: roots of the
second moments; before PyTorch 2.1 their sum with epsilon beside them. [1]"""
ORTHOGONAL_LONG = 3
"""Forms of a matrix in Newton-Schulz beside its gradient: the momentum's mean, the
iterate and its successor. [1]"""
ORTHOGONAL_SHORT = 3
"""Products of the iterate with itself: Gram matrix, its square, their mix. [1]"""
SQUARES = 2
"""fp32 forms of one gradient in Adafactor: its squares, and the update. [1]"""
DECOMPOSED = 3
"""Forms of a matrix in its decomposition: fp32, its copy, the longer factor. [1]"""
SINGLE = 4
"""Bytes of an fp32 number. [B]"""


def unit_bytes(pricing: Pricing, owned: Owned) -> Column[Bytes]:
    """Bytes of a unit's whole parameters as they are gathered: ``w_g n``."""
    parameters = owned.dense + owned.expert + owned.frozen + owned.frozen_expert
    return gather_width(pricing, linears=owned.matrices) * parameters


def _updated(owned: Owned, meshes: Meshes) -> Floats:
    """Parameters of a unit that one rank updates. [1], shape (meshes,)."""
    sharded = meshes.zero > 0
    dense = owned.dense / np.where(sharded, meshes.dp_shard, 1)
    return dense + owned.expert / np.where(sharded, meshes.expert_shard, 1)


def step_copies(pricing: Pricing, owned: Owned, meshes: Meshes) -> Column[Bytes]:
    """Bytes that an optimizer step copies of all parameters at once: ``w n / S``.

    Adam over lists of tensors makes the roots of all second moments before it
    divides. That is one number a parameter, in the format of the moments, two before
    PyTorch 2.1. DeepSpeed
    makes an fp32 copy of its gradients. TransformerEngine's kernel takes fp32 moments:
    narrower ones of all parameters are copied to fp32 first, 8 B in all. Other fused
    kernels and loops over tensors make none.

    References:
        torch.optim.adam, ``_multi_tensor_adam``; DeepSpeed stage_1_and_2.py;
        github:NVIDIA/TransformerEngine pytorch/optimizers/fused_adam.py,
        ``get_unscaled_state`` over all parameters of a group before the kernel.
    """
    training, recipe = pricing.training, pricing.recipe
    here = kept_share(pricing, meshes)["moments"]
    width: Floats = np.full(len(meshes), recipe.step_gradient_bytes)
    if training.optimizer in ADAM:
        moments = stage_moments(pricing, owned, meshes)
        width = width + ROOTS.get(recipe.optimizer_kernel, 0) * moments / 2
        if recipe.optimizer_kernel == "fused-fp32":
            width = width + np.where(moments < ADAM_MOMENTS, ADAM_MOMENTS, 0.0)
    stays = 0.0 if training.optimizer_in_backward else here
    return width * stays * _updated(owned, meshes)


def step_working(pricing: Pricing, owned: Owned, meshes: Meshes) -> Column[Bytes]:
    """Bytes that an optimizer step makes of one tensor, the unit's largest.

    A loop of Adam: one number in the format of the moments. Adafactor: two fp32
    forms. Muon, with r <= q the sides of a matrix: ``2 (3 r q + 3 r^2)``. GaLore's
    decomposition in fp32, ``4 (3 r q + r^2)``; APOLLO scales a copy, ``2 r q``.

    Leaves out adapters, whose tensors are small, and that gate and up may be apart.

    References:
        torch.optim: ``_single_tensor_adam``, ``Adafactor``, ``Muon``.
        github:jiaweizzhao/GaLore galore_torch/galore_projector.py: the gradient as
        fp32, ``torch.linalg.svd`` with its copy and both factors.
    """
    training, recipe = pricing.training, pricing.recipe
    nothing = meshes.zeros()
    away = pricing.offload.optimizer >= 1
    if away or training.frozen or training.optimizer_in_backward:
        return nothing
    if training.optimizer == "muon" and owned.matrices:
        short, long = owned.largest
        return ELEMENT * (
            ORTHOGONAL_LONG * short * long + ORTHOGONAL_SHORT * short**2 + nothing
        )
    if is_projected(pricing, owned):
        return _projecting(training.optimizer, owned) + nothing
    shards = np.where(meshes.zero > 0, meshes.dp_shard, 1)
    tensor = owned.largest[0] * owned.largest[1] / shards
    if training.optimizer == "adafactor":
        squares: Floats = SQUARES * SINGLE * tensor
        return squares
    if recipe.optimizer_kernel == "for-loop" and training.optimizer in ADAM:
        moment: Floats = stage_moments(pricing, owned, meshes) / 2 * tensor
        return moment
    return nothing


def _projecting(optimizer: str, owned: Owned) -> Floats | float:
    """Bytes that a low-rank Adam makes of the unit's largest matrix. [B]."""
    short, long = owned.largest
    if optimizer == "apollo-adamw":
        return ELEMENT * short * long
    return SINGLE * (DECOMPOSED * short * long + short**2)


def load_copies(pricing: Pricing, owned: Owned, meshes: Meshes) -> Column[Bytes]:
    """Bytes of moments that a resume loads beside the optimizer's own moments.

    References:
        Megatron-LM issues 1509 and 2339; Megatron-Bridge pull request 4936.
    """
    here = kept_share(pricing, meshes)["moments"]
    width = pricing.recipe.resume_copies * stage_moments(pricing, owned, meshes)
    return width * here * _updated(owned, meshes)


def save_staging(
    pricing: Pricing, owned: Owned, meshes: Meshes
) -> tuple[Floats, Floats]:
    """Bytes of ZeRO-3 shards that a checkpoint makes whole.

    Returns:
        Bytes of all units at once, and of a unit at a time; both zero where every
        rank writes its shards. [B], shape (meshes,) each
    """
    form = pricing.recipe.checkpoint
    gathered = np.where(meshes.zero == 3, unit_bytes(pricing, owned), 0.0)
    nothing = meshes.zeros()
    if form == "model":
        return gathered, nothing
    return nothing, gathered if form == "units" else nothing


def quantising_bytes(workload: Workload, owned: Owned, meshes: Meshes) -> Column[Bytes]:
    """Bytes of a 16-bit linear beside its 4-bit form while a model is loaded."""
    nothing = meshes.zeros()
    if workload.training.method != "qlora" or not owned.matrices:
        return nothing
    return HALF * owned.largest[0] * owned.largest[1] + nothing


def tied_gradient(pricing: Pricing, meshes: Meshes) -> Column[Bytes]:
    """Bytes of a tied head's gradient, to which the embedding's is added.

    Returns:
        ``2 V h / t``, zero where the head has a table of its own. [B], shape (meshes,)

    References:
        PyTorch autograd: gradients of one tensor are summed before they are kept.
    """
    tied = pricing.model.tied_embeddings and not pricing.training.frozen
    table = padded_vocab(pricing, meshes) * pricing.model.hidden / meshes.tp
    return np.where(tied & (meshes.pp == 1), ELEMENT * table, 0.0)


def embedding_temporaries(pricing: Pricing, meshes: Meshes) -> tuple[Floats, Floats]:
    """Bytes that the embedding's backward makes beside its gradient's own room.

    The 16-bit gradient, ``2 V h / t``, or 2 V h where the gradient of a table split
    over its rows is made whole. With one tensor rank, freed gradients of a
    single backward are that room itself. A tied head's gradient is ``2 V h / t`` more.
    Over several tensor ranks, the sum with a whole gradient is as much again. ZeRO-3
    then reduces the root's gradients in one piece, ``w_r V h / t`` for each table.

    Returns:
        Memory on the first stage and on the last. [B], shape (meshes,) each

    References:
        DTensor's embedding over ``Shard(0)`` has a replicated gradient; FSDP2
        reduces a group's gradients as one; PyTorch's input buffer sums in place
        what nothing else holds, but no subclass of a tensor.
    """
    training, recipe, model = pricing.training, pricing.recipe, pricing.model
    nothing = meshes.zeros()
    if training.frozen:
        return nothing, nothing
    table = padded_vocab(pricing, meshes) * model.hidden
    part = table / meshes.tp
    made = ELEMENT * (table if recipe.whole_embedding_gradient else part)
    once = (meshes.zero == 0) & (meshes.micro_batches == 1)
    kept = recipe.gradients_freed & once & (not training.optimizer_in_backward)
    tied = tied_gradient(pricing, meshes)
    sums = 1.0 + ((meshes.tp > 1) & recipe.whole_embedding_gradient)
    first = np.where(kept & (meshes.tp == 1), 0.0, made) + sums * tied
    root = (meshes.zero == 3) & recipe.head_stays_whole
    reduced = np.where(root, recipe.gradient_bytes * part, 0.0)
    return first + reduced, np.where(tied > 0, 0.0, reduced)
