"""A pricing is a workload under a layout, or under a candidate's own settings."""

from dataclasses import FrozenInstanceError, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from planner.cost.pricing import Pricing
from planner.cost.workload import Workload
from planner.job.resolve import resolve
from planner.planning.prediction.predict import complete
from planner.report.sections.sources import source_sheets
from planner.specs.job import JobSpec
from planner.specs.layouts.formats import CommDtype
from planner.specs.layouts.layout import Layout, Offload, PartialLayout

FLEET = {
    "pools": [
        {"name": "h100", "node": "dgx-h100", "nodes": 2},
        {"name": "a100", "node": "dgx-a100-80gb", "nodes": 2},
    ]
}
HALVES = [{"pool": "a100", "stages": [0]}, {"pool": "h100", "stages": [1]}]
ALONE = [{"pool": "a100", "stages": [0, 1]}]
WIDE = CommDtype(gradients="fp32", parameters="bf16")


def job(**cluster: Any) -> Workload:
    spec = {
        "model": "llama-3-8b",
        "cluster": cluster or {"node": "dgx-h100", "nodes": 2},
        "training": {"seq_len": 4096, "global_batch": 64},
        "framework": "megatron",
    }
    (workload,) = resolve(JobSpec.model_validate(spec), file="job", base=Path())
    return workload


def layout(workload: Workload, **axes: Any) -> Layout:
    given = {"tp": 8, "pp": 2, "zero_stage": 1, "recompute": "none", "stages": "even"}
    return complete(workload, PartialLayout.model_validate(given | axes))


def test_a_workload_holds_nothing_of_a_layout() -> None:
    """The four settings of a price are of the pricing alone, and stay as they are."""
    own = {its.name for its in fields(Pricing)} - {its.name for its in fields(Workload)}
    assert own == {"offload", "stage_pools", "comm_dtype", "without"}
    pricing = Pricing.candidate(job())
    assert not any(hasattr(job(), name) for name in (*own, "profile", "recipe"))
    with pytest.raises(FrozenInstanceError):
        pricing.without = frozenset()  # type: ignore[misc]


def test_a_layout_sets_what_its_price_needs() -> None:
    """Without the distributed optimizer, Megatron-LM gathers nothing beside passes."""
    workload = job()
    fields = {"offload": {"optimizer": 1.0}, "comm_dtype": WIDE.model_dump()}
    here = layout(workload, zero_stage=0, **fields)
    pricing = Pricing.of(workload, here)
    assert pricing.offload == here.offload
    assert pricing.sends == here.comm_dtype
    assert pricing.without == {"overlap_param_gather"}
    assert workload.framework.profile.overlap_param_gather
    assert not pricing.profile.overlap_param_gather


def test_a_candidate_sets_its_own_and_leaves_the_rest_to_the_framework() -> None:
    workload = job()
    bare = Pricing.candidate(workload)
    assert (bare.offload, bare.comm_dtype, bare.without) == (Offload(), None, None)
    assert bare.recipe == workload.framework.recipe
    away = Offload(optimizer=1.0)
    own = Pricing.candidate(workload, offload=away, comm_dtype=WIDE)
    assert (own.offload, own.sends) == (away, WIDE)


def test_pools_follow_the_layout_with_their_own_degrees() -> None:
    workload = job(**FLEET)
    mixed = layout(workload, tp=4, dp=2, pools=HALVES)
    first, second = mixed.pools
    wider = mixed.model_copy(
        update={"pools": (first, second.model_copy(update={"tp": 8, "dp": 1}))}
    )
    pricing = Pricing.of(workload, wider)
    assert [pool.name for pool in pricing.stage_pools] == ["a100", "h100"]
    assert pricing.stage_pools[1].wider == 2
    assert pricing.stage_pools[1].more == Fraction(1, 2)
    assert pricing.mixed
    assert [part.gpu.name for part in pricing.parts] == [
        "a100-sxm4-80gb",
        "h100-sxm5-80gb",
    ]


@pytest.mark.parametrize("pools", [HALVES, ALONE], ids=["both pools", "one pool"])
def test_one_layout_after_another_is_the_last_alone(pools: list[Any]) -> None:
    workload = job(**FLEET)
    first = layout(workload, tp=4, dp=2, pools=HALVES)
    last = layout(workload, tp=4, dp=2, pools=pools)
    again = Pricing.of(Pricing.of(workload, first), last)
    alone = Pricing.of(workload, last)
    # The topology of the whole fleet plays no part where several pools host stages.
    assert replace(again, topology=alone.topology) == alone
    assert Pricing.of(alone, last) == alone


def test_the_sources_of_a_plan_name_every_pool_that_hosts_stages() -> None:
    workload = job(**FLEET)
    both = Pricing.of(workload, layout(workload, tp=4, dp=2, pools=HALVES))
    titles = [sheet.title for sheet in source_sheets(both)]
    assert "Measured of h100-sxm5-80gb" in titles
    assert "Measured of a100-sxm4-80gb" in titles
