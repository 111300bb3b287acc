"""Small random problems: inner problems of one mesh, and whole jobs."""

from dataclasses import replace
from functools import cache

import numpy as np
from every_split import candidate_costs, count_plans, splits
from hypothesis import assume
from hypothesis import strategies as st
from tiny_models import TINY_LLAMA, models

from planner.cost.memory.buffers import budget_bytes
from planner.cost.pipeline.memory_rows import rank_blocks
from planner.cost.pricing import Pricing
from planner.cost.table.mixed import price_meshes
from planner.cost.table.table import CostTable, fill_table
from planner.cost.workload import Workload
from planner.frameworks import FRAMEWORKS
from planner.hardware.calibration import calibration
from planner.hardware.catalog import resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.files import SHIPPED
from planner.models import from_config
from planner.schedules import SPLIT, V_SHAPED
from planner.search.bounds.paths import even_counts
from planner.search.space.space import Space, enumerate_space
from planner.specs.frameworks.framework import Framework
from planner.specs.search import SearchSpec
from planner.specs.table import EndCosts, IdleMoment, LayerCosts, StageCosts
from planner.specs.training import TrainingSpec

MOST_SPLITS = 400
"""Splits of an inner problem that brute force simulates. [1]"""
MOST_PLANS = 20_000
"""Complete plans of a whole job. [1]"""
MAGNITUDES = [0, 3, 30, 1_000, 1_000_000]
"""Each term of an inner problem has its own, so that each gets to decide."""
MENU = ("none", "selective", "full")


WITHIN = {most: st.integers(0, most) for most in MAGNITUDES}
TERM = st.sampled_from(MAGNITUDES).flatmap(WITHIN.__getitem__)
OR_NONE = st.one_of(st.just(0), TERM)
OR_LESS = {low: st.one_of(st.integers(low, 0), TERM) for low in (-2, 0)}


@st.composite
def layer_costs(draw: st.DrawFn, entries: int) -> LayerCosts:
    """Any costs; only the states are never free, since a layer has weights."""

    def row() -> tuple[int, ...]:
        return tuple(draw(TERM) for _ in range(entries))

    backward = row()
    return LayerCosts(
        forward=row(),
        backward=backward,
        weight=draw(st.integers(0, min(backward))),
        saved=row(),
        transient=row(),
        static=1 + draw(TERM),
        accumulated=draw(TERM),
        gather=draw(TERM),
        scatter=draw(TERM),
        optimizer=draw(TERM),
        pending=draw(TERM),
    )


@st.composite
def end_costs(draw: st.DrawFn) -> EndCosts:
    if draw(st.booleans()):
        return EndCosts()
    terms = [draw(TERM) for _ in range(9)]
    weight = draw(st.integers(0, terms[1]))
    return EndCosts(*terms, weight=weight, pending=draw(TERM))


@st.composite
def idle_moments(draw: st.DrawFn, kinds: int, entries: int) -> IdleMoment:
    """Any moment; states may be missing, but no more than a few blocks of them."""

    def cells(low: int) -> tuple[tuple[int, ...], ...]:
        return tuple(
            tuple(draw(OR_LESS[low]) for _ in range(entries)) for _ in range(kinds)
        )

    ends = [draw(OR_NONE) for _ in range(4)]
    return IdleMoment("any", cells(-2), cells(0), *ends)


@st.composite
def runs(draw: st.DrawFn, layers: int, kinds: int) -> tuple[tuple[int, int], ...]:
    """Layers cut into at most three runs of alternating kinds."""
    most = min(3, layers)
    pieces = 1 if kinds == 1 else draw(st.integers(min(kinds, most), most))
    cuts = draw(st.sets(st.integers(1, max(layers - 1, 1)), max_size=pieces - 1))
    edges = [0, *sorted(cuts), layers]
    spans = np.diff(edges)
    return tuple((i % kinds, int(n)) for i, n in enumerate(spans) if n)


@st.composite
def shapes(draw: st.DrawFn) -> tuple[str, int, int, int]:
    """Schedule, p, v and m: of all schedules with a price."""
    p = draw(st.integers(1, 4))
    if draw(st.booleans()):
        schedule = draw(st.sampled_from(SPLIT))
        m = draw(st.integers(1, 9)) + 2 * p * (schedule == "dualpipe-v")
        if schedule == "dualpipe":
            p = 2 * draw(st.integers(1, 3))
            m = 2 * (p + draw(st.integers(0, 3)))
        return schedule, p, 1 + (schedule in V_SHAPED), m
    v = draw(st.integers(1, 3)) if p > 1 else 1
    if v == 1:
        return draw(st.sampled_from(["1f1b", "gpipe"])), p, v, draw(st.integers(1, 9))
    return "interleaved", p, v, p * draw(st.integers(1, 3))


@st.composite
def inner_shapes(draw: st.DrawFn) -> StageCosts:
    """A mesh with at most ``MOST_SPLITS`` splits, whose costs are not drawn yet."""
    schedule, p, v, m = draw(shapes())
    copies = 1 + (schedule == "dualpipe")
    stages = p * v // copies
    layers = draw(st.integers(max(1, stages - 2), stages + 7))
    its_runs = draw(runs(layers, draw(st.integers(1, 2))))
    entries = draw(st.integers(1, 3))
    kinds = max(kind for kind, _ in its_runs) + 1
    shape = small_problem(
        schedule=schedule,
        pp=p,
        vpp=v,
        micro_batches=m,
        runs=its_runs,
        menu=MENU[:entries],
        layers=small_problem().layers * kinds,
        extra_layers=draw(st.sampled_from([0, 0, 1])),
        copies=copies,
    )
    # Most draws that are too large end here, before their many costs.
    assume(1 <= count_plans(shape) <= MOST_SPLITS)
    return shape


@st.composite
def inner_problems(draw: st.DrawFn) -> StageCosts:
    """One mesh with at most ``MOST_SPLITS`` splits, memory from loose to none."""
    shape = draw(inner_shapes())
    kinds, entries = len(shape.layers), len(shape.menu)
    costs = replace(
        shape,
        layers=tuple(draw(layer_costs(entries)) for _ in range(kinds)),
        embedding=draw(end_costs()),
        head=draw(end_costs()),
        first_gather=draw(TERM),
        last_scatter=draw(TERM),
        p2p=draw(TERM),
        scatter_every=draw(st.integers(1, shape.micro_batches)),
        overlap_gather=draw(st.booleans()),
        overlap_scatter=draw(st.booleans()),
        budget=1 << 40,
        slowdown=draw(st.sampled_from([1.0, 1.008, 1.0253])),
        overhead=draw(st.sampled_from([0, 7, 1000])),
        idle=tuple(draw(st.lists(idle_moments(kinds, entries), max_size=2))),
    )
    return replace(costs, budget=draw(budgets(costs)))


@st.composite
def budgets(draw: st.DrawFn, costs: StageCosts) -> int:
    """Loose, or the peak of some split and the blocks around it."""
    if draw(st.integers(0, 3)) == 0:
        return 1 << 40
    at = draw(st.integers(0, count_plans(costs) - 1))
    chosen = next(split for i, split in enumerate(splits(costs)) if i == at)
    peak = int(rank_blocks(costs, chosen).max())
    return max(peak + draw(st.sampled_from([-1, 0, 0, 1])), 0)


def small_problem(**fields: object) -> StageCosts:
    """Two ranks, two micro-batches, three equal layers, no communication.

    A layer: 10 ns forward, 20 backward, 7 blocks of states, 5 in flight, 1 beside.
    """
    layer = LayerCosts((10,), (20,), (5,), (1,), 7, 0, 0, 0, 0)
    whole = StageCosts(
        schedule="1f1b",
        pp=2,
        vpp=1,
        micro_batches=2,
        runs=((0, 3),),
        menu=("none",),
        layers=(layer,),
        embedding=EndCosts(),
        head=EndCosts(),
        first_gather=0,
        last_scatter=0,
        p2p=0,
        scatter_every=2,
        overlap_gather=False,
        overlap_scatter=False,
        budget=1000,
        slowdown=1.0,
    )
    return replace(whole, **fields)


@cache
def topology(node: str, nodes: int) -> ClusterTopology:
    spec = ClusterSpec(name="test", node=node, nodes=nodes, partial=True)
    return ClusterTopology(resolve_cluster(spec, SHIPPED))


@st.composite
def axis(draw: st.DrawFn, values: list[int], most: int) -> tuple[int, ...]:
    return tuple(draw(st.sets(st.sampled_from(values), min_size=1, max_size=most)))


@st.composite
def searches(draw: st.DrawFn, framework: Framework, family: str) -> SearchSpec:
    """Limits that leave few meshes, of every kind that the framework has."""
    limits = framework.limits
    moe = family in ("mixtral", "deepseek_v3") and limits.expert_parallel
    return SearchSpec(
        space=draw(st.sampled_from(["default", "default", "full"])),
        tp=draw(axis([1, 2, 4, 8], 2)),
        pp=draw(axis([1, 2, 3, 4], 3)) if limits.pipeline else None,
        vpp=draw(axis([1, 1, 2, 3], 2)),
        cp=draw(axis([1, 1, 1, 2], 1)),
        ep=draw(axis([1, 2, 4], 2)) if moe else None,
        micro_batch=draw(axis([1, 2, 4], 2)),
        zero_stage=draw(axis(list(limits.zero_stages), 2)),
        order=draw(st.sampled_from([None, "tp-cp-ep-dp-pp"])),
        recompute=draw(st.sampled_from([None, None, ("none", "full")])),
    )


@st.composite
def jobs(
    draw: st.DrawFn, framework: Framework, family: str, most: int = MOST_PLANS
) -> Pricing:
    """A whole job with at most *most* complete plans, memory from loose to none."""
    node = draw(st.sampled_from(["dgx-h100", "dgx-a100-80gb"]))
    cluster = topology(node, draw(st.integers(1, 4)))
    scope = draw(st.sampled_from(["plan", "plan", "virtual-stage"]))
    job = Workload(
        model=draw(models(family)),
        training=TrainingSpec(
            seq_len=draw(st.sampled_from([256, 1024, 2048])),
            global_batch=cluster.gpus * draw(st.integers(1, 4)),
        ),
        framework=replace(
            framework, limits=replace(framework.limits, recompute_scope=scope)
        ),
        topology=cluster,
        calibration=calibration(cluster.cluster.gpu.name, SHIPPED),
        search=draw(searches(framework, family)),
    )
    pricing = Pricing.candidate(job)
    space = enumerate_space(pricing)
    assume(0 < len(space) <= most)
    table = fill_table(pricing, space.meshes, space.recompute)
    problems = [candidate_costs(table, space, c) for c in range(len(space))]
    assume(sum(map(count_plans, problems)) <= most)
    peaks = sorted(_even_peak(costs) for costs in problems)
    return tightened(pricing, draw(st.sampled_from([None, *_some(peaks)])))


def small_job(
    search: SearchSpec,
    *,
    name: str = "megatron",
    node: str = "dgx-h100",
    nodes: int = 1,
    sequences: int = 16,
    seq_len: int = 1024,
    config: dict[str, object] | None = None,
) -> Pricing:
    """A tiny Llama on DGX H100 nodes, the parts of it replaced."""
    cluster = topology(node, nodes)
    job = Workload(
        from_config(TINY_LLAMA | (config or {}), source="test", name="tiny"),
        TrainingSpec(seq_len=seq_len, global_batch=sequences),
        framework(name),
        cluster,
        calibration(cluster.cluster.gpu.name, SHIPPED),
        search,
    )
    return Pricing.candidate(job)


def _even_peak(costs: StageCosts) -> int:
    return int(rank_blocks(costs, even_counts(costs)).max())


def _some(peaks: list[int]) -> list[int]:
    """Budgets around peaks from the least to the greatest, and below them all."""
    picked = [peaks[round(q * (len(peaks) - 1) / 4)] for q in range(5)]
    return [*picked, picked[0] - 1, picked[2] - 1, picked[0] * 3 // 4]


def tightened(pricing: Pricing, blocks: int | None) -> Pricing:
    """The same job with about this much room for states and activations.

    A huge CUDA context takes the rest.
    """
    if blocks is None:
        return pricing
    free = with_profile(pricing, context_gb=0.0, communicator_gb=0.0)
    whole = budget_bytes(free, enumerate_space(pricing).meshes).max()
    taken = max(whole - 512 * blocks, 0.0) / pricing.profile.packing
    return with_profile(pricing, context_gb=taken / 1e9, communicator_gb=0.0)


def priced_space(pricing: Pricing) -> tuple[CostTable, Space]:
    """The whole declared space of a job, all its meshes priced at once."""
    space = enumerate_space(pricing)
    return price_meshes(pricing, space.meshes, space.recompute), space


def with_profile(pricing: Pricing, **fields: object) -> Pricing:
    profile = pricing.profile.model_copy(update=fields)
    return replace(pricing, framework=replace(pricing.framework, profile=profile))


def framework(name: str) -> Framework:
    """A framework with all that its limits name, written in launch files or not."""
    found = next(f for f in FRAMEWORKS if f.name == name)
    return replace(found, writers=())


def with_host_memory(pricing: Pricing, memory: float | None) -> Pricing:
    """The job on nodes with so much memory of their own, or with none known. [B]."""
    cluster = pricing.topology.cluster
    node = cluster.node.model_copy(update={"host_memory": memory})
    return replace(pricing, topology=ClusterTopology(replace(cluster, node=node)))
