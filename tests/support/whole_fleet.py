"""Groups of ranks on a cluster that one layout fills."""

import numpy as np

from planner.cost.meshes import Groups, Ints, Meshes, groups
from planner.hardware.graph.topology import ClusterTopology

FIELDS = ("tp", "sp", "pp", "cp", "cp_kind", "ep", "etp", "dp", "dp_shard")
BATCH = ("zero", "hpz", "micro_batch", "micro_batches", "order")


def groups_on(topology: ClusterTopology, size: Ints, stride: Ints) -> Groups:
    """What groups of one axis see where data ranks fill the cluster.

    Args:
        topology: The cluster. [-]
        size: Ranks of a group. [1], shape (groups,)
        stride: Distance of its neighbours. [1], shape (groups,)

    Returns:
        Columns of what they see.
    """
    start = dict.fromkeys((*FIELDS, *BATCH), 1) | {"sp": 0, "zero": 0, "order": 0}
    row = tuple((start | {"dp": topology.gpus}).values())
    meshes = Meshes.from_rows([row] * len(size))
    return groups(topology, meshes, (np.asarray(size), np.asarray(stride)))
