"""Stages on pools of different GPUs: the best assignment, its bounds, its verifier."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from every_split import (
    best_of_space,
    candidate_costs,
    cheapest_split,
    splits,
)
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from solved import solve_mesh
from strategies import small_job
from tiers import some

from planner.cost.estimate.estimate import estimate
from planner.cost.estimate.layouts import layout_of
from planner.cost.pipeline.memory_rows import fits, rank_blocks
from planner.cost.pipeline.splits import step_ns
from planner.cost.pricing import Pricing
from planner.cost.table.mixed import price_meshes
from planner.cost.workload import Pool
from planner.hardware.calibration import calibration
from planner.hardware.catalog import resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.files import SHIPPED
from planner.planning.layouts import found_layout
from planner.planning.optimize import optimize
from planner.search.best_first import search_all
from planner.search.bounds.bounds import relax, space_bounds
from planner.search.bounds.known_bounds import KnownBounds
from planner.search.bounds.memory_bounds import most_layers
from planner.search.bounds.memory_rows import memory_lines
from planner.search.bounds.paths import even_counts
from planner.search.bounds.pool_bounds import (
    balanced_layers,
    dealt_to_pools,
    pooled_bound,
)
from planner.search.first_tier import first_tier
from planner.search.mesh_answer import Outcome
from planner.search.space.fleet import arrangements
from planner.search.space.space import enumerate_space
from planner.specs.search import SearchSpec
from planner.specs.table import StageCosts
from planner.verify import violations

LIMITS = {"cp": 1, "zero_stage": 1, "micro_batch": 1}


@cache
def fleet(a100_nodes: int = 1, join: str | None = None) -> ClusterTopology:
    pools = [
        {"name": "fast", "node": "dgx-h100", "nodes": 1},
        {"name": "slow", "node": "dgx-a100-80gb", "nodes": a100_nodes},
    ]
    given = {"name": "made", "pools": pools, "join": {"bandwidth": join}}
    return ClusterTopology(resolve_cluster(ClusterSpec.model_validate(given), SHIPPED))


def job(
    limits: dict[str, object] | None = None,
    layers: int = 6,
    a100_nodes: int = 1,
    **config: int,
) -> Pricing:
    """A tiny Llama on a node of H100s beside some of A100s."""
    spec = SearchSpec.model_validate(LIMITS | (limits or {}))
    shape: dict[str, object] = {"num_hidden_layers": layers, **config}
    base = small_job(spec, sequences=8, config=shape)
    there = fleet(a100_nodes)
    pools = tuple(
        Pool(
            own.name,
            ClusterTopology(cluster),
            calibration(cluster.gpu.name, SHIPPED),
            base.framework,
            base.uncertainty,
        )
        for own, cluster in zip(
            there.cluster.spec.pools, there.cluster.pools, strict=True
        )
    )
    return replace(base, topology=there, pools=pools)


def problems(
    limits: dict[str, object], layers: int = 6, **config: int
) -> list[StageCosts]:
    """Inner problems of every candidate on both pools, in both orders."""
    found = []
    for variant in arrangements(job(limits, layers, **config)):
        if variant.mixed:
            space = enumerate_space(variant)
            table = price_meshes(variant, space.meshes, space.recompute)
            found += [candidate_costs(table, space, c) for c in range(len(space))]
    return found


WIDE = {"hidden_size": 4096, "intermediate_size": 16384}
"""Kernels large enough that the GPU decides their time."""
SMALL = {"tp": (4, 8), "vpp": 1, "recompute": ("none", "full")}


def test_a_fleet_is_tried_pool_by_pool_and_in_every_order() -> None:
    names = [[pool.name for pool in v.stage_pools] for v in arrangements(job())]
    assert names == [["fast"], ["slow"], ["fast", "slow"], ["slow", "fast"]]


def test_a_framework_without_pipelines_stays_on_one_pool() -> None:
    workload = job()
    limits = replace(workload.framework.limits, pipeline=False)
    framework = replace(workload.framework, limits=limits)
    variants = arrangements(replace(workload, framework=framework))
    assert [len(v.stage_pools) for v in variants] == [1, 1]


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(25))
@given(st.data())
def test_the_best_of_a_mixed_fleet_is_that_of_brute_force(data: st.DataObject) -> None:
    """Over all pools alone, both orders, and any number of stages on each."""
    limits = {
        "tp": data.draw(st.sampled_from([(2,), (4,), (8,), (4, 8)])),
        "vpp": data.draw(st.sampled_from([1, (1, 2)])),
        "space": data.draw(st.sampled_from(["default", "full"])),
        "recompute": data.draw(st.sampled_from([("none",), ("none", "full")])),
        "order": "tp-cp-ep-dp-pp",
        "pp": (1, 2, 3, 4),
        "schedule": ("1f1b", "interleaved"),
        "gpus": data.draw(st.sampled_from([None, {"min": 8}])),
    }
    workload = job(limits, data.draw(st.integers(3, 7)))
    variants = arrangements(workload)
    outcomes = search_all(variants, top=1)
    found = []
    for variant, outcome in zip(variants, outcomes, strict=True):
        space = enumerate_space(variant)
        table = price_meshes(variant, space.meshes, space.recompute)
        best = best_of_space(table, space)
        if best is not None:
            found.append(best.step_s)
            assert outcome.bound_s <= best.step_s * (1 + 1e-9)
    ranked = [plan.step_s for outcome in outcomes for plan in outcome.ranked]
    assert min(ranked) == pytest.approx(min(found), rel=1e-12)


@settings(deadline=None, max_examples=examples(30))
@given(st.data())
def test_no_bound_is_above_a_split_and_no_proof_denies_one(data: st.DataObject) -> None:
    costs = data.draw(st.sampled_from(problems(SMALL)))
    best = cheapest_split(costs)
    answer = solve_mesh(costs)
    if best is None:
        assert answer.outcome is Outcome.INFEASIBLE
        return
    assert answer.value == best[0]
    assert relax(costs).bound <= best[0]
    held = best[1].sum(axis=(1, 2))
    assert (held <= most_layers(costs)).all()


def test_the_first_bound_is_below_every_plan_of_a_mixed_space() -> None:
    for variant in arrangements(job(SMALL)):
        space = enumerate_space(variant)
        table = price_meshes(variant, space.meshes, space.recompute)
        first = space_bounds(table, space)
        pooled = pooled_bound(table, space)
        dealt = dealt_to_pools(table, space) if variant.mixed else pooled
        assert (pooled > 0).all() == variant.mixed
        assert not variant.mixed or (dealt > 0).all()
        for candidate in range(len(space)):
            costs = candidate_costs(table, space, candidate)
            best = cheapest_split(costs)
            if best is not None:
                step = best[0] * costs.slowdown / 1e9
                assert first.step[candidate] <= step
                assert pooled[candidate] <= step
                assert dealt[candidate] <= step
                assert first.fits[candidate]


def test_bounds_of_one_order_of_the_pools_serve_the_other() -> None:
    """The other order has the same candidates left, and the same bounds."""
    *_, one, other = arrangements(job(SMALL | {"gpus": {"min": 8}}))
    every = first_tier(other, float("inf"))
    most = float(np.median(every.bounds))
    known = KnownBounds()
    first_tier(one, float("inf"), known=known)
    assert len(known.variants) == 1
    told, alone = first_tier(other, most, known=known), first_tier(other, most)
    assert len(known.variants) == 1
    assert 0 < len(told.bounds) < len(every.bounds)
    assert told.bounds.tolist() == alone.bounds.tolist()
    assert told.space.hostings == alone.space.hostings


def test_no_bound_is_above_a_split_that_is_even_in_time() -> None:
    """Stages of the fast pool have thrice as many layers as those of the slow one."""
    seen = 0
    limits = {"tp": (4, 8), "vpp": (1, 2)}
    for variant in arrangements(job(limits, layers=60, **WIDE)):
        if not variant.mixed:
            continue
        space = enumerate_space(variant)
        table = price_meshes(variant, space.meshes, space.recompute)
        bounds = np.maximum(pooled_bound(table, space), dealt_to_pools(table, space))
        for candidate in range(len(space)):
            costs = candidate_costs(table, space, candidate)
            counts = even_counts(costs)
            if fits(costs, counts):
                seen += 1
                step = step_ns(costs, counts) * costs.slowdown / 1e9
                assert 0.5 * step < bounds[candidate] <= step
    assert seen


def test_each_rank_is_priced_by_its_own_pool() -> None:
    """Every split costs what the two pools alone say of their own ranks."""
    for costs in problems({"tp": 8, "vpp": 1})[:2]:
        for counts in list(splits(costs))[:5]:
            alone = [rank_blocks(host, counts) for host in costs.hosts]
            mine = [alone[p][r] for r, p in enumerate(costs.pool_of_rank)]
            assert rank_blocks(costs, counts).tolist() == mine
            bound = max(step_ns(host, counts) for host in costs.hosts)
            assert step_ns(costs, counts) <= bound


def test_the_rows_of_memory_hold_wherever_a_split_fits() -> None:
    for costs in problems(SMALL)[:6]:
        lines = memory_lines(costs)
        for counts in splits(costs):
            if fits(costs, counts):
                assert all(line.value(counts) <= 0 for line in lines)


def test_a_slow_pool_gets_fewer_layers() -> None:
    costs = problems({"tp": 8, "vpp": 1}, layers=40, **WIDE)[0]
    layers = balanced_layers(costs)
    assert sum(layers) == 40
    assert layers[0] > layers[1]
    assert costs.hosts[0].layers[0].forward[0] < costs.hosts[1].layers[0].forward[0]


@pytest.mark.slow
@pytest.mark.parametrize("limits", some(({"tp": 8}, {"tp": 4, "recompute": "none"}), 2))
def test_plans_of_mixed_fleets_are_verified_and_named(
    limits: dict[str, object],
) -> None:
    workload = job(limits, layers=24, a100_nodes=2)
    result = optimize([workload])
    assert result.status == "optimal"
    for plan in result.plans:
        layout = plan.layout
        hosted = [stage for pool in layout.pools for stage in pool.stages]
        assert hosted == list(range(layout.pp))
        assert {pool.tp for pool in layout.pools} == {layout.tp}


def test_the_verifier_objects_to_stages_on_other_pools() -> None:
    workload = job({"tp": 8, "vpp": 1}, layers=9, **WIDE)
    variant = next(v for v in arrangements(workload) if v.mixed)
    space = enumerate_space(variant)
    table = price_meshes(variant, space.meshes, space.recompute)
    costs = candidate_costs(table, space, 0)
    best = cheapest_split(costs)
    assert best is not None
    assert fits(costs, best[1])
    layout = layout_of(
        variant,
        space.meshes,
        int(space.mesh[0]),
        schedule=costs.schedule,
        vpp=costs.vpp,
        menu=costs.menu,
        counts=best[1],
        hosting=space.hosting(0),
    )
    told = estimate(variant, layout)
    claims = {
        "step_s": told.step_time_s.value,
        "device_gib": [stage.device for stage in told.memory.stages],
    }
    assert violations(workload, layout, **claims) == []
    swapped = tuple(
        pool.model_copy(update={"pool": other.pool})
        for pool, other in zip(layout.pools, reversed(layout.pools), strict=True)
    )
    wrong = layout.model_copy(update={"pools": swapped})
    assert any("the step takes" in s for s in violations(workload, wrong, **claims))
    gone = layout.model_copy(update={"pools": layout.pools[:1]})
    assert any("host stages" in s for s in violations(workload, gone, **claims))
    full = layout.pools[0].model_copy(update={"pool": "none"})
    strange = layout.model_copy(update={"pools": (full, layout.pools[1])})
    assert any("no pool 'none'" in s for s in violations(workload, strange, **claims))
    assert violations(workload, layout.model_copy(update={"pools": ()}), **claims)


def test_a_slow_join_slows_every_border() -> None:
    plain = job({"tp": 8, "vpp": 1})
    slow = replace(plain, topology=fleet(join="1 GB/s"))
    steps = []
    for workload in (plain, slow):
        variant = next(v for v in arrangements(workload) if v.mixed)
        space = enumerate_space(variant)
        table = price_meshes(variant, space.meshes, space.recompute)
        steps.append(candidate_costs(table, space, 0).p2p)
    assert steps[1] > 5 * steps[0]


def test_flops_are_held_against_the_summed_peak() -> None:
    workload = job({"tp": 8, "vpp": 1, "gpus": 16})
    (plan, *_) = optimize([workload]).plans
    assert len(plan.layout.pools) == 2
    peaks = [pool.topology.cluster.gpu.peak_bf16 or 0.0 for pool in workload.pools]
    mfu, each = plan.estimate.mfu, plan.estimate.model_tflops_per_gpu
    assert mfu.full_attention == pytest.approx(
        each.full_attention * 1e12 / np.mean(peaks)
    )


def with_own_degrees(pricing: Pricing) -> Pricing:
    """The job under a framework whose pools may have tp and dp of their own."""
    limits = replace(pricing.framework.limits, pool_degrees="own")
    framework = replace(pricing.framework, limits=limits)
    pools = tuple(replace(pool, framework=framework) for pool in pricing.pools)
    return replace(pricing, framework=framework, pools=pools)


OWN = {"tp": (2, 4), "vpp": 1, "micro_batch": (1, 2), "recompute": "none"}


def test_a_framework_may_give_each_pool_degrees_of_its_own() -> None:
    variants = arrangements(with_own_degrees(job(OWN)))
    ratios = {
        (v.stage_pools[1].wider, v.stage_pools[1].more) for v in variants if v.mixed
    }
    assert len(variants) == 2 + 2 * 9
    assert (2, Fraction(1, 2)) in ratios


@pytest.mark.slow
def test_the_best_with_own_degrees_is_that_of_brute_force_and_verified() -> None:
    workload = with_own_degrees(job(OWN, layers=5))
    variants = arrangements(workload)
    outcomes = search_all(variants, top=3)
    steps = []
    for variant in variants:
        space = enumerate_space(variant)
        table = price_meshes(variant, space.meshes, space.recompute)
        best = best_of_space(table, space) if len(space) else None
        steps += [best.step_s] if best is not None else []
    ranked = [plan.step_s for outcome in outcomes for plan in outcome.ranked]
    assert min(ranked) == pytest.approx(min(steps), rel=1e-12)


@pytest.mark.slow
def test_plans_with_own_degrees_are_sound_and_named() -> None:
    """Two nodes of A100s: half the tensor ranks, twice the replicas, are legal."""
    workload = with_own_degrees(job(OWN | {"gpus": {"min": 17}}, 12, 2, **WIDE))
    found = []
    for variant in arrangements(workload):
        space = enumerate_space(variant)
        if not (variant.mixed and len(space)):
            continue
        outcome = search_all([variant], top=1)[0]
        if outcome.ranked and variant.stage_pools[1].wider != 1:
            found.append((outcome, outcome.ranked[0]))
        if len(found) == 2:
            break
    assert found
    for outcome, plan in found:
        layout = found_layout(outcome, plan)
        first, second = layout.pools
        assert first.tp != second.tp
        told = estimate(outcome.pricing, layout)
        assert told.step_time_s.value == pytest.approx(plan.step_s)
        claims = {
            "step_s": told.step_time_s.value,
            "device_gib": [stage.device for stage in told.memory.stages],
        }
        assert violations(workload, layout, **claims) == []
        plain = job(OWN, 12, 2, **WIDE)
        said = violations(plain, layout, **claims)
        assert any("of its own; megatron has the same on all" in s for s in said)
