"""Groups of data parallelism, and the time of what they gather and reduce."""

from dataclasses import dataclass, replace

import numpy as np

from planner.cost import meshes as axes
from planner.cost.meshes import Floats, Groups, Meshes
from planner.cost.network import collectives as wire
from planner.cost.network.collectives import Fabric
from planner.cost.network.offload_copies import fetch_time
from planner.cost.parameters.quantised import gather_width
from planner.cost.parameters.rank_parameters import Owned
from planner.cost.parameters.whole_tensors import owner_turns
from planner.cost.pricing import Pricing
from planner.hardware.reading.quantities import Column, Seconds


@dataclass(frozen=True)
class DataGroups:
    """The groups and rates of gradient and parameter collectives."""

    pricing: Pricing
    meshes: Meshes
    links: Fabric
    shard: Groups
    replica: Groups
    expert: Groups
    copy: Groups
    timed: bool = True
    """True where times are wanted; else times are zero, and memory is as it is."""

    @classmethod
    def of(cls, pricing: Pricing, meshes: Meshes, links: Fabric) -> "DataGroups":
        """Look up the data-parallel groups once."""
        topology = pricing.topology
        return cls(
            pricing,
            meshes,
            links,
            axes.shard_groups(topology, meshes),
            axes.replica_groups(topology, meshes),
            axes.expert_data_groups(topology, meshes),
            axes.copy_groups(topology, meshes),
        )

    @property
    def near(self) -> "DataGroups":
        """The groups with which a second copy of the weights is gathered."""
        meshes = replace(self.meshes, dp_shard=self.meshes.hpz)
        return replace(self, meshes=meshes, shard=self.copy, expert=self.copy)


def gather_time(data: DataGroups, owned: Owned) -> Column[Seconds]:
    """Time to gather one unit's parameters from their shards, once a step.

    With a second copy of the weights only what trains comes from all ranks: the copy
    of frozen weights lasts.

    References:
        deepspeed/runtime/zero/stage3.py, invalidate_secondary_tensor.
    """
    sharded, copied = data.meshes.zero == 3, data.meshes.hpz > 1
    frozen = tuple(np.where(sharded, packed, 0.0) for packed in owned.packed)
    trained = owned.dense, owned.expert
    both = trained[0] + frozen[0], trained[1] + frozen[1]
    time = _turns(data, owned) + _gathered(data, owned, *both)
    if not copied.any():
        return time
    apart = _gathered(data, owned, *trained) + _gathered(data.near, owned, *frozen)
    return np.where(copied, apart, time)


def regather_time(
    data: DataGroups, owned: Owned, first: Column[Seconds]
) -> Column[Seconds]:
    """Time to gather one unit's parameters again in a step.

    A second copy of the weights, which a rank keeps its part of when it first drops
    them, is gathered among the neighbours that share the copy, until the optimizer
    changes the weights.

    Returns:
        Time, as of the first without a copy. [s], shape (meshes,)

    References:
        Wang et al. 2023, arXiv 2306.10209 (ZeRO++), section 3.2;
        deepspeed/runtime/zero/partition_parameters.py, all_gather_coalesced.

    Leaves out the time to write the copy.
    """
    copied = data.meshes.hpz > 1
    if not copied.any():
        return first
    frozen, frozen_expert = owned.packed
    sizes = owned.dense + frozen, owned.expert + frozen_expert
    return np.where(copied, _gathered(data.near, owned, *sizes), first)


def _gathered(data: DataGroups, owned: Owned, dense: Floats, expert: Floats) -> Floats:
    """Time to gather some parameters of a unit, fetched from the host if need be."""
    pricing, meshes = data.pricing, data.meshes
    width = gather_width(pricing, linears=owned.matrices)
    time = _bucketed(data, dense, width, data.shard)
    time = time + _bucketed(data, expert, width, data.expert)
    if not pricing.offload.parameters:
        return time
    shards = dense / meshes.dp_shard + expert / meshes.expert_shard
    return time + np.where(meshes.zero == 3, fetch_time(pricing, shards), 0.0)


def scatter_time(data: DataGroups, owned: Owned) -> Column[Seconds]:
    """Time to reduce one unit's gradients on to their shards.

    Without shards (ZeRO 0) an all-reduce; with hybrid sharding the shards are
    then all-reduced between the replicas.
    """
    width = data.pricing.recipe.gradient_bytes
    unsharded = data.meshes.zero == 0
    dense = np.where(
        unsharded,
        _bucketed(data, owned.dense, width, data.shard, reduce=True),
        _bucketed(data, owned.dense, width, data.shard)
        + _bucketed(
            data, owned.dense / data.meshes.dp_shard, width, data.replica, reduce=True
        ),
    )
    expert = np.where(
        unsharded,
        _bucketed(data, owned.expert, width, data.expert, reduce=True),
        _bucketed(data, owned.expert, width, data.expert),
    )
    return dense + expert + _turns(data, owned)


def _turns(data: DataGroups, owned: Owned) -> Column[Seconds]:
    """Time that the owners of whole tensors add by taking turns. [s]."""
    times = owner_turns(data.pricing, data.links, data.shard, owned.tensors)
    return np.where((data.meshes.zero == 1) | (data.meshes.zero == 2), times, 0.0)


def _bucketed(
    data: DataGroups,
    parameters: Floats,
    width: float,
    group: Groups,
    *,
    reduce: bool = False,
) -> Floats:
    """Time of a unit's share of collectives that each move one bucket. [s].

    Under ZeRO-3 the unit is its own bucket, or several where its tensors travel
    apart: ``k T(P / k)``, k times the latency.
    """
    if not parameters.any():
        return np.zeros(len(parameters))
    profile = data.pricing.profile
    apart = np.where(data.meshes.zero == 3, profile.collectives_per_unit, 1)
    bucket = parameters / apart
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
