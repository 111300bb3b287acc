"""Bytes of the states of parameters, and the time of their update."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from planner.cost.kernels import gemm_rate
from planner.cost.meshes import Floats, Ints, Meshes
from planner.cost.network.offload_copies import (
    host_update_time,
    kept_share,
    paging_time,
)
from planner.cost.parameters.optimizers import rank_moments, shard_traffic
from planner.cost.parameters.quantised import HALF
from planner.cost.parameters.rank_parameters import Owned
from planner.cost.parameters.weights import (
    keeps_quantised,
    weight_copies,
)
from planner.cost.pricing import Pricing
from planner.cost.streaming import stream_rate
from planner.hardware.reading.quantities import Bytes, Column, Seconds
from planner.specs.frameworks.states import StateBytes

FP32_ADAPTERS = {
    0: StateBytes(weights=4, gradients=4),
    1: StateBytes(weights=4, gradients=4),
    2: StateBytes(weights=4, sharded_gradients=4),
    3: StateBytes(sharded_weights=4, sharded_gradients=4),
}
"""Bytes per parameter of fp32 adapters, which need no master copy. [B]"""
LOCAL_TRAFFIC = 12.0
"""HBM bytes per parameter of a whole gradient buffer: zeroing and scaling. [B]"""


@dataclass(frozen=True)
class States:
    """Bytes of one unit's states on one rank. [B], shape (meshes,)."""

    weights: Floats
    gradients: Floats
    optimizer: Floats

    @property
    def total(self) -> Column[Bytes]:
        """Sum of weights, gradients and optimizer states. [B], shape (meshes,)."""
        return self.weights + self.gradients + self.optimizer


def state_bytes(pricing: Pricing, owned: Owned, meshes: Meshes) -> States:
    """Bytes of weights, gradients and optimizer states of one unit. [B].

    ``P (whole + divided / S)`` with S the shard group of the class: D_c for
    dense parameters, the copies of an expert for expert ones.

    References:
        Rajbhandari et al., arXiv:1910.02054; Megatron-LM dist_optimizer.md.
    """
    parts, shares = [], kept_share(pricing, meshes)
    for name in ("weights", "gradients", "optimizer"):
        full, divided = (
            _by_stage(pricing, meshes, prefix + name) for prefix in ("", "sharded_")
        )
        if name == "gradients":
            lasting = ~appears_late(pricing, meshes)
            full, divided = lasting * full, lasting * divided
            full = full + _replica_buckets(pricing, meshes)
        parts.append(shares[name] * _spread(owned, meshes, full, divided))
    weights, gradients, optimizer = parts
    kept = shares["weights"] * held_bytes(pricing, owned, meshes)
    kept = kept + _whole_scales(owned, meshes, shares["weights"])
    moments = shares["moments"] * rank_moments(pricing, owned, meshes)
    kept = kept + reference_bytes(pricing, owned, meshes)
    kept = kept + _copy_bytes(pricing, owned, meshes, shares["weights"])
    return States(weights + kept, gradients, optimizer + moments)


def _spread(owned: Owned, meshes: Meshes, full: Floats, divided: Floats) -> Floats:
    """Bytes of what a rank holds whole and in shards of every trained parameter."""
    dense = owned.dense * (full + divided / meshes.dp_shard)
    return dense + owned.expert * (full + divided / meshes.expert_shard)


def _copy_bytes(
    pricing: Pricing, owned: Owned, meshes: Meshes, here: Floats | float
) -> Floats:
    """Bytes of a second copy of the weights, and a reference's: ``w P / h``.

    Source: deepspeed/runtime/zero/partition_parameters.py, _partition_param_sec: as
    the shards are kept, frozen weights too, beside the shards that are offloaded.
    """
    near = replace(meshes, dp_shard=meshes.hpz)
    divided = _by_stage(pricing, meshes, "sharded_weights")
    own = _spread(owned, near, meshes.zeros(), divided)
    own = here * (own + held_bytes(pricing, owned, near))
    copied = own + reference_bytes(pricing, owned, near)
    return np.where(meshes.hpz > 1, copied, 0.0)


def reference_bytes(pricing: Pricing, owned: Owned, meshes: Meshes) -> Column[Bytes]:
    """Weights of a frozen copy of a unit, the reference of preference training.

    ``2 P``, over the shard group under ZeRO-3: prepare_fsdp and prepare_deepspeed of
    TRL shard it as the policy; else every rank holds it whole.

    Returns:
        Memory, zero without a copy. [B], shape (meshes,)

    References:
        trl 1.16.0 trainer/dpo_trainer.py, ref_model.
    """
    if pricing.training.reference != "copy":
        return meshes.zeros()
    dense, expert = (
        _divisor(meshes, shards) for shards in (meshes.dp_shard, meshes.expert_shard)
    )
    full = (owned.dense + owned.frozen) / dense
    return HALF * (full + (owned.expert + owned.frozen_expert) / expert)


def appears_late(pricing: Pricing, meshes: Meshes) -> npt.NDArray[np.bool_]:
    """Tell where gradients are not there yet when the activations are.

    Gradients freed after every step are made one by one in the only backward of the
    next. They take the room of the activations that go. They are never kept where the
    optimizer runs inside the backward. Shards are made on a stream of their own. The
    allocator lends its blocks to no other stream until it has to give caches back. A
    recipe says if shards are counted as kept or as freed.

    Returns:
        True where gradients are no part of the states. [-], shape (meshes,)
    """
    recipe = pricing.recipe
    freed = recipe.gradients_freed & ((meshes.zero == 0) | recipe.shards_freed)
    late = freed & (meshes.micro_batches == 1)
    return np.asarray(late | pricing.training.optimizer_in_backward)


def late_gradients(pricing: Pricing, owned: Owned, meshes: Meshes) -> Column[Bytes]:
    """Gradients of a unit that take the place of its activations.

    Returns:
        Memory, zero where gradients are part of the states. [B], shape (meshes,)
    """
    gradient_width = _by_stage(pricing, meshes, "gradients")
    divided = _by_stage(pricing, meshes, "sharded_gradients")
    late = appears_late(pricing, meshes)
    kept = late & (not pricing.training.optimizer_in_backward)
    return np.where(kept, _spread(owned, meshes, gradient_width, divided), 0.0)


def _replica_buckets(pricing: Pricing, meshes: Meshes) -> Column[Bytes]:
    """Buckets beside the gradients, in which replicas reduce them. [B]."""
    return _by_stage(pricing, meshes, "replica_buckets") * (meshes.dp > 1)


def waiting_bytes(pricing: Pricing, owned: Owned, meshes: Meshes) -> Column[Bytes]:
    """Bytes of a unit's whole gradients that wait for their reduce-scatter.

    ``w P``, at the ZeRO stages where the framework lets them wait; under ZeRO-3 only
    while there is another micro-batch to wait for.
    """
    recipe = pricing.recipe
    waits = np.isin(meshes.zero, recipe.accumulates_at) & recipe.accumulates_unsharded
    waits &= (meshes.zero < 3) | (meshes.micro_batches > 1)
    full = recipe.accumulator_bytes * (owned.dense + owned.expert)
    return np.where(waits, full, 0.0)


def unsaved_bytes(pricing: Pricing, meshes: Meshes) -> States:
    """Bytes of a parameter that no checkpoint holds: copies and gradients. [B]."""
    names = ("computing", "gradients", "sharded_gradients", "step_gradients")
    copies, gradients, shards, step = (_by_stage(pricing, meshes, n) for n in names)
    return States(copies, gradients + shards, step)


def _by_stage(pricing: Pricing, meshes: Meshes, name: str) -> Floats:
    """Bytes per parameter of one entry of the recipe, by each mesh's ZeRO stage."""
    states = pricing.states
    if pricing.training.frozen and pricing.training.lora.precision == "fp32":
        states = states | FP32_ADAPTERS
    values = np.zeros(max(states) + 1)
    for stage, entry in states.items():
        values[stage] = getattr(entry, name)
    return values[meshes.zero]


def held_bytes(pricing: Pricing, owned: Owned, meshes: Meshes) -> Column[Bytes]:
    """Bytes of frozen weights, and of weights kept in a quantised form.

    Frozen: 2 B beside adapters, less in linears that are quantised; as the framework
    keeps its weights where parts of the model are frozen. Under fp8 a linear that
    keeps its quantised weight adds 1 B. A transposed 1 B comes on top on GPUs whose
    tensor cores read one layout only; 2 B go where no 16-bit copy stays.

    References:
        Dettmers et al. 2023, arXiv 2305.14314 (NF4); TransformerEngine's
        Float8Tensor, MXFP8Tensor and NVFP4Tensor: one copy for each direction.
    """
    dense, expert = (
        _divisor(meshes, shards) for shards in (meshes.dp_shard, meshes.expert_shard)
    )
    saved = owned.saved / dense + owned.saved_expert / expert
    frozen = _frozen_bytes(pricing, owned, meshes) - saved
    if not keeps_quantised(pricing):
        return meshes.zeros() + frozen
    copies = np.full(len(meshes), float(weight_copies(pricing)))
    if pricing.recipe.fp8_primary:
        copies -= HALF * (pricing.training.frozen | (meshes.zero > 0))
    return frozen + copies * owned.quantised / dense


def _whole_scales(owned: Owned, meshes: Meshes, here: Floats | float) -> Column[Bytes]:
    """Scales of quantised weights beside those that are counted in the shards. [B].

    The flat parameter of a unit has the weights; ``quant_state`` is an attribute, whole
    on the GPU of every rank whatever is sharded or offloaded (bitsandbytes
    nn/modules.py, Params4bit; transformers integrations/bitsandbytes.py).
    """
    counted = here / meshes.dp_shard
    return np.where(meshes.zero == 3, owned.scales * (1.0 - counted), 0.0)


def _frozen_bytes(pricing: Pricing, owned: Owned, meshes: Meshes) -> Floats:
    """Frozen weights: 2 B beside adapters, else as the framework keeps weights."""
    full, divided = np.full(len(meshes), float(HALF)), meshes.zeros()
    if pricing.training.frozen:
        full, divided = np.where(meshes.zero == 3, [divided, full], [full, divided])
    else:
        full = _by_stage(pricing, meshes, "weights")
        divided = _by_stage(pricing, meshes, "sharded_weights")
    return owned.frozen * (full + divided / meshes.dp_shard) + owned.frozen_expert * (
        full + divided / meshes.expert_shard
    )


def _divisor(meshes: Meshes, shards: Ints) -> Ints:
    """Ranks that share weights: the shard group under ZeRO-3, else one."""
    return np.where(meshes.zero == 3, shards, 1)


def optimizer_time(pricing: Pricing, owned: Owned, meshes: Meshes) -> Column[Seconds]:
    """Time of one unit's optimizer step.

    ``(42 P / S + 12 P [whole gradients]) / (eta W)`` for Adam; what the host keeps
    it updates itself; paged moments come and go; Muon adds its Newton-Schulz
    iterations at the GEMM rate.

    References:
        SimuMax's count of Adam's reads and writes.
    """
    shards = np.where(meshes.zero > 0, meshes.dp_shard, 1)
    expert_shards = np.where(meshes.zero > 0, meshes.expert_shard, 1)
    updated = owned.dense / shards + owned.expert / expert_shards
    full = np.where(meshes.zero < 2, owned.dense + owned.expert, 0.0)
    here = 1.0 - pricing.offload.optimizer
    moved = here * shard_traffic(pricing, owned, updated) + LOCAL_TRAFFIC * full
    time = moved / stream_rate(pricing)
    if pricing.offload.optimizer:
        time = time + host_update_time(pricing, updated)
    if pricing.training.paged:
        time = time + paging_time(pricing, rank_moments(pricing, owned, meshes))
    if pricing.training.optimizer == "muon" and not pricing.training.frozen:
        time = time + owned.orthogonal / shards / gemm_rate(pricing).flops
    return time
