"""Prices worked out one by one are the table's, to the nanosecond and the block."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from planner.cost.meshes import Meshes
from planner.cost.pipeline.splits import edge_gather, edge_scatter
from planner.cost.table.table import fill_table
from planner.specs.layouts.layout import Layout, Stage
from planner.specs.table import EndCosts, LayerCosts
from planner.verify.price import Price, nanoseconds
from planner.verify.prices import Prices

JOBS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"zero_stage": 0}),
    ({}, {"zero_stage": 1, "sp": True}),
    ({"model": "moe"}, {"zero_stage": 1, "sp": True, "ep": 4}),
    ({"model": "moe", "framework": "torchtitan"}, {"zero_stage": 2}),
    ({"framework": "torchtitan"}, {"zero_stage": 3}),
    ({"reference": "copy"}, {"zero_stage": 1, "sp": True}),
    (
        {"framework": "torchtitan", "reference": "copy"},
        {"zero_stage": 3},
    ),
    ({"model": "deepseek"}, {"zero_stage": 1, "sp": True, "ep": 4, "etp": 1}),
]
MESH = {"tp": 2, "pp": 4, "dp": 2, "dp_shard": 2, "micro_batch": 2, "grad_accum": 8}


APART = {"idle", "spared", "weight"}
"""What a price has outside the passes, the table's part of a split backward, and the
states that a limit on the risk leaves out."""


def passes_of(price: Price | LayerCosts | EndCosts) -> dict[str, Any]:
    """A price without what it has outside the passes."""
    return {name: value for name, value in asdict(price).items() if name not in APART}


@pytest.mark.parametrize(("job", "fields"), JOBS)
@pytest.mark.parametrize("recompute", [0, 1, 2])
def test_every_price_is_that_of_the_table(
    job: dict[str, Any],
    fields: dict[str, Any],
    recompute: int,
    workload_of: Callable[..., Any],
) -> None:
    """Layers, ends, edges, p2p and the straggler, each compared alone."""
    workload = workload_of(**job)
    menu = workload.framework.limits.recompute
    layout = Layout(**(MESH | fields), stages=(Stage(layers=0),) * 4)
    table = fill_table(workload, Meshes.of_layout(layout), menu)
    costs = table.stage_costs(0, schedule="1f1b", vpp=1, menu=(recompute,))
    prices = Prices.of(workload, layout)
    for kind, cell in zip(workload.kinds, costs.layers, strict=True):
        alone = {
            name: value[0] if isinstance(value, tuple) else value
            for name, value in passes_of(cell).items()
        }
        assert passes_of(prices.layer(kind, menu[recompute])) == alone
    assert passes_of(prices.embedding) == passes_of(costs.embedding)
    assert passes_of(prices.head) == passes_of(costs.head)
    for stage in range(4):
        edges = edge_gather(costs, stage), edge_scatter(costs, stage)
        assert prices.edges(stage) == edges
    assert (prices.p2p, prices.scatter_every) == (costs.p2p, costs.scatter_every)
    assert prices.slowdown == pytest.approx(costs.slowdown, rel=1e-12)


def test_halves_of_a_nanosecond_round_to_even() -> None:
    assert [nanoseconds(n * 1e-9) for n in (0.5, 1.5, 2.5, 2.6)] == [0, 2, 2, 3]


def test_alone_there_is_nothing_to_send_or_wait_for(
    workload_of: Callable[..., Any],
) -> None:
    """One stage has no p2p, one node no straggler."""
    layout = Layout(tp=8, stages=(Stage(layers=13),))
    prices = Prices.of(workload_of(), layout)
    assert (prices.p2p, prices.slowdown) == (0, 1.0)
