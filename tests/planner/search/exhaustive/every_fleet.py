"""Every way to lay the stages of a job over the pools of a mixed fleet.

The part of the second statement that is about pools: what holds of a layout has to
hold on each of them, with the degrees that it has there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

from every_mesh import (
    AXES,
    DEGREES,
    NO_MESH,
    Mesh,
    experts,
    grown,
    is_full,
    offloads,
    pipeline_is_legal,
)

from planner.cost.pricing import Pricing
from planner.cost.workload import Pool

Hosting = tuple[int, ...]
"""Stages on each pool, in the order of the pipeline. [1]"""
RATIOS = (Fraction(1), Fraction(2), Fraction(1, 2))
TP, CP, PP, DP = DEGREES


def places(job: Pricing) -> list[Pricing]:
    """A job on each pool alone, and on several in any order.

    Several need stages, and hosts that keep nothing. Pools behind the first may be
    split otherwise where the framework lets them, and no expert lies across.
    """
    names = [pool.name for pool in job.pools]
    if not names:
        return [job]
    limits = job.framework.limits
    parts = ("optimizer", "parameters", "gradients", "activations")
    kept = job.training.paged or any(offloads(job, part) for part in parts)
    alone = kept or not limits.pipeline
    orders = [
        order
        for count in range(1, 1 + (1 if alone else len(names)))
        for order in permutations(names, count)
    ]
    found = [job.hosted_by(order) for order in orders]
    if limits.pool_degrees == "same" or experts(job):
        return found
    return [split for place in found for split in with_ratios(place)]


def with_ratios(place: Pricing) -> Iterator[Pricing]:
    """Half and twice the tensor ranks and the replicas on every pool but the first."""
    if not place.mixed:
        yield place
        return
    first, *later = place.stage_pools
    pairs = product(RATIOS, repeat=2)
    for ratios in product(list(pairs), repeat=len(later)):
        changed = [
            replace(pool, wider=wider, more=more)
            for pool, (wider, more) in zip(later, ratios, strict=True)
        ]
        yield replace(place, stage_pools=(first, *changed))


def hosted(job: Pricing) -> list[tuple[Mesh, Hosting]]:
    """All legal meshes of a job on several pools, with the stages of each.

    None where the pools' GPUs have two makers, whose libraries of collectives do not
    speak to each other.
    """
    if len({pool.topology.cluster.gpu.vendor for pool in job.stage_pools}) > 1:
        return []
    return [
        (mesh, stages)
        for flat in grown(job, [NO_MESH], (TP, CP, DP))
        for stages in shares(job, flat)
        for base in [flat._replace(pp=sum(stages))]
        if pipeline_is_legal(job, base) and job.search.allows("pp", base.pp)
        for mesh in grown(job, [base], AXES)
        if all(is_legal_on(job, mesh, pool) for pool in job.stage_pools)
    ]


def shares(job: Pricing, flat: Mesh) -> Iterator[Hosting]:
    """Stages that each pool may host, where GPUs of a stage are whole on each."""
    each = [
        flat.tp * pool.wider * flat.cp * flat.dp * pool.more for pool in job.stage_pools
    ]
    if any(block.denominator > 1 for block in each):
        return
    pairs = zip(job.parts, each, strict=True)
    for stages in product(*(held_by(job, part, int(block)) for part, block in pairs)):
        used = sum(n * block for n, block in zip(stages, each, strict=True))
        if job.search.allows("gpus", int(used)):
            yield stages


def held_by(job: Pricing, part: Pricing, block: int) -> Sequence[int]:
    """As many stages as whole nodes hold; one step fewer in the full space.

    Any number where the user says how many GPUs.
    """
    cluster = part.topology.cluster
    size = 1 if cluster.spec.partial else cluster.node.gpus_per_node
    counts = [n for n in range(1, part.gpus // block + 1) if n * block % size == 0]
    if job.search.gpus is not None:
        return counts
    return counts[-2:] if is_full(job) else counts[-1:]


def is_legal_on(job: Pricing, mesh: Mesh, pool: Pool) -> bool:
    """Whether the mesh as one pool has it breaks no rule of any axis."""
    if pool.wider == pool.more == 1:
        return True  # the degrees of the first pool, of which all is true
    own = on_pool(mesh, pool)
    return own is not None and all(
        (axis.limit is None or job.search.allows(axis.limit, getattr(own, axis.field)))
        and all(rule(job, own) for rule in axis.rules)
        for axis in (*DEGREES, *AXES)
    )


def on_pool(mesh: Mesh, pool: Pool) -> Mesh | None:
    """The degrees on a pool: as many micro-batches, and as large a part of shards."""
    columns = {
        "tp": mesh.tp * pool.wider,
        "dp": mesh.dp * pool.more,
        "dp_shard": mesh.dp_shard * pool.more,
        "micro_batch": mesh.micro_batch / pool.more,
    }
    if any(value.denominator > 1 for value in columns.values()):
        return None
    own = mesh._replace(**{name: int(value) for name, value in columns.items()})
    return own._replace(sp=mesh.sp if own.tp > 1 else 0)
