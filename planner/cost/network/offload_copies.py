"""Time to keep states and activations in the host's memory."""

import numpy as np

from planner.cost.meshes import Floats, Meshes
from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.hardware.host import host, nvme
from planner.hardware.reading.quantities import Bytes, BytesPerSecond, Column, Seconds

ADAM_STATES = 12.0
"""Master weight and two moments of a parameter, read from NVMe and written. [B]"""
HOST_TRAFFIC = 28.0
"""Host memory that Adam moves per parameter: reads 4 numbers, writes 3. [B]"""


def copy_bandwidth(workload: Workload) -> BytesPerSecond:
    """Rate of one GPU's copies to or from its host: link times its efficiency.

    Returns:
        Rate, one direction. [B/s]

    References:
        nvbandwidth and vendors' acceptance limits, ``hardware/calibration/host.yaml``.
    """
    link = workload.topology.cluster.host_link
    return link.bandwidth * host(link.name).copy_efficiency


def host_update_time(pricing: Pricing, updated: Floats) -> Column[Seconds]:
    """Optimizer step on the host: gradients down, Adam in host memory, weights up.

    ``o P ((w_grad + w_param) / B_host + 28 / B_memory)`` with o the share that
    the layout keeps there; states on NVMe are read and written besides. Weights that
    stay on the host go up as they are gathered, not here. Nothing overlaps.

    Args:
        updated: Parameters of a rank's shard. [1], shape (meshes,)

    References:
        Ren et al. 2021, arXiv 2101.06840 (ZeRO-Offload); Rajbhandari et al. 2021,
        arXiv 2104.07857 (ZeRO-Infinity).
    """
    recipe = pricing.recipe
    share = pricing.offload.optimizer
    stays = pricing.offload.parameters
    up = (1.0 - stays) * recipe.gather_bytes
    wire = (recipe.gradient_bytes + up) / copy_bandwidth(pricing)
    link = pricing.topology.cluster.host_link
    memory = HOST_TRAFFIC / host(link.name).memory_bandwidth
    drives = 0.0
    if pricing.offload.device == "nvme":
        reads, writes = nvme_bandwidth(pricing)
        drives = ADAM_STATES * (1 / reads + 1 / writes)
    return share * updated * (wire + memory + drives)


def nvme_bandwidth(workload: Workload) -> tuple[BytesPerSecond, BytesPerSecond]:
    """One GPU's share of the drives of its node, all its GPUs at work.

    Returns:
        Reads and writes; one drive where a node's are not known. [B/s]

    References:
        Rajbhandari et al. 2021, arXiv 2104.07857, figure 2b.
    """
    node, drive = workload.topology.cluster.node, nvme()
    share = (node.nvme_drives or 1) / node.gpus_per_node
    return share * drive.read_bandwidth, share * drive.write_bandwidth


def paging_time(workload: Workload, moments: Column[Bytes]) -> Column[Seconds]:
    """Time of paged moments on their way to the GPU and back, once a step.

    Returns:
        Time, as if the GPU had no room for any between two steps. [s],
        shape (meshes,)
    """
    return 2.0 * moments / copy_bandwidth(workload)


def fetch_time(pricing: Pricing, sharded: Floats) -> Column[Seconds]:
    """Time to fetch a rank's shard of a unit from the host, in the format kept.

    References:
        PyTorch FSDP2, _fsdp_param.py: a shard on the host is copied in its own
        format, and cast on the GPU.
    """
    width = pricing.recipe.states[3].sharded_weights
    moved = pricing.offload.parameters * width * sharded
    rate = copy_bandwidth(pricing)
    if pricing.offload.device == "nvme":
        rate = min(rate, nvme_bandwidth(pricing)[0])
    return moved / rate


def exposed_copies(
    pricing: Pricing, saved: Column[Bytes], pass_time: Column[Seconds]
) -> Column[Seconds]:
    """Exposed time of copying a layer's activations beside its own pass.

    ``max(0, o A / B_host - t)``: out during the forward, back in the backward.

    Returns:
        Time, zero without offload. [s], shape (meshes,)

    Leaves out contention for host memory between the GPUs of a node.
    """
    copied = pricing.offload.activations * saved / copy_bandwidth(pricing)
    return np.maximum(copied - pass_time, 0.0)


def kept_share(pricing: Pricing, meshes: Meshes) -> dict[str, "Floats | float"]:
    """Share of each category of states that stays on the GPU.

    Returns:
        Share by ``weights``, ``gradients``, ``optimizer`` (the master copy) and
        ``moments``, which paged optimizers leave to the host. [1]

    References:
        Ren et al. 2021, arXiv 2101.06840: gradients go to the host as they are
        reduced; bitsandbytes, functional.py, get_paged: managed memory, of which the
        GPU holds what has room, here none but one tensor's at the step.
    """
    offload = pricing.offload
    gradients = offload.gradients
    if pricing.recipe.offload_takes_gradients:
        gradients = max(gradients, offload.optimizer)
    return {
        "weights": np.where(meshes.zero == 3, 1.0 - offload.parameters, 1.0),
        "gradients": np.where(meshes.zero >= 2, 1.0 - gradients, 1.0),
        "optimizer": 1.0 - offload.optimizer,
        "moments": 0.0 if pricing.training.paged else 1.0 - offload.optimizer,
    }
