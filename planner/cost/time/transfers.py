"""Time that data parallelism, stage borders and stragglers add around the layers."""

import numpy as np

from planner.cost import meshes as axes
from planner.cost.kernels import ELEMENT
from planner.cost.memory.tokens import sequence_split
from planner.cost.meshes import Floats, Ints, Meshes
from planner.cost.network import collectives as wire
from planner.cost.parameters.data_groups import (
    DataGroups,
    gather_time,
    regather_time,
    scatter_time,
)
from planner.cost.parameters.rank_parameters import Owned
from planner.cost.pricing import Pricing
from planner.cost.streaming import stream_rate
from planner.cost.time.columns import Context, Parts
from planner.cost.time.contention import contention
from planner.hardware.reading.quantities import BytesPerSecond, Column, Seconds

BESIDE = ("overlap_param_gather", "overlap_grad_reduce")
"""Switches of a stack whose gathers, whose reductions run beside compute. [text]"""


def sharded_parts(
    data: DataGroups, owned: Owned, forward: Parts, backward: Parts
) -> tuple[Parts, Parts]:
    """Add the exposed time of ZeRO-3's collectives beside a unit's passes.

    Gathered parameters arrive in one buffer and are copied into place on the compute
    stream, gradients into their buffer. That time, ``c P / (eta W)``, hides behind
    nothing, and no more does a collective of a stack that runs it alone. A forward is
    the mean over the micro-batches of a step, of which the first gathers from all
    ranks.

    Returns:
        Forward and backward, unchanged below ZeRO-3. [s], shape (meshes,)
    """
    sharded = data.meshes.zero == 3
    if not sharded.any():
        return forward, backward
    gather, scatter = gather_time(data, owned), scatter_time(data, owned)
    again = regather_time(data, owned, gather)
    there, back = buffer_copies(data, owned)
    gathers, reduces = (
        data.pricing.takes(name, data.meshes).astype(np.float64) for name in BESIDE
    )

    def shown(moved: Floats, hidden: Floats, other: Floats, kappa: Floats) -> Floats:
        excess = np.maximum(hidden - other, 0.0) + kappa * np.minimum(hidden, other)
        return moved - hidden + excess

    def ahead(moved: Floats) -> Floats:
        hidden = gathers * moved
        kappa = contention(data, owned, hidden, gathers=gathers, reduces=0.0)
        return there + shown(moved, hidden, forward.total, kappa)

    once = ahead(gather)
    if again is not gather:
        later = ahead(again)
        once = later + (once - later) / data.meshes.micro_batches
    again = again * owned.passes_back
    behind, passes = gathers * again + reduces * scatter, gathers * owned.passes_back
    kappa = contention(data, owned, behind, gathers=passes, reduces=reduces)
    both = back + shown(again + scatter, behind, backward.total, kappa)
    return (
        forward.plus("dp_comm", np.where(sharded, once, 0.0)),
        backward.plus("dp_comm", np.where(sharded, both, 0.0)),
    )


def buffer_copies(data: DataGroups, owned: Owned) -> tuple[Floats, Floats]:
    """Time of the copies out of a gather's buffer, into a reduce-scatter's.

    Returns:
        Forward and backward, which may gather again. [s], shape (meshes,)
    """
    rate, profile = stream_rate(data.pricing), data.pricing.profile
    trained = owned.dense + owned.expert
    parameters = trained + owned.frozen + owned.frozen_expert
    there = profile.gather_copy * parameters / rate
    return there, there * owned.passes_back + profile.scatter_copy * trained / rate


def unit_transfers(data: DataGroups, owned: Owned) -> tuple[Floats, Floats]:
    """Per-step gather and reduce-scatter of one unit outside the layers. [s].

    ZeRO-0 gathers nothing; ZeRO-3 does both inside its layers.
    """
    zero = data.meshes.zero
    gather = np.where((zero == 1) | (zero == 2), gather_time(data, owned), 0.0)
    return gather, np.where(zero < 3, scatter_time(data, owned), 0.0)


def contention_time(
    data: DataGroups, owned: Owned, gather: Column[Seconds], scatter: Column[Seconds]
) -> Column[Seconds]:
    """Compute lost to collectives that run beside it, once per step."""
    groups = -(-data.meshes.micro_batches // scatter_every(data.pricing, data.meshes))
    job, meshes = data.pricing, data.meshes
    gathered = gather * contention(data, owned, gather, reduces=0.0)
    reduced = scatter * contention(data, owned, scatter, gathers=0.0)
    lost = gathered * job.takes("overlap_param_gather", meshes)
    return lost + groups * reduced * job.takes("overlap_grad_reduce", meshes)


def edge_transfers(data: DataGroups, owned: list[Owned]) -> tuple[Floats, Floats]:
    """Gather before the first forward and scatter after the last backward.

    Args:
        owned: Parameters of each layer kind on a rank.

    Returns:
        One layer's gather and scatter, the smallest kind's. [s], shape (meshes,)
    """
    zero = data.meshes.zero
    gathers = np.minimum.reduce([gather_time(data, own) for own in owned])
    scatters = np.minimum.reduce([scatter_time(data, own) for own in owned])
    return np.where(zero > 0, gathers, 0.0), scatters


def scatter_every(pricing: Pricing, meshes: Meshes) -> Ints:
    """Micro-batches per gradient reduce-scatter.

    All micro-batches of the step, unless the framework keeps gradients sharded
    between: then a group of p.
    """
    grouped = pricing.recipe.gradients_reduced_per_group & (meshes.zero == 2)
    every = np.where(grouped, meshes.pp, meshes.micro_batches)
    return np.minimum(every, meshes.micro_batches)


def stage_transfer(
    context: Context, joint: Column[BytesPerSecond] | None = None
) -> Column[Seconds]:
    """Time to hand one micro-batch's activations to the next stage.

    ``2 h tau sigma`` bytes; the tensor ranks send side by side. A stack that
    scatters sends ``2 h tau / t`` from each, and gathers on the next stage.

    Args:
        joint: Line rate of the border, for a transfer to another pool. [B/s],
            shape (meshes,)

    Returns:
        Time, zero without a pipeline. [s], shape (meshes,)

    References:
        Narayanan et al., arXiv:2104.04473, section 4.1: scatter/gather.
    """
    pricing, meshes = context.pricing, context.meshes
    rate, crosses = axes.stage_bandwidth(pricing.topology, meshes)
    if joint is not None:
        rate, crosses = joint, np.ones(len(meshes), dtype=bool)
    message = ELEMENT * pricing.model.stream_width * context.local
    split = sequence_split(meshes)
    scattered = pricing.profile.stage_scatter & (split == 1) & (meshes.tp > 1)
    share = np.where(scattered, 1.0 / meshes.tp, split)
    time = wire.send_time(context.links, message * share, rate, crosses)
    gather = wire.all_gather_time(context.links, message, context.tensor)
    time = time + np.where(scattered, gather, 0.0)
    return np.where(meshes.pp > 1, time, 0.0)


def twin_time(data: DataGroups, owned: Owned) -> Column[Seconds]:
    """Time to add one unit's gradients to its copy's on another stage.

    In DualPipe two copies of the model each see half of the batch. Each rank sends
    what it has reduced, ``g P / S``, to the rank that holds the same part of the copy.
    It gets as much, at the rate of neighbouring stages.

    Returns:
        Time, zero without a pipeline. [s], shape (meshes,)

    Leaves out that the two ranks may be further apart than neighbouring stages. Leaves
    out that they could share one optimizer's states: each copy has its own.
    """
    pricing, meshes = data.pricing, data.meshes
    dense = np.where(meshes.zero > 0, meshes.dp_shard, 1)
    expert = np.where(meshes.zero > 0, meshes.expert_shard, 1)
    reduced = owned.dense / dense + owned.expert / expert
    rate, crosses = axes.stage_bandwidth(pricing.topology, meshes)
    message = pricing.recipe.gradient_bytes * reduced
    time = wire.send_time(data.links, message, rate, crosses)
    return np.where((meshes.pp > 1) & (reduced > 0), time, 0.0)


def straggler_factor(pricing: Pricing, meshes: Meshes) -> Floats:
    """Slowest of n nodes over their mean: ``1 + sigma sqrt(2 ln n)``.

    Every node waits for every other within a step, whatever axis joins them: replicas
    for gradients, context and tensor ranks in each layer, stages for micro-batches.
    """
    per_node = pricing.topology.cluster.node.gpus_per_node
    nodes = np.maximum(meshes.gpus // per_node, 1)
    spread = np.sqrt(2.0 * np.log(nodes))
    return 1.0 + pricing.profile.straggler * spread
