"""Pods of unequal size: ranks one after the other, or whole stages in every pod."""

from dataclasses import replace

import pytest
from every_split import best_of_space
from strategies import small_job

from planner.cost.pricing import Pricing
from planner.cost.table.mixed import border_time, price_meshes
from planner.hardware.catalog import resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.files import SHIPPED
from planner.job.fleets import with_pods
from planner.planning.optimize import optimize
from planner.search.best_first import search_all
from planner.search.space.fleet import arrangements
from planner.search.space.space import enumerate_space
from planner.specs.search import SearchSpec

LIMITS = {"tp": 8, "cp": 1, "vpp": 1, "zero_stage": 1, "micro_batch": 1}


def on_pods(
    *units: int, over: float = 7.0, dead: tuple[int, ...] = (), **limits: object
) -> Pricing:
    """A tiny Llama on DGX H100 pods of so many nodes, with few uplinks."""
    tier = {"name": "pod", "gpus": 8 * max(units), "oversubscription": over}
    spec = {
        "name": "made",
        "node": "dgx-h100",
        "nodes": sum(units),
        "out_of_service": dead,
        "tiers": [tier | {"units": units}],
    }
    search = SearchSpec.model_validate(LIMITS | limits)
    cluster = resolve_cluster(ClusterSpec.model_validate(spec), SHIPPED)
    job = small_job(search, sequences=8, config={"num_hidden_layers": 5})
    return Pricing.candidate(with_pods(replace(job, topology=ClusterTopology(cluster))))


def test_a_pod_is_a_cluster_of_its_nodes_in_service() -> None:
    pods = on_pods(3, 2, 1, dead=(1, 5)).pods
    assert [pod.name for pod in pods] == ["pod of node 0", "pod of node 3"]
    assert [pod.topology.gpus for pod in pods] == [16, 16]


def test_stages_lie_in_pods_or_wherever_ranks_do() -> None:
    consecutive, whole = arrangements(on_pods(3, 2))
    assert not consecutive.stage_pools
    assert [pod.topology.gpus for pod in whole.stage_pools] == [24, 16]
    stages = set(enumerate_space(whole).hostings)
    assert (3, 2) in stages
    assert (1, 1) in stages


@pytest.mark.parametrize(("units", "dead"), [((3, 2), ()), ((2, 1, 2), (0,))])
def test_the_best_over_unequal_pods_is_that_of_brute_force(
    units: tuple[int, ...], dead: tuple[int, ...]
) -> None:
    workload = on_pods(*units, dead=dead, recompute="none")
    steps = []
    for variant in arrangements(workload):
        space = enumerate_space(variant)
        table = price_meshes(variant, space.meshes, space.recompute)
        best = best_of_space(table, space) if len(space) else None
        steps += [best.step_s] if best is not None else []
    outcomes = search_all(arrangements(workload), top=1)
    found = min(plan.step_s for outcome in outcomes for plan in outcome.ranked)
    assert found == pytest.approx(min(steps), rel=1e-12)


def test_whole_stages_in_pods_spare_the_uplinks() -> None:
    """Of two stages of two nodes in a row the second lies in both pods of 3 and 2."""
    result = optimize([on_pods(3, 2, over=7.0, dp=2, pp=2)])
    assert result.status == "optimal"
    first, second = result.plans[0].layout.pools
    assert (first.pool, second.pool) == ("pod of node 0", "pod of node 3")
    assert "uses 32 of 40 GPUs" in " ".join(result.plans[0].estimate.assumptions)
    slower = [plan.slower for plan in result.plans if not plan.layout.pools]
    assert all(slower)


def test_a_border_shares_the_uplinks_of_a_pod() -> None:
    """A stage of the whole pod sees its oversubscription, one of a node does not."""
    fast, slow = (
        arrangements(on_pods(1, 1, 2, over=over, gpus={"min": 8}))[1]
        for over in (1.0, 7.0)
    )
    space = enumerate_space(slow)
    narrow = space.meshes.dp == 1
    before, after = border_time(fast, space.meshes), border_time(slow, space.meshes)
    assert narrow.all()
    assert (after > before).all()
