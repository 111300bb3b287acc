"""Upper bound on a step, and the largest sums of times in 64 bits."""

from planner.specs.table import StageCosts

SAFE = 2**62
"""Sums of times stay below this, so that none leaves 64 bits. [ns]"""


def worst_step(costs: StageCosts) -> int:
    """Time of all operations one after the other: no step or path is longer.

    Returns:
        Time. [ns]
    """
    return sum(map(_one_by_one, costs.hosts or (costs,)))


def _one_by_one(costs: StageCosts) -> int:
    """All work of a step on one pool, one operation after the other. [ns]."""
    layers = sum(
        max(f + b for f, b in zip(layer.forward, layer.backward, strict=True))
        + layer.gather
        + layer.scatter
        + layer.optimizer
        for layer in costs.layers
    )
    ends = sum(
        end.forward + end.backward + end.gather + end.scatter + end.optimizer
        for end in (costs.embedding, costs.head)
    )
    edges = 2 * costs.stages * (costs.p2p + costs.first_gather + costs.last_scatter)
    passes = costs.micro_batches + 1
    worst = passes * (layers * costs.layer_count + ends + edges)
    return worst + costs.overhead + 1
