"""Changes of a job that no spec can express, and the time left to ask about them."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from planner.cost.workload import Pool, Workload
from planner.hardware.calibration import GpuCalibration
from planner.hardware.catalog import Cluster
from planner.hardware.graph.topology import ClusterTopology
from planner.job.case import Edit

GIB = 2**30
AMPLE = 1000.0
"""Times the memory of a GPU that stands for any amount of it. [1]"""


@dataclass
class Clock:
    """Time left for the remaining questions."""

    seconds: float
    started: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds until the limit, none below zero. [s]."""
        return max(0.0, self.seconds - (time.monotonic() - self.started))

    def share(self, parts: int) -> float:
        """An equal part of the time left.

        Returns:
            Time for the next question. [s]
        """
        return self.left / max(parts, 1)


def on_cluster(workload: Workload, change: Callable[[Cluster], Cluster]) -> Workload:
    """The job on a cluster with some number changed."""
    cluster = change(workload.topology.cluster)
    there = replace(workload, topology=ClusterTopology(cluster))
    return _on_places(
        there,
        lambda pool: replace(
            pool, topology=ClusterTopology(change(pool.topology.cluster))
        ),
    )


def _on_places(workload: Workload, change: Callable[[Pool], Pool]) -> Workload:
    """A job with every pool and pod of its fleet changed."""
    pools, pods = (
        tuple(map(change, places)) for places in (workload.pools, workload.pods)
    )
    return replace(workload, pools=pools, pods=pods)


def on_kernels(
    workload: Workload, change: Callable[[GpuCalibration], GpuCalibration]
) -> Workload:
    """The job with changed measurements of the GPUs."""
    there = replace(workload, calibration=change(workload.calibration))
    return _on_places(
        there, lambda pool: replace(pool, calibration=change(pool.calibration))
    )


def with_capacity(capacity_bytes: float) -> Edit:
    """GPUs of another memory size, all else equal.

    Args:
        capacity_bytes: Memory of each GPU. [B]
    """

    def change(cluster: Cluster) -> Cluster:
        gpu = cluster.gpu.model_copy(update={"memory_capacity": capacity_bytes})
        return replace(cluster, gpu=gpu)

    return lambda workload: on_cluster(workload, change)


def without_memory_limit(workload: Workload) -> Workload:
    """The job on GPUs whose memory is never full."""
    return with_capacity(AMPLE * workload.gpu.memory_capacity)(workload)


def without_host_limit(workload: Workload) -> Workload:
    """The job on hosts whose memory and drives are never full."""

    def change(cluster: Cluster) -> Cluster:
        free = {"host_memory": None, "nvme_capacity": None}
        return replace(cluster, node=cluster.node.model_copy(update=free))

    return on_cluster(workload, change)
