"""Stages of each pool where the user says how many GPUs: all of them, one by one."""

import time
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from against_every_plan import check_space
from strategies import small_job

from planner.cost.pricing import Pricing
from planner.cost.workload import Pool
from planner.hardware.calibration import calibration
from planner.hardware.catalog import resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.files import SHIPPED
from planner.planning.optimize import optimize
from planner.search.emptiness import has_legal
from planner.search.space.fleet import arrangements, dealt_out
from planner.search.space.space import Enumerator
from planner.search.stop import OUT_OF_TIME, Stop, StoppedError, after
from planner.specs.search import SearchSpec

NODES = ("dgx-h100", "dgx-h200", "dgx-b200", "dgx-a100-80gb", "dgx-a100-40gb")


def job(*nodes: int, layers: int = 80, **limits: Any) -> Pricing:
    """A deep model on so many nodes of one kind, of the next kind, and so on."""
    pools = [
        {"name": kind, "node": kind, "nodes": many}
        for kind, many in zip(NODES, nodes, strict=False)
    ]
    base = small_job(
        SearchSpec.model_validate(limits),
        sequences=64,
        config={"num_hidden_layers": layers},
    )
    spec = ClusterSpec.model_validate({"name": "made", "pools": pools})
    there = ClusterTopology(resolve_cluster(spec, SHIPPED))
    kinds = zip(there.cluster.spec.pools, there.cluster.pools, strict=True)
    held = tuple(
        Pool(
            its.name,
            ClusterTopology(cluster),
            calibration(cluster.gpu.name, SHIPPED),
            base.framework,
            base.uncertainty,
        )
        for its, cluster in kinds
    )
    return replace(base, topology=there, pools=held)


@pytest.mark.parametrize("total", range(3, 16))
def test_every_way_to_deal_stages_out_comes_once_and_in_order(total: int) -> None:
    choices = ((1, 2, 3, 4), (2, 4), (1, 3, 5, 7))
    every = [one for one in product(*choices) if sum(one) == total]
    assert list(dealt_out(total, choices)) == every


def test_a_fleet_of_five_kinds_is_listed_until_a_limit_ends_it() -> None:
    """Tens of millions of ways for each degree: none is listed before it is due."""
    whole = arrangements(job(64, 64, 64, 64, 64, gpus={"max": 2048}))[-1]
    assert len(whole.stage_pools) == len(NODES)
    looks = iter(range(10**9))
    few = Stop(more=lambda: "" if next(looks) < 1000 else OUT_OF_TIME)
    with pytest.raises(StoppedError):
        Enumerator(whole).listing(stop=few)


def test_a_limit_that_no_number_of_stages_keeps_is_seen_at_once() -> None:
    assert not has_legal(arrangements(job(64, 64, 64, gpus=1001)))


@pytest.mark.parametrize("gpus", [24, (16, 32), {"min": 9, "max": 31}])
@pytest.mark.parametrize("space", ["default", "full"])
def test_stages_within_a_limit_on_gpus_are_those_of_brute_force(
    gpus: Any, space: str
) -> None:
    few = {"cp": 1, "micro_batch": 1, "zero_stage": 1, "recompute": "none"}
    check_space(job(2, 1, 1, layers=3, gpus=gpus, space=space, tp=(4, 8), **few))


@pytest.mark.slow
def test_the_time_limit_holds_on_a_fleet_of_five_kinds() -> None:
    """A plan of one kind, and a bound on all of them."""
    whole = job(64, 64, 64, 64, 64, gpus={"max": 2048}, recompute="none")
    began = time.process_time()
    result = optimize([whole], stop=after(30.0))
    assert time.process_time() - began < 45.0
    assert result.status == "feasible"
    assert 0 < result.objective.gap < 1
