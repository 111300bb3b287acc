"""GPU memory of NCCL's communicators, by the groups that they span."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from planner.cost import meshes as axes
from planner.cost.kernels import ELEMENT
from planner.cost.memory.tokens import tokens
from planner.cost.meshes import Floats, Groups, Meshes
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.hardware.nccl import CommunicatorMemory, nccl
from planner.hardware.reading.quantities import Bytes, Column

GB = 1e9
NEIGHBOURS = 2
"""Neighbours of a rank in a ring, a chain, and on average a tree over domains. [1]"""
BOTH_WAYS = 2
"""Buffers of a connection: one to send from and one to receive into. [1]"""

Mask = npt.NDArray[np.bool_]


def communication_bytes(pricing: Pricing, meshes: Meshes) -> Column[Bytes]:
    """Bytes that NCCL and overlapped exchanges have allocated on a rank.

    One communicator per group in use, each with the buffers of its connections;
    or a stack's own figure for every communicator. Exchanges over the tensor group
    that run beside their GEMMs have registered buffers of ``2 h tau`` each.

    Leaves out that a communicator's buffers appear with its first use. Leaves out the
    memory of libraries other than NCCL for the exchange of experts.
    """
    communicator = pricing.profile.communicator_gb
    total = meshes.zeros()
    for used, size in _communicators(pricing, meshes):
        if used.any():
            total += np.where(
                used, size() if communicator is None else communicator * GB, 0.0
            )
    return total + _overlap_bytes(pricing, meshes)


def _overlap_bytes(pricing: Pricing, meshes: Meshes) -> Column[Bytes]:
    """Registered activations of tensor exchanges that overlap. [B]."""
    count = pricing.recipe.overlap_buffers * pricing.takes("tp_overlap", meshes)
    message = ELEMENT * pricing.model.hidden * tokens(pricing, meshes)
    return np.where(meshes.tp > 1, count * message, 0.0)


def _communicators(
    workload: Workload, meshes: Meshes
) -> Iterator[tuple[Mask, Callable[[], Floats]]]:
    """Communicators of the axes: a mask of use, and a function for the size. [B].

    The world's; tensor, context and data groups; both parts of a context group that
    Ulysses shares with a ring; stages, which send to their
    neighbours; the two stages that share a tied table; and experts, each of whose
    ranks sends to all others of its group.
    """
    topology = workload.topology
    kept = nccl().memory
    arch = workload.gpu.arch

    def of(look_up: Callable[..., Groups]) -> Callable[[], Floats]:
        return lambda: collective_bytes(kept, arch, look_up(topology, meshes))

    world = axes.world_groups(topology, meshes)
    yield world.size > 1, lambda: collective_bytes(kept, arch, world)
    yield meshes.tp > 1, of(axes.tensor_groups)
    yield meshes.cp > 1, of(axes.context_groups)
    mixed = (meshes.ulysses > 1) & (meshes.ulysses < meshes.cp)
    yield mixed, lambda: all_to_all_bytes(kept, axes.ulysses_groups(topology, meshes))
    yield mixed, of(axes.outer_context_groups)
    yield meshes.pp > 1, lambda: _stage_bytes(kept, workload, meshes)
    tied = (meshes.pp > 1) & workload.model.tied_embeddings
    yield tied, lambda: collective_bytes(kept, arch, _ends(workload, meshes))
    yield meshes.dp * meshes.cp > 1, of(axes.shard_groups)
    yield meshes.dp_shard < meshes.dp * meshes.cp, of(axes.replica_groups)
    yield meshes.hpz > 1, of(axes.copy_groups)
    if workload.model.expert_parameters:
        yield (
            meshes.ep > 1,
            lambda: all_to_all_bytes(kept, axes.expert_groups(topology, meshes)),
        )
        yield meshes.etp > 1, of(axes.expert_tensor_groups)
        yield meshes.expert_dp > 1, of(axes.expert_data_groups)


def _ends(workload: Workload, meshes: Meshes) -> Groups:
    """Groups of the first stage and the last: in one domain where all stages are."""
    stages = axes.stage_groups(workload.topology, meshes)
    apart = stages.domains > 1
    return replace(
        stages,
        size=np.full_like(stages.size, 2),
        ranks_per_domain=np.where(apart, 1, 2),
        domains=np.where(apart, 2, 1),
    )


def collective_bytes(
    kept: CommunicatorMemory, arch: str, group: Groups
) -> Column[Bytes]:
    """Buffers of a communicator for collectives.

    Inside a domain each rank receives on every channel from its neighbour in the
    ring. With more than two ranks it also receives from the other neighbour in the
    tree. Each of a domain's ranks passes the channels of one NIC on. With two domains
    that takes two buffers, to and from the other domain. With more domains it takes
    the buffers of the ring and of two neighbours in the tree. Where the switch
    reduces, two more buffers per channel and head::

        (c_in n_in + c_nic n_out) (LL + LL128 + Simple) + 2 c_nvls heads buffer

    Returns:
        Memory, zero for one rank. [B], shape (meshes,)
    """
    inside, domains = group.ranks_per_domain, group.domains
    channels = kept.channels.get(arch, kept.default_channels)
    nics = kept.channels_per_nic * inside
    within = np.where(domains > 1, np.minimum(channels, nics), channels)
    received = np.minimum(inside - 1, NEIGHBOURS)
    ring, tree = BOTH_WAYS, BOTH_WAYS * NEIGHBOURS
    passed = np.where(domains > NEIGHBOURS, ring + tree, ring * (domains > 1))
    connections = within * received + kept.channels_per_nic * passed
    heads = np.minimum(inside, kept.nvls_heads) * (inside >= kept.nvls_least)
    switched = BOTH_WAYS * kept.nvls_channels.get(arch, 0) * kept.nvls_buffer
    size: Floats = connections * kept.connection + heads * switched
    return size


def all_to_all_bytes(kept: CommunicatorMemory, group: Groups) -> Column[Bytes]:
    """Buffers of a communicator in which every rank sends to every other.

    Each peer in the domain has connections of its own; all others share one pool
    for what is sent and one for what is received.

    Returns:
        Memory, zero for one rank. [B], shape (meshes,)
    """
    peers = group.ranks_per_domain - 1
    near = peers * kept.p2p_channels_per_peer * kept.connection
    size: Floats = near + (group.domains > 1) * pools(kept)
    return size


def pools(kept: CommunicatorMemory) -> Bytes:
    """Bytes of the two pools of sends and receives over the network. [B]."""
    return BOTH_WAYS * kept.p2p_channels * kept.net_steps * kept.net_chunk


def _stage_bytes(
    kept: CommunicatorMemory, workload: Workload, meshes: Meshes
) -> Column[Bytes]:
    """Buffers for sends to, and receives from, the stages before and after. [B]."""
    _, crosses = axes.stage_bandwidth(workload.topology, meshes)
    neighbours = np.minimum(meshes.pp - 1, NEIGHBOURS)
    near = neighbours * kept.p2p_channels_per_peer * kept.connection
    return np.where(crosses, pools(kept), near)
