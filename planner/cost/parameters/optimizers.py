"""Bytes that an optimizer keeps of a unit's parameters, and moves in a step."""

import numpy as np

from planner.cost.meshes import Floats, Meshes
from planner.cost.parameters.rank_parameters import Owned
from planner.cost.pricing import Pricing
from planner.hardware.formats import block_format
from planner.hardware.reading.quantities import Bytes, Column
from planner.specs.training import PROJECTED

MOMENTS = {
    "adamw": 2.0,
    "adamw-8bit": 2.0,
    "paged-adamw": 2.0,
    "paged-adamw-8bit": 2.0,
    "lamb": 2.0,
    "lion": 1.0,
    "sgd": 0.0,
    "sgd-momentum": 1.0,
    "adafactor": 0.0,
    "muon": 1.0,
    "galore-adamw": 2.0,
    "apollo-adamw": 2.0,
}
"""Moments per parameter; Adafactor's are sums of rows and columns. [1]"""
FACTORED = 4
"""Bytes of one of Adafactor's sums. [B]"""
UPDATE_TRAFFIC = 26.0
"""HBM bytes per parameter of a shard beside its moments: norm, clip, update. [B]"""
ADAM_MOMENTS = 8.0
"""Bytes of Adam's moments in fp32. [B]"""


def moment_bytes(pricing: Pricing, owned: Owned) -> float:
    """Bytes of optimizer moments per parameter, master weights apart.

    Moments times their width: 8 for Adam and LAMB, 4 for Lion and momentum, 0 for
    plain SGD; in 8 bits ``2 (1 + 4 / 256)``, a scale with each block. Muon keeps one
    moment for matrices and Adam's two for embedding, head and norms.

    Returns:
        Memory, 0 for Adafactor, which :func:`rank_moments` has. [B]

    References:
        Chen et al. 2023, arXiv 2302.06675 (Lion); Jordan et al. 2024 (Muon);
        Dettmers et al. 2021, arXiv 2110.02861, blocks of 256.

    Leaves out that 8-bit optimizers keep tensors below 4,096 elements in 32 bits.
    Leaves out that Muon leaves a layer's norms to Adam.
    """
    training = pricing.training
    count = MOMENTS[training.optimizer]
    if training.optimizer == "muon" and not owned.matrices:
        count = MOMENTS["adamw"]
    if training.optimizer.endswith("-8bit"):
        return count * block_format("moments", "8-bit").bytes_each()
    bits = training.state_bits or pricing.recipe.state_bits
    return count * bits / 8


def rank_moments(pricing: Pricing, owned: Owned, meshes: Meshes) -> Column[Bytes]:
    """Bytes of a unit's optimizer moments on a rank, wherever they lie.

    ``P m / S``; for Adafactor 4 B for every row and column of a matrix and every
    element of a vector. A low-rank Adam projects whole matrices, so that its moments
    are not divided; tables are left to Adam.

    References:
        Shazeer and Stern 2018, arXiv 1804.04235.

    Leaves out that sums of rows are whole on ranks that share a matrix by columns.
    """
    shards = np.where(meshes.zero > 0, meshes.dp_shard, 1)
    expert_shards = np.where(meshes.zero > 0, meshes.expert_shard, 1)
    if pricing.training.optimizer == "adafactor":
        sums = owned.factored / shards + owned.factored_expert / expert_shards
        return meshes.zeros() + FACTORED * sums
    width = stage_moments(pricing, owned, meshes)
    if is_projected(pricing, owned):
        return width / 2 * (owned.projected[0] + owned.projected[1])
    return width * (owned.dense / shards + owned.expert / expert_shards)


def is_projected(pricing: Pricing, owned: Owned) -> bool:
    """Tell if the moments of a unit are those of projected gradients.

    Returns:
        True for layers under a low-rank Adam. [-]
    """
    return owned.matrices and pricing.training.optimizer in PROJECTED


def stage_moments(pricing: Pricing, owned: Owned, meshes: Meshes) -> Column[Bytes]:
    """Bytes of optimizer moments per parameter in the format of a mesh's ZeRO stage."""
    return moment_bytes(pricing, owned) * _stage_width(pricing, meshes)


def _stage_width(pricing: Pricing, meshes: Meshes) -> Floats:
    """Width of the moments at a ZeRO stage over the recipe's, 1 if the job sets it."""
    recipe, training = pricing.recipe, pricing.training
    values = np.ones(max(pricing.states) + 1)
    if training.state_bits is None and not training.optimizer.endswith("-8bit"):
        fp32 = training.frozen and training.lora.precision == "fp32"
        for stage, entry in pricing.states.items():
            bits = 32 if fp32 else entry.state_bits or recipe.state_bits
            values[stage] = bits / recipe.state_bits
    return values[meshes.zero]


def shard_traffic(pricing: Pricing, owned: Owned, updated: Floats) -> Column[Bytes]:
    """HBM bytes that the update of a rank's shard moves.

    ``(26 + 2 m) P`` with m the bytes of a parameter's moments, read and written;
    for Adam's 8 that is 42 P.

    References:
        SimuMax's count of Adam's reads and writes.
    """
    return (UPDATE_TRAFFIC + 2 * moment_bytes(pricing, owned)) * updated
