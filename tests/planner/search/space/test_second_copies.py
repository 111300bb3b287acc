"""A second copy of ZeRO 3's weights is searched, and the best plan has it or not."""

from typing import Any

import pytest
from against_brute_force import check_job
from strategies import small_job, tightened

from planner.cost.pricing import Pricing
from planner.planning.optimize import optimize
from planner.search.space.space import enumerate_space
from planner.specs.search import SearchSpec

WIDE: dict[str, object] = {"hidden_size": 2048, "intermediate_size": 8192}


def job(**limits: Any) -> Pricing:
    """A tiny Llama on two nodes of 8 GPUs, which share 12.5 GB/s between them."""
    few = SearchSpec(zero_stage=3, pp=1, recompute="full", **limits)
    name, node = "deepspeed", "aws-p3dn.24xlarge"
    return small_job(few, name=name, node=node, nodes=2, config=WIDE)


def copies(pricing: Pricing) -> set[int]:
    return set(enumerate_space(pricing).meshes.hpz.tolist())


def test_the_space_has_every_group_that_tiles_the_ranks() -> None:
    assert copies(job()) == {1, 2, 4, 8, 16}
    assert copies(job(hpz=8)) == {8}
    assert copies(job(tp=2)) == {1}


@pytest.mark.parametrize(("blocks", "hpz"), [(None, 8), (3_000_000, 8), (2_800_000, 1)])
def test_the_best_plan_has_a_copy_where_memory_holds_it(
    blocks: int | None, hpz: int
) -> None:
    """Over a slow network; brute force over all plans finds none faster."""
    workload = tightened(job(micro_batch=1, cp=(1, 2)), blocks)
    check_job(workload)
    assert optimize([workload], top=1).plans[0].layout.hpz == hpz
