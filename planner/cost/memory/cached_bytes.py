"""Bytes that PyTorch's allocator keeps beyond the tensors, from its own rules.

Where a plan's steps can be replayed allocation by allocation, the caching allocator is
simulated on them. Elsewhere a stack's ratio of allocated over reserved memory counts.
"""

from collections.abc import Collection
from functools import cache

from planner.cost.memory.eager_bytes import replayed_cases
from planner.cost.meshes import Meshes
from planner.cost.pricing import Pricing
from planner.eager import EagerCase, Unsupported
from planner.eager.allocator.allocator import Settings
from planner.eager.allocator.steps import equal_steps, run

STEPS = 2
"""Steps that are replayed: the second finds the optimizer's states in place. [1]"""
ACCUMULATED = 2
"""Micro-batches that are replayed of those that accumulate, at most. [1]"""
BLOCKS = 12
"""Blocks that are replayed on expandable segments, at most: deeper models map more
pages and leave no more of them unused. [1]"""


def cached_bytes(
    workload: Pricing, meshes: Meshes, kinds: Collection[str]
) -> float | None:
    """Reserved less allocated memory of a rank, each at its peak.

    Counted for one pipeline stage whose tensors are whole on the rank, or whose
    sharded part is frozen. The buffers of a gather, all of one size, are left out.

    Args:
        workload: The job.
        meshes: One mesh.
        kinds: Kinds of recompute of the layers. [text]

    Returns:
        Memory; None where the stack's ratio counts. [B]
    """
    if workload.profile.allocator == "ratio" or len(kinds) != 1:
        return None
    if any(word.split()[0] == "fragmentation" for word in workload.framework.by_hand):
        return None
    if (meshes.pp > 1) | (meshes.tp > 1) | (meshes.cp > 1) | (meshes.ep > 1):
        return None
    if meshes.zero > 0 and not workload.training.frozen:
        return None
    for case, _ in replayed_cases(workload, next(iter(kinds)), meshes):
        return _of_run(workload, meshes, case)
    return None


def _of_run(workload: Pricing, meshes: Meshes, case: EagerCase) -> float | None:
    """Cache of a case with the job's optimizer and gradients that accumulate. [B]."""
    grows = workload.profile.allocator == "expandable"
    count = min(int(meshes.micro_batches[0]), ACCUMULATED)
    adam = workload.training.optimizer.endswith("adamw")
    layers = workload.model.layers
    whole = {
        "ga": 1 if workload.training.frozen else count,
        "optimizer": "adamw" if adam else case.optimizer,
        "layers": min(layers, BLOCKS) if grows else layers,
    }
    return _cached(case.model_copy(update=whole).model_dump_json(), grows=grows)


@cache
def _cached(case: str, *, grows: bool) -> float | None:
    """Simulated cache of a case given as JSON; None where it is unsupported. [B]."""
    one = EagerCase.model_validate_json(case)
    try:
        steps = equal_steps(one)
    except Unsupported:
        return None
    allocator = run(steps, (one.seq,) * STEPS, Settings(expandable=grows))
    return float(allocator.peak_reserved - allocator.peak_allocated)
