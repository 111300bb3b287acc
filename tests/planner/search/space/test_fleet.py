"""Fleets that no layout fills: which sizes the space holds, and the best of them."""

import re
from dataclasses import replace

import pytest
from every_split import best_of_space
from strategies import small_job

from planner.cost.pricing import Pricing
from planner.cost.table.table import fill_table
from planner.hardware.catalog import resolve_cluster
from planner.hardware.fleets import ClusterSpec
from planner.hardware.graph.topology import ClusterTopology
from planner.hardware.reading.files import SHIPPED
from planner.planning.optimize import optimize
from planner.search.best_first import search
from planner.search.space.space import enumerate_space
from planner.specs.search import SearchSpec, Span

TIGHT = {"tp": (4, 8), "cp": 1, "zero_stage": 1, "micro_batch": (1, 2), "vpp": 1}


def on(limits: dict[str, object], **fields: object) -> Pricing:
    """A tiny job on whole DGX H100 nodes, some of them perhaps gone."""
    workload = small_job(SearchSpec.model_validate(limits), sequences=32)
    spec = ClusterSpec.model_validate({"name": "made", "node": "dgx-h100"} | fields)
    return replace(workload, topology=ClusterTopology(resolve_cluster(spec, SHIPPED)))


def sizes(pricing: Pricing) -> set[int]:
    return set(enumerate_space(pricing).meshes.gpus.tolist())


def test_an_ordinary_fleet_is_filled() -> None:
    assert sizes(on(TIGHT, nodes=4)) == {32}


def test_a_fleet_that_no_layout_fills_leaves_whole_nodes_idle() -> None:
    """11 nodes and 32 sequences: no 88 GPUs; 80 are five stages of two nodes."""
    found = sizes(on(TIGHT, nodes=11))
    assert found == {80}


def test_dead_nodes_may_leave_others_idle() -> None:
    """Of 40 nodes 7 are gone: 33 hold no layout, 32 do, and so do 8 stages of 4."""
    found = sizes(on(TIGHT, nodes=40, out_of_service=7))
    assert found == {256}


def test_a_limit_on_gpus_opens_every_size_that_it_allows() -> None:
    assert sizes(on(TIGHT | {"gpus": [8, 24]}, nodes=4)) == {8, 24}
    limit = {"gpus": Span(min=16, max=24)}
    assert sizes(on(TIGHT | limit, nodes=4)) == {16, 24}
    assert sizes(on(TIGHT | {"gpus": 20}, nodes=4)) == set()


def test_users_limits_do_not_make_a_fleet_one_that_nothing_fills() -> None:
    assert sizes(on(TIGHT | {"tp": 8, "pp": 3}, nodes=4)) == set()


@pytest.mark.parametrize(
    "fields",
    [
        {"nodes": 5, "out_of_service": (1,)},
        pytest.param(
            {
                "nodes": 5,
                "tiers": [
                    {"name": "pod", "gpus": 24, "oversubscription": 7, "units": [3, 2]}
                ],
            },
            marks=pytest.mark.slow,
        ),
        pytest.param({"nodes": 4}, marks=pytest.mark.slow),
    ],
)
def test_the_best_of_a_broken_fleet_is_that_of_brute_force(
    fields: dict[str, object],
) -> None:
    workload = on(TIGHT | {"gpus": {"min": 16}}, **fields)
    space = enumerate_space(workload)
    table = fill_table(workload, space.meshes, space.recompute)
    best = best_of_space(table, space)
    outcome = search(workload)
    assert best is not None
    assert outcome.proven
    assert outcome.ranked[0].step_s == pytest.approx(best.step_s, rel=1e-12)


@pytest.mark.slow
def test_a_plan_says_what_it_leaves_idle() -> None:
    """The verifier takes it, and the words are those of the search's own counts."""
    workload = on(TIGHT, nodes=11)
    result = optimize([workload])
    plan = result.plans[0]
    assert result.status == "optimal"
    assert plan.layout.gpus == 80
    assert "80 of 88 GPUs in service, 1 nodes idle" in result.explanation.binding[-1]
    assert "no legal layout of the space uses more" in result.explanation.binding[-1]
    assert plan.estimate.tokens_per_s_per_gpu * 80 == pytest.approx(
        plan.estimate.tokens_per_s
    )


def test_leaving_nodes_idle_is_chosen_where_it_is_faster() -> None:
    """One sequence: a second stage only adds transfers and a bubble."""
    limits = TIGHT | {"gpus": {"min": 8}, "tp": 8, "pp": (1, 2)}
    workload = on(limits, nodes=2)
    training = workload.training.model_copy(update={"global_batch": 1})
    result = optimize([replace(workload, training=training)])
    assert result.status == "optimal"
    assert result.plans[0].layout.gpus == 8
    said = result.explanation.binding[-1]
    assert "8 of 16 GPUs in service, 1 nodes idle" in said
    counted = r"(\d+) candidates use more, \1 of them all, and none is faster"
    assert re.search(counted, said)
