"""What the search returns is sound, down to the nanosecond and the block."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from planner.specs.layouts.layout import Layout, Stage
from planner.verify import violations
from planner.verify.clocks.clock import Clocks
from planner.verify.price import NANO
from planner.verify.prices import Prices

CASES: dict[str, tuple[dict[str, Any], Callable[[Layout], bool]]] = {
    "free": ({}, lambda _: True),
    "free moe": ({"model": "moe"}, lambda _: True),
    "free torchtitan": ({"framework": "torchtitan"}, lambda _: True),
    "free accelerate": ({"framework": "accelerate"}, lambda x: x.pp == 1),
    "whole replicas": (
        {"framework": "accelerate", "zero_stage": 0, "tp": 1},
        lambda x: x.zero_stage == 0,
    ),
    "waiting gradients at ZeRO-3": (
        {
            "framework": "accelerate",
            "zero_stage": 3,
            "recipe": {"accumulates_unsharded": True},
            "micro_batch": 1,
        },
        lambda x: x.grad_accum > 1,
    ),
    "free a100": ({"node": "dgx-a100-80gb", "nodes": 4}, lambda _: True),
    "zero 0": ({"zero_stage": 0, "tp": 1, "pp": 2}, lambda x: x.zero_stage == 0),
    "zero 1": ({"zero_stage": 1, "pp": 2}, lambda x: x.zero_stage == 1),
    "zero 2": (
        {"framework": "torchtitan", "zero_stage": 2, "pp": 2},
        lambda x: x.zero_stage == 2,
    ),
    "zero 3": (
        {"framework": "torchtitan", "zero_stage": 3, "pp": (1, 2)},
        lambda x: x.zero_stage == 3,
    ),
    "hybrid shards": (
        {"framework": "torchtitan", "dp_shard": 4, "pp": 1},
        lambda x: x.dp_shard < x.dp * x.cp,
    ),
    "uneven stages": (
        {"pp": 4, "vpp": 1},
        lambda x: len(set(x.layers_per_stage)) > 1,
    ),
    "interleaved": (
        {"pp": 2, "vpp": {"min": 2}, "layers": 12},
        lambda x: x.schedule == "interleaved",
    ),
    "interleaved torchtitan": (
        {"framework": "torchtitan", "pp": 4, "vpp": 3, "layers": 12, "zero_stage": 2},
        lambda x: x.vpp == 3,
    ),
    "no overlap": (
        {
            "pp": 2,
            "zero_stage": 1,
            "stack": {"overlap_param_gather": False, "overlap_grad_reduce": False},
        },
        lambda x: x.pp == 2,
    ),
    "ring": (
        {"space": "full", "cp": 2, "cp_kind": "ring", "pp": 2},
        lambda x: x.cp > 1,
    ),
    "all-gather": (
        {"framework": "torchtitan", "cp": 4, "tp": 1},
        lambda x: x.cp_kind == "all-gather",
    ),
    "pipeline inside data": (
        {"order": "tp-cp-ep-pp-dp", "pp": 2, "nodes": 4, "tp": 2},
        lambda x: x.order == "tp-cp-ep-pp-dp",
    ),
    "experts": ({"model": "moe", "ep": 4, "pp": 2}, lambda x: x.ep == 4),
    "expert tensor": (
        {"model": "moe", "etp": 2, "tp": 2, "sp": True},
        lambda x: x.etp == 2,
    ),
    "experts with the pipeline inside data": (
        {"model": "moe", "order": "tp-cp-ep-pp-dp", "tp": 2, "sp": True, "pp": 2},
        lambda x: x.order == "tp-cp-ep-pp-dp" and x.ep * x.etp == x.tp * x.cp,
    ),
    "latent attention, dense first layers, token prediction": (
        {"model": "deepseek", "pp": 2, "ep": 4},
        lambda x: x.ep == 4,
    ),
    "recompute by layer": (
        {
            "scope": "virtual-stage",
            "node": "dgx-a100-40gb",
            "nodes": 1,
            "layers": 30,
            "micro_batch": 4,
            "tp": 1,
            "cp": 1,
            "pp": 1,
        },
        lambda x: len({r.kind for s in x.stages for r in s.recompute}) > 1,
    ),
}


LONG = {
    "free moe",
    "free torchtitan",
    "free a100",
    "no overlap",
    "pipeline inside data",
    "ring",
    "whole replicas",
    "zero 0",
    "zero 1",
    "hybrid shards",
    "interleaved torchtitan",
    "all-gather",
    "expert tensor",
    "experts with the pipeline inside data",
}
"""Cases whose rules other cases have too, in another mix. [text]"""


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=[pytest.mark.slow] * (c in LONG)) for c in CASES],
)
def test_what_the_search_returns_is_sound(
    case: str, workload_of: Callable[..., Any], claims_of: Callable[..., Any]
) -> None:
    """Every listed plan passes, and the best one is of the kind asked for."""
    fields, is_of_the_kind = CASES[case]
    claims = claims_of(workload_of(**fields))
    assert claims
    assert is_of_the_kind(claims[0].layout)
    for claim in claims:
        assert claim.objections() == []


@pytest.mark.parametrize("case", ["uneven stages", "interleaved torchtitan", "zero 3"])
def test_the_clocks_agree_to_the_nanosecond(
    case: str, workload_of: Callable[..., Any], claims_of: Callable[..., Any]
) -> None:
    """Whole nanoseconds come out, the same as the longest path."""
    for claim in claims_of(workload_of(**CASES[case][0])):
        prices = Prices.of(claim.pricing, claim.layout)
        path = claim.step_s / prices.slowdown * NANO
        assert Clocks(prices).step() == pytest.approx(path, rel=1e-12)


def test_a_plan_of_16384_gpus_is_checked_in_three_seconds(
    workload_of: Callable[..., Any],
) -> None:
    """128 virtual stages, ranks listed for every axis; the claims are wrong."""
    workload = workload_of(nodes=2048, layers=126, batch=2048)
    ends, stages = (Stage(layers=0),), (Stage(layers=1),) * 126
    layout = Layout(
        tp=8,
        sp=True,
        pp=16,
        vpp=8,
        dp=128,
        dp_shard=128,
        zero_stage=1,
        grad_accum=16,
        schedule="interleaved",
        order="tp-cp-ep-pp-dp",
        stages=(*ends, *stages, *ends),
    )
    start = time.monotonic()
    found = violations(workload, layout, step_s=1.0, device_gib=(0.1,) * 16)
    assert time.monotonic() - start < 3.0
    assert len(found) == 17
