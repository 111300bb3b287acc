"""Random whole jobs: any small model on any small cluster, every axis open.

Each axis is one entry of ``AXES``, which changes the job in one respect; a new axis
of the planner is a new entry.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from brute_force import costs_of, plans_of, priced
from every_fleet import places
from every_mesh import AXES as MESH_AXES
from every_mesh import DEGREES
from every_plan import EVERY_SCHEDULE, Choice, choices, kinds_of
from hypothesis import assume
from hypothesis import strategies as st
from strategies import small_job, with_profile
from tiny_models import FAMILIES, models

from hardware.calibration import calibration
from hardware.catalog import Cluster, resolve_cluster
from hardware.fleets import ClusterSpec
from hardware.topology import ClusterTopology
from planner.cost.kernels import attention_curve, is_unfused
from planner.cost.memory_rows import rank_blocks
from planner.cost.pricing import Pricing
from planner.cost.room import budget_bytes
from planner.cost.table import CostTable
from planner.cost.workload import Pool
from planner.frameworks.stacks import stack_names, with_stack
from planner.models import Architecture
from planner.search.paths import even_counts
from planner.search.switches import with_and_without
from planner.specs.search import SearchSpec, Span
from planner.variants import variants

Draw = Callable[[Any], Any]
Change = Callable[[Draw, Pricing], Pricing]

NODES = {
    "gh200-1": (2, 3, 4, 6),
    "azure-nc48ads-a100-v4": (1, 2, 3, 5),
    "workstation-rtx-4090-2": (1, 2, 3),
    "h100-pcie-4": (1, 2, 3),
    "dgx-h100": (1, 2),
}
"""Nodes of one to eight GPUs, and how many of them a cluster may have. [1]"""
POOLS = {
    "gh200-1": (1, 2, 3),
    "azure-nc48ads-a100-v4": (1, 2),
    "workstation-rtx-4090-2": (1, 2),
    "h100-pcie-4": (1,),
    "dgx-h100": (1,),
}
"""Nodes that a pool may have. [1]"""
MOST_POOLED = 8
"""GPUs of all pools together. [1]"""
FEW: dict[str, list[Any]] = {
    "tp": [1, 2, (1, 2), (1, 2, 4)],
    "cp": [1, 1, 1, 2, (1, 2)],
    "micro_batch": [1, 2, (1, 2), (1, 4)],
    "zero_stage": [0, 1, 2, 3, (0, 3)],
    "recompute": [None, "none", "full", ("none", "full")],
}
"""Limits that a job on several pools has from the start."""
ONE_IN = 12
"""Of so many jobs one is on a mixed fleet, where such are drawn. [1]"""
NARROWED = [axis for axis in (*DEGREES, *MESH_AXES) if axis.limit]
"""Axes that a limit of the user narrows until brute force is cheap."""
MOST_KINDS = 8
"""Kinds of recompute above which the full space declares only some of them. [1]"""
CAP = 20_000
"""Complete plans above which a job is drawn again. [1]"""


@cache
def cluster(
    node: str, nodes: int, pods: tuple[int, ...], ratio: float, dead: tuple[int, ...]
) -> ClusterTopology:
    """Nodes in pods of so many each, behind uplinks of a ratio; some out of service."""
    spec: dict[str, object] = {"name": "test", "node": node, "nodes": nodes}
    each = resolve_cluster(ClusterSpec.model_validate(spec)).node.gpus_per_node
    tier = {"name": "pod", "gpus": each * max(pods, default=1), "units": pods}
    if pods:
        spec["tiers"] = [tier | {"oversubscription": ratio}]
    spec |= {"partial": True, "out_of_service": dead}
    return ClusterTopology(resolve_cluster(ClusterSpec.model_validate(spec)))


def clusters(draw: Draw, job: Pricing) -> Pricing:
    """One to sixteen GPUs, nodes in whole or in odd pods; a batch that they share."""
    node = draw(st.sampled_from(list(NODES)))
    nodes = draw(st.sampled_from(NODES[node]))
    first = draw(st.sampled_from([0, 0, 1, 2])) if nodes > 2 else 0
    pods = (first, nodes - first) if first else ()
    dead = draw(st.sampled_from([(), (), (1,)])) if nodes > 1 else ()
    ratio = draw(st.sampled_from([1.0, 3.0]))
    topology = cluster(node, nodes, pods, ratio, dead)
    batch = draw(st.sampled_from([1, 2, 2, 4])) * max(topology.gpus - len(dead), 1)
    return replace(
        job,
        topology=topology,
        calibration=calibration(topology.cluster.gpu.name),
        training=job.training.model_copy(update={"global_batch": batch}),
    )


@cache
def fleet(sizes: tuple[tuple[str, int], ...], join: str | None) -> ClusterTopology:
    """Pools of so many nodes, and what one GPU can send from one to the next."""
    pools = [
        {"name": f"{at} {node}", "node": node, "nodes": nodes, "partial": True}
        for at, (node, nodes) in enumerate(sizes)
    ]
    spec = {"name": "test", "pools": pools, "join": {"bandwidth": join}}
    return ClusterTopology(resolve_cluster(ClusterSpec.model_validate(spec)))


def fleets(draw: Draw, job: Pricing) -> Pricing:
    """Two pools of different GPUs, rarely three; degrees alike or each pool's own.

    Degrees are few, for each fleet has many places for its stages.
    """
    several = draw(st.sampled_from([2, 2, 2, 2, 3]))
    kinds = draw(st.permutations(list(POOLS)))[:several]
    sizes = tuple((node, draw(st.sampled_from(POOLS[node]))) for node in kinds)
    topology = fleet(sizes, draw(st.sampled_from([None, None, "1 GB/s"])))
    assume(topology.gpus <= MOST_POOLED)
    batch = draw(st.sampled_from([2, 4, 6, 8]))
    own = several == 2 and draw(st.integers(0, 3)) == 0
    job = limited(job, pool_degrees="own" if own else "same")
    drawn = {axis: draw(st.sampled_from(values)) for axis, values in FEW.items()}
    job = searched(job, **drawn)
    return replace(
        job,
        topology=topology,
        calibration=calibration(topology.cluster.gpu.name),
        training=job.training.model_copy(update={"global_batch": batch}),
    )


def with_pools(job: Pricing) -> Pricing:
    """What the job knows of each pool of its fleet; itself on nodes of one kind."""
    cluster = job.topology.cluster
    pools = tuple(
        Pool(
            spec.name,
            ClusterTopology(own),
            calibration(own.gpu.name),
            job.framework,
            job.uncertainty,
        )
        for spec, own in zip(cluster.spec.pools, cluster.pools, strict=True)
    )
    return replace(job, pools=pools)


def stack(draw: Draw, job: Pricing) -> Pricing:
    """Half of the time any stack of the room whose kernels are measured there."""
    own = job.framework.name
    named = draw(st.sampled_from([None] * len(stack_names(own)) + [*stack_names(own)]))
    if named is None:
        return job
    found = replace(job, framework=with_stack(job.framework, named))
    kernels = job.topology.cluster.pools or [job.topology.cluster]
    return found if all(has_kernel(found, one) for one in kernels) else job


def has_kernel(job: Pricing, cluster: Cluster) -> bool:
    """Whether the attention of a job's stack is measured on the GPUs of a cluster."""
    its = replace(
        job,
        topology=ClusterTopology(cluster),
        calibration=calibration(cluster.gpu.name),
    )
    try:
        return is_unfused(its) or attention_curve(its, head_dim=1) is not None
    except ValueError:
        return False


def model(draw: Draw, job: Pricing) -> Pricing:
    """Dense, with experts, or with latent attention; two to five layers."""
    family = draw(st.sampled_from(FAMILIES))
    return replace(job, model=draw(few_layers(family)))


@st.composite
def few_layers(draw: st.DrawFn, family: str) -> Architecture:
    drawn = draw(models(family))
    assume(drawn.layers <= 6)
    return drawn


def length(draw: Draw, job: Pricing) -> Pricing:
    """Tokens of a sequence: what cp and tp have to divide."""
    tokens = draw(st.sampled_from([256, 384, 1024]))
    return replace(job, training=job.training.model_copy(update={"seq_len": tokens}))


def limited(job: Pricing, **fields: Any) -> Pricing:
    """The job with other limits of its framework."""
    limits = replace(job.framework.limits, **fields)
    return replace(job, framework=replace(job.framework, limits=limits))


def scope(draw: Draw, job: Pricing) -> Pricing:
    """One recompute kind for the plan, or one for each layer."""
    choices = st.sampled_from(["plan", "plan", "virtual-stage"])
    return limited(job, recompute_scope=draw(choices))


def cp_kinds(draw: Draw, job: Pricing) -> Pricing:
    """The kinds of cp of the framework, or all that have a price."""
    every = ("ring", "all-gather", "ulysses", "ulysses+ring")
    given = job.framework.limits.cp_kinds
    return limited(job, cp_kinds=draw(st.sampled_from([given, given, every])))


def schedules(draw: Draw, job: Pricing) -> Pricing:
    """The schedules of the framework, or all that have a price."""
    given = job.framework.limits.schedules
    return limited(
        job,
        schedules=draw(st.sampled_from([given, given, EVERY_SCHEDULE])),
        recomputes_split=draw(st.booleans()),
    )


def recompute(draw: Draw, job: Pricing) -> Pricing:
    """Up to four kinds where the space would choose among more than it lists."""
    kinds = kinds_of(searched(job, space="full"))
    if len(kinds) <= MOST_KINDS:
        return job
    kept = draw(st.sets(st.sampled_from(kinds), min_size=1, max_size=4))
    return searched(job, recompute=tuple(sorted(kept)))


def wire(draw: Draw, job: Pricing) -> Pricing:
    """Mostly the framework's own formats; else what the space makes of it."""
    if draw(st.integers(0, 3)) == 0:
        return job
    own = job.framework.own_formats
    return searched(job, gradient_dtype=own.gradients, parameter_dtype=own.parameters)


def sizes(draw: Draw, job: Pricing) -> Pricing:
    """Mostly the whole fleet; else any number of GPUs from some on."""
    least = draw(st.sampled_from([None, None, None, 1, job.gpus - 1]))
    return job if least is None else searched(job, gpus=Span(min=max(least, 1)))


def offload(draw: Draw, job: Pricing) -> Pricing:
    """Nothing, or all that the framework can keep in host memory, or shares of one."""
    limits = job.framework.limits
    parts = {n: z for n, z in limits.offload_in_parts.items() if n in limits.offload}
    kept = draw(st.sampled_from([None, None, *parts]))
    # All layers but the last are a share already.
    shared = {kept, "activations" if limits.offloads_activations_alone else kept}
    job = limited(job, offload_in_parts={n: parts[n] for n in parts if n in shared})
    return searched(job, offload=kept or draw(st.sampled_from([None, None, True])))


def settings_of_training(draw: Draw, job: Pricing) -> Pricing:
    """Method and optimizer as given, or for the search to choose."""
    return searched(
        job,
        method=draw(st.sampled_from([None, None, None, ("full", "lora")])),
        optimizer=draw(st.sampled_from([None, None, None, ("adamw", "adamw-8bit")])),
    )


def searched(job: Pricing, **fields: Any) -> Pricing:
    """The job with other fields of its search block."""
    return replace(job, search=job.search.model_copy(update=fields))


def space(draw: Draw, job: Pricing) -> Pricing:
    """The full space two times of three."""
    return searched(job, space=draw(st.sampled_from(["full", "full", "default"])))


def hosts(draw: Draw, job: Pricing) -> Pricing:
    """Host memory that is not known, that is much, and that decides."""
    size = draw(st.sampled_from([None, 1e12, 1e9, 3e8, 1e8]))
    changed = with_memory(job.topology.cluster, size)
    pools = tuple(with_memory(pool, size) for pool in changed.pools)
    return replace(job, topology=ClusterTopology(replace(changed, pools=pools)))


def with_memory(cluster: Cluster, size: float | None) -> Cluster:
    """The cluster on nodes with so much memory of their own. [B]."""
    node = cluster.node.model_copy(update={"host_memory": size})
    return replace(cluster, node=node)


WORDS: dict[str, list[Any]] = {
    "order": ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"],
    "schedule": ["1f1b", "gpipe", ("1f1b", "interleaved")],
    "recompute": ["full", ("none", "mlp", "layernorm+moe"), ("mlp", "full:1")],
    "cp_kind": ["ring", ("all-gather", "ulysses2+ring")],
    "sp": [True, False],
    "vpp": [1, (1, 2)],
}
"""Limits on what is no degree, of which a job has one at a time at most."""


def words(draw: Draw, job: Pricing) -> Pricing:
    """Mostly nothing; else one axis that is no degree is limited."""
    axis = draw(st.sampled_from([None, None, *WORDS]))
    if axis is None:
        return job
    return searched(job, **{axis: draw(st.sampled_from(WORDS[axis]))})


AXES: tuple[Change, ...] = (
    stack,
    model,
    length,
    scope,
    cp_kinds,
    schedules,
    recompute,
    wire,
    sizes,
    offload,
    settings_of_training,
    space,
    words,
    hosts,
)


@st.composite
def whole_jobs(draw: st.DrawFn, name: str, most: int = CAP, one_in: int = 0) -> Pricing:
    """A job of a framework with at most so many complete plans over its variants.

    Memory is loose, tight or too little for any plan. One job in so many is on a
    mixed fleet; none without a number.
    """
    mixed = one_in > 0 and draw(st.integers(1, one_in)) == 1
    job = (fleets if mixed else clusters)(draw, small_job(SearchSpec(), name=name))
    for change in AXES:
        job = change(draw, job)
    job = narrowed(draw, with_pools(job), most)
    return with_room(draw, job)


def everywhere(job: Pricing) -> list[Choice]:
    """Candidates of a job on every place for its stages, with any switches."""
    return [choice for place in switched_places(job) for choice in choices(place)]


def switched_places(job: Pricing) -> list[Pricing]:
    """A job on every place for its stages, with every setting of its switches."""
    return [its for place in places(job) for its in with_and_without(place)]


def narrowed(draw: Draw, job: Pricing, most: int) -> Pricing:
    """Limit one axis after the other, as a user would, until brute force is cheap."""
    settings = len(variants([job])) / len(switched_places(job))
    found, each = everywhere(job), max(int(most / settings), 1)
    for axis in draw(st.permutations(NARROWED)):
        if plans_of(job, found) <= each:
            break
        held = {getattr(choice.mesh, axis.field) for choice in found}
        kept = draw(st.sets(st.sampled_from(sorted(held)), min_size=1, max_size=2))
        job = searched(job, **{str(axis.limit): tuple(sorted(kept))})
        if job.pools:  # listed again when all is drawn
            found = [c for c in found if getattr(c.mesh, axis.field) in kept]
        else:
            found = everywhere(job)
    assume(0 < plans_of(job, everywhere(job) if job.pools else found) <= each)
    return job


def with_room(draw: Draw, job: Pricing) -> Pricing:
    """All the memory of the GPU, or about what some plan needs, or a little less."""
    if draw(st.integers(0, 3)) == 0:
        return job
    free = with_pools(with_profile(job, context_gb=0.0, communicator_gb=0.0))
    found, table = listed_somewhere(draw, free)
    at = draw(st.integers(0, len(found) - 1))
    costs = costs_of(table, at, found[at])
    held = rank_blocks(costs, even_counts(costs))
    fullest = int(held.argmax())
    blocks = int(held[fullest])
    blocks += draw(st.sampled_from([-1, 0, 0, 1, -blocks // 4, -blocks]))
    part = table.each[costs.pool(fullest)]
    whole = float(budget_bytes(part.workload, part.meshes)[at])
    taken = max(whole - 512 * blocks, 0.0) / job.profile.packing
    return with_pools(with_profile(free, context_gb=taken / 1e9))


def listed_somewhere(draw: Draw, job: Pricing) -> tuple[list[Choice], CostTable]:
    """Candidates of one of the places that have any, with their prices."""
    places_of = switched_places(job)
    every = [listed for one in places_of if (listed := priced(one)) is not None]
    return every[0] if len(every) == 1 else draw(st.sampled_from(every))
