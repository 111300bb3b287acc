"""Time in which a GPU waits for its host to launch the next kernels."""

import numpy as np

from planner.cost.meshes import Floats
from planner.cost.time.columns import Context, Parts
from planner.hardware.host import launch_time
from planner.hardware.reading.quantities import Column, Seconds

LAUNCHED_ONE_BY_ONE = frozenset({"none", "router"})
"""Kinds of CUDA graphs that leave the layer's own kernels to the host."""


def launched(
    context: Context,
    forward: Parts,
    backward: Parts,
    *,
    routed: bool = False,
    again: float = 0.0,
    share: float = 1.0,
    chunks: Floats | float = 0.0,
) -> tuple[Parts, Parts]:
    """Times of the passes of a layer or an end, at least their launch times.

    Launches are asynchronous. The host runs ahead while the GPU is slower, and the
    GPU waits where the host is slower::

        T = max(device, host)
        host = (layer + tensor + experts + n ring) latency v

    with n chunks of a ring, and v the time of this host over that of DGX H100's, in
    whose time a stack states its launches.

    Args:
        backward: Device time of the backward by cause, recompute included.
        routed: True where the layer routes tokens to experts.
        again: Share of the forward's kernels that the backward launches again. [1]
        share: Kernels over those of a layer. [1]
        chunks: Chunks of keys that a ring attends to one by one. [1]

    Returns:
        Both passes, with the wait under ``launches``; unchanged where a graph of the
        layer is launched. One of the router alone leaves the layer's own kernels. [s],
        shape (meshes,)

    Leaves out how far the host has run ahead in the layer before.

    References:
        Single-node steps of small GPT models on A100 do not fall below 3.5 ms a
        layer and micro-batch whatever the tensor degree: table of vTrain, KAIST.
    """
    profile = context.pricing.profile
    if profile.cuda_graphs not in LAUNCHED_ONE_BY_ONE:
        return forward, backward
    link = context.pricing.topology.cluster.host_link
    launch = share * profile.latency * launch_time(link.name)
    more = _beside_the_layer(context, routed=routed) + chunks * profile.host_ring
    ahead = (profile.host_forward + more) * launch
    behind = (profile.host_backward + more) * launch + again * ahead
    return (
        forward.plus("launches", np.maximum(ahead - forward.total, 0.0)),
        backward.plus("launches", np.maximum(behind - backward.total, 0.0)),
    )


def _beside_the_layer(context: Context, *, routed: bool) -> Column[Seconds]:
    """Time to launch a layer's exchanges and experts, each way. [s]."""
    profile = context.pricing.profile
    tensor: Floats = np.where(context.meshes.tp > 1, profile.host_tensor, 0.0)
    launched = routed and profile.cuda_graphs != "router"
    return tensor + (profile.host_experts if launched else 0.0)
