"""What is known of each pool of a mixed fleet, put together for one job."""

from collections.abc import Sequence
from dataclasses import replace

from hardware.calibration import GpuCalibration
from hardware.calibration import calibration as published
from hardware.catalog import Cluster
from hardware.topology import ClusterTopology
from planner.calibration_file import CalibrationFile
from planner.cost.workload import Pool, Workload
from planner.errors import BadInputError, did_you_mean
from planner.specs.layout import PoolStages


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


def on_pools(workload: Workload, given: Sequence[PoolStages]) -> Workload:
    """The job on the pools that a given layout names.

    Args:
        workload: The job. [-]
        given: Pools of the layout, in the order of the pipeline. [-]

    Returns:
        The job itself on a fleet of one kind. [-]

    Raises:
        BadInputError: A mixed fleet without named pools, or names that it lacks.
    """
    known, names = [pool.name for pool in workload.pools], [pool.pool for pool in given]
    for name in names:
        if name not in known:
            near = did_you_mean(name, known) if known else "it has no pools"
            raise BadInputError(
                f"no such pool in {workload.topology.cluster.spec.name}; {near}",
                field="layout.pools",
                value=name,
                allowed=", ".join(known) or "none",
            )
    if known and not names:
        raise BadInputError(
            "a mixed fleet needs the stages that each pool hosts",
            field="layout.pools",
            allowed="{pool: NAME, stages: [0, ...]} for one or more of "
            + ", ".join(known),
        )
    return workload.hosted_by(names)


def room_for(workload: Workload, given: Sequence[PoolStages], each: int) -> int:
    """Replicas of a pipeline that every hosting pool has room for.

    Args:
        workload: The job, on the pools of the layout. [-]
        given: Those pools with their stages. [-]
        each: Ranks of one stage of one replica. [1]

    Returns:
        Replicas, at least one. [1]
    """
    pairs = zip(workload.parts, given, strict=True)
    return max(min(part.gpus // (each * len(own.stages)) for part, own in pairs), 1)
