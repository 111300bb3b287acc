"""Axes of random whole jobs: each entry of ``AXES`` changes a job in one respect.

A new axis of the planner is a new entry.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from every_plan import EVERY_SCHEDULE, kinds_of
from hypothesis import assume, reject
from hypothesis import strategies as st
from tiny_models import CONFIGS, FAMILIES, tiny

from planner.cost.kernels import attention_curve, is_unfused
from planner.cost.pricing import Pricing
from planner.cost.workload import Pool
from planner.frameworks.stacks import stack_names, with_stack
from planner.hardware.calibration import calibration
from planner.hardware.catalog import Cluster, resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.files import SHIPPED
from planner.specs.layouts.context import FAMILIES as CP_FAMILIES
from planner.specs.search import Span

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
    "server-mi210-4": (1,),
    "dgx-h100": (1,),
}
"""Nodes that a pool may have; one of another maker. [1]"""
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
MOST_KINDS = 8
"""Kinds of recompute above which the full space declares only some of them. [1]"""


@cache
def cluster(
    node: str, nodes: int, pods: tuple[int, ...], ratio: float, dead: tuple[int, ...]
) -> ClusterTopology:
    """Nodes in pods of so many each, behind uplinks of a ratio; some out of service."""
    spec: dict[str, object] = {"name": "test", "node": node, "nodes": nodes}
    each = resolve_cluster(ClusterSpec.model_validate(spec), SHIPPED).node.gpus_per_node
    tier = {"name": "pod", "gpus": each * max(pods, default=1), "units": pods}
    if pods:
        spec["tiers"] = [tier | {"oversubscription": ratio}]
    spec |= {"partial": True, "out_of_service": dead}
    return ClusterTopology(resolve_cluster(ClusterSpec.model_validate(spec), SHIPPED))


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
        calibration=calibration(topology.cluster.gpu.name, SHIPPED),
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
    return ClusterTopology(resolve_cluster(ClusterSpec.model_validate(spec), SHIPPED))


def fleets(draw: Draw, job: Pricing) -> Pricing:
    """Two pools of different GPUs, rarely three; degrees alike or each pool's own.

    Degrees are few, for each fleet has many places for its stages.
    """
    several = draw(st.sampled_from([2, 2, 2, 2, 3]))
    kinds = draw(st.permutations(list(POOLS)))[:several]
    sizes = tuple((node, draw(st.sampled_from(POOLS[node]))) for node in kinds)
    topology = fleet(sizes, draw(st.sampled_from([None, None, "1 GB/s"])))
    if topology.gpus > MOST_POOLED:
        reject()
    batch = draw(st.sampled_from([2, 4, 6, 8]))
    own = several == 2 and draw(st.integers(0, 3)) == 0
    job = limited(job, pool_degrees="own" if own else "same")
    drawn = {axis: draw(st.sampled_from(values)) for axis, values in FEW.items()}
    job = searched(job, **drawn)
    return replace(
        job,
        topology=topology,
        calibration=calibration(topology.cluster.gpu.name, SHIPPED),
        training=job.training.model_copy(update={"global_batch": batch}),
    )


def with_pools(job: Pricing) -> Pricing:
    """What the job knows of each pool of its fleet; itself on nodes of one kind."""
    cluster = job.topology.cluster
    pools = tuple(
        Pool(
            spec.name,
            ClusterTopology(own),
            calibration(own.gpu.name, SHIPPED),
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
        calibration=calibration(cluster.gpu.name, SHIPPED),
    )
    try:
        return is_unfused(its) or attention_curve(its, head_dim=1) is not None
    except ValueError:
        return False


def model(draw: Draw, job: Pricing) -> Pricing:
    """Dense, with experts, or with latent attention; two to five layers."""
    family = draw(st.sampled_from(FAMILIES))
    return replace(job, model=tiny(family, draw(few_layers(family))))


@st.composite
def few_layers(draw: st.DrawFn, family: str) -> dict[str, object]:
    config = draw(CONFIGS[family]())
    assume(tiny(family, config).layers <= 6)
    return config


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
    given = job.framework.limits.cp_kinds
    return limited(job, cp_kinds=draw(st.sampled_from([given, given, CP_FAMILIES])))


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
