"""What is known of each pool of a mixed fleet, put together for one job."""

from collections.abc import Sequence
from dataclasses import replace

from hardware.calibration import GpuCalibration
from hardware.calibration import calibration as published
from hardware.catalog import Cluster
from hardware.topology import ClusterTopology
from planner.calibration_file import CalibrationFile
from planner.cost.workload import Pool, Workload


def measured_of(gpu: str, own: CalibrationFile | None) -> GpuCalibration:
    """What a GPU achieves, with what the user measured of it.

    Args:
        gpu: Name in the catalog. [-]
        own: What the user measured. [-]

    Returns:
        Its calibration. [-]

    Raises:
        ValueError: Nothing is known of it.
    """
    known = published(gpu)
    return known if own is None else own.kernels(known)


def mixed_fleet(cluster: Cluster, each: Sequence[Workload]) -> Workload:
    """A job on a mixed fleet, from the same job on each of its pools.

    Args:
        cluster: The fleet. [-]
        each: The job on each pool alone, in order. [-]

    Returns:
        The job; what is asked of no pool in particular is answered by the first. [-]
    """
    pools = tuple(
        Pool(own.name, job.topology, job.calibration, job.framework, job.uncertainty)
        for own, job in zip(cluster.spec.pools, each, strict=True)
    )
    return replace(each[0], topology=ClusterTopology(cluster), pools=pools)
