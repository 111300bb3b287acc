"""Bandwidths that collectives reach inside a domain of a given cluster.

A calibration belongs to a GPU on its own link. A node may join the GPU by another link
(PCIe alone, without the bridge). Then the numbers measured on that link count. Where
there are none, the numbers of the GPU's own link scale by the line rates.
"""

from planner.hardware.calibration import (
    GpuCalibration,
    ScaleUpCalibration,
    scaled_links,
)
from planner.hardware.catalog import Cluster, link


def domain_calibration(
    cluster: Cluster, calibration: GpuCalibration
) -> ScaleUpCalibration:
    """Saturated bandwidths of a group that uses every link of its domain.

    f = full rate of the node's link / full rate of the GPU's own link

    A smaller group reaches these bandwidths times `GroupView.scale_up_bandwidth` over
    `Fabric.full_bandwidth`, which is 1 below a switch. In-switch reduction is left
    out where no switch is. Left out: that a bus and a mesh have other latencies.
    """
    node_link = cluster.scale_up
    measured = calibration.scale_up_on.get(node_link.name)
    if measured is not None:
        return measured
    own = link(cluster.gpu.nvlink, cluster.catalog)
    factor = node_link.full_bandwidth / own.full_bandwidth
    if node_link.topology == own.topology and factor == 1:
        return calibration.scale_up
    scaled = scaled_links(calibration.scale_up, factor)
    if node_link.topology == "switch":
        return scaled
    return scaled.model_copy(
        update={"nvls_all_reduce_bandwidth": None, "nvls_min_ranks": None}
    )
