"""Parameters on a rank, the bytes of their states, and what data parallelism sends."""

from dataclasses import dataclass

import numpy as np

from planner.cost import collectives as wire
from planner.cost import meshes as axes
from planner.cost.collectives import Fabric
from planner.cost.meshes import Floats, Groups, Meshes
from planner.cost.workload import Workload
from planner.models.blocks import LayerKind
from planner.specs.framework import StateBytes

MOMENTS = {"adamw": 8.0, "adamw-8bit": 2.0, "sgd-momentum": 4.0}
"""Bytes of optimizer moments per parameter, master weights apart. [B]"""
GRADIENT_ELEMENT = 2
"""Bytes of one gradient as autograd makes it. [B]"""
SHARD_TRAFFIC = 42.0
"""HBM bytes that Adam moves per parameter of its shard: norm, clip, update. [B]"""
LOCAL_TRAFFIC = 12.0
"""The same per parameter of a whole gradient buffer: zeroing and scaling. [B]"""


@dataclass(frozen=True)
class Owned:
    """Parameters of one unit (a layer, the embedding, the head) on one rank."""

    dense: Floats
    """Divided by tp, or replicated. [1], shape (meshes,)"""
    expert: Floats
    """Of the local experts. [1], shape (meshes,)"""


@dataclass(frozen=True)
class States:
    """Bytes of one unit's states on one rank. [B], shape (meshes,)."""

    weights: Floats
    gradients: Floats
    optimizer: Floats

    @property
    def total(self) -> Floats:
        """All three. [B], shape (meshes,)."""
        return self.weights + self.gradients + self.optimizer


def layer_owned(layer: LayerKind, meshes: Meshes) -> Owned:
    """Parameters of one layer on a rank: ``P_s / t + P_r`` and ``P_e / (e x)``.

    Args:
        layer: Kind of layer.
        meshes: Any meshes.

    Returns:
        Parameters. [1], shape (meshes,)
    """
    dense = layer.sharded_parameters / meshes.tp + layer.replicated_parameters
    return Owned(dense, layer.expert_parameters / (meshes.ep * meshes.etp))


def embedding_owned(workload: Workload, meshes: Meshes) -> Owned:
    """Parameters of the embedding on a rank: ``V h / t`` and the positions.

    Args:
        workload: The job.
        meshes: Any meshes.

    Returns:
        Parameters. [1], shape (meshes,)
    """
    model = workload.model
    dense = model.vocab * model.hidden / meshes.tp + model.position_parameters
    return Owned(dense, np.zeros(len(meshes)))


def head_owned(workload: Workload, meshes: Meshes) -> Owned:
    """Parameters of final norm, head and MTP modules on a rank.

    A tied head costs a second copy of the table where it lies on another stage.

    Args:
        workload: The job.
        meshes: Any meshes.

    Returns:
        Parameters. [1], shape (meshes,)
    """
    model = workload.model
    copies = np.where((meshes.pp > 1) | (not model.tied_embeddings), 1.0, 0.0)
    dense = copies * model.vocab * model.hidden / meshes.tp
    dense = dense + model.final_norm_parameters
    expert = np.zeros(len(meshes))
    if model.mtp_layers:
        module = layer_owned(model.mtp_kind, meshes)
        projection = 2.0 * model.hidden**2 / meshes.tp + 3 * model.final_norm_parameters
        dense = dense + model.mtp_layers * (module.dense + projection)
        expert = expert + model.mtp_layers * module.expert
    return Owned(dense, expert)


def state_bytes(workload: Workload, owned: Owned, meshes: Meshes) -> States:
    """Bytes of weights, gradients and optimizer states of one unit.

    ``P (whole + divided / S)`` with S the shard group of the class: D_c for
    dense parameters, the copies of an expert for expert ones.

    Args:
        workload: The job.
        owned: Parameters of the unit on a rank.
        meshes: Any meshes.

    Returns:
        Bytes by category. [B], shape (meshes,)

    References:
        Rajbhandari et al., arXiv:1910.02054; Megatron-LM dist_optimizer.md.
    """
    moments = MOMENTS[workload.training.optimizer]
    parts = []
    for name in ("weights", "gradients", "optimizer"):
        whole, divided = (
            _by_stage(workload, meshes, prefix + name) for prefix in ("", "sharded_")
        )
        if name == "optimizer":
            whole = whole + np.where(meshes.zero == 0, moments, 0.0)
            divided = divided + np.where(meshes.zero > 0, moments, 0.0)
        parts.append(
            owned.dense * (whole + divided / meshes.dp_shard)
            + owned.expert * (whole + divided / meshes.expert_shard)
        )
    return States(*parts)


def root_bytes(workload: Workload, meshes: Meshes) -> Floats:
    """Head weights that ZeRO-3 leaves whole from forward to backward.

    The gathered head and its whole gradient: ``V h / t (w_g + 2)``.

    Args:
        workload: The job.
        meshes: Any meshes.

    Returns:
        Memory, zero below ZeRO-3. [B], shape (meshes,)

    References:
        PyTorch FSDP2: the root's units are not resharded after forward, and
        their gradients wait for the root's post-backward.
    """
    head = workload.model.vocab * workload.model.hidden / meshes.tp
    each = workload.recipe.gather_bytes + GRADIENT_ELEMENT
    return np.where(meshes.zero == 3, head * each, 0.0)


def _by_stage(workload: Workload, meshes: Meshes, name: str) -> Floats:
    """Bytes per parameter of one entry of the recipe, by each mesh's ZeRO stage."""
    states: dict[int, StateBytes] = workload.recipe.states
    values = np.zeros(max(states) + 1)
    for stage, entry in states.items():
        values[stage] = getattr(entry, name)
    return values[meshes.zero]


@dataclass(frozen=True)
class DataGroups:
    """The groups and rates of gradient and parameter collectives."""

    workload: Workload
    meshes: Meshes
    links: Fabric
    shard: Groups
    replica: Groups
    expert: Groups

    @classmethod
    def of(cls, workload: Workload, meshes: Meshes, links: Fabric) -> "DataGroups":
        """Look up the data-parallel groups once.

        Args:
            workload: The job.
            meshes: Any meshes.
            links: Measured rates.

        Returns:
            Groups and rates.
        """
        topology = workload.topology
        return cls(
            workload,
            meshes,
            links,
            axes.shard_groups(topology, meshes),
            axes.replica_groups(topology, meshes),
            axes.expert_data_groups(topology, meshes),
        )


def gather_time(data: DataGroups, owned: Owned) -> Floats:
    """Time to gather one unit's parameters from their shards.

    Args:
        data: Groups and rates.
        owned: Parameters of the unit on a rank.

    Returns:
        Time. [s], shape (meshes,)
    """
    width = data.workload.recipe.gather_bytes
    dense = _bucketed(data, owned.dense, width, data.shard)
    return dense + _bucketed(data, owned.expert, width, data.expert)


def scatter_time(data: DataGroups, owned: Owned) -> Floats:
    """Time to reduce one unit's gradients on to their shards.

    Without shards (ZeRO 0) an all-reduce; with hybrid sharding the shards are
    then all-reduced between the replicas.

    Args:
        data: Groups and rates.
        owned: Parameters of the unit on a rank.

    Returns:
        Time. [s], shape (meshes,)
    """
    width = data.workload.recipe.gradient_bytes
    whole = data.meshes.zero == 0
    dense = np.where(
        whole,
        _bucketed(data, owned.dense, width, data.shard, reduce=True),
        _bucketed(data, owned.dense, width, data.shard)
        + _bucketed(
            data, owned.dense / data.meshes.dp_shard, width, data.replica, reduce=True
        ),
    )
    expert = np.where(
        whole,
        _bucketed(data, owned.expert, width, data.expert, reduce=True),
        _bucketed(data, owned.expert, width, data.expert),
    )
    return dense + expert


def _bucketed(
    data: DataGroups,
    parameters: Floats,
    width: float,
    group: Groups,
    *,
    reduce: bool = False,
) -> Floats:
    """A unit's share of collectives that each move one bucket."""
    profile = data.workload.profile
    bucket = parameters
    if profile.bucket_parameters is not None:
        per_rank = profile.bucket_parameters_per_rank * group.size
        bucket = np.maximum(profile.bucket_parameters, per_rank)
    message = bucket * width
    time = (
        wire.all_reduce_time(data.links, message, group)
        if reduce
        else wire.all_gather_time(data.links, message, group)
    )
    share = np.divide(parameters, bucket, out=np.zeros(len(time)), where=bucket > 0)
    return np.where(parameters > 0, time * share, 0.0)


def optimizer_time(workload: Workload, owned: Owned, meshes: Meshes) -> Floats:
    """Time of one unit's optimizer step.

    ``(42 P / S + 12 P [whole gradients]) / (eta W)``.

    Args:
        workload: The job.
        owned: Parameters of the unit on a rank.
        meshes: Any meshes.

    Returns:
        Time. [s], shape (meshes,)

    References:
        SimuMax's count of Adam's reads and writes.
    """
    shards = np.where(meshes.zero > 0, meshes.dp_shard, 1)
    expert_shards = np.where(meshes.zero > 0, meshes.expert_shard, 1)
    updated = owned.dense / shards + owned.expert / expert_shards
    whole = np.where(meshes.zero < 2, owned.dense + owned.expert, 0.0)
    moved = SHARD_TRAFFIC * updated + LOCAL_TRAFFIC * whole
    bandwidth = workload.gpu.memory_bandwidth * workload.calibration.memory.efficiency
    return moved / bandwidth
