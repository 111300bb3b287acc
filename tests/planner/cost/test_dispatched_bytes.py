"""Tokens that stay between a checkpointed layer's passes, by hand."""

from dataclasses import replace

import pytest
from test_stack_physics import context, job

from planner.cost.memory.dispatched_bytes import dispatched_bytes
from planner.models import preset

TOKENS, HIDDEN = 4096, 4096


def kept(ep: int, kind: str, *, stays: bool = True) -> float:
    """Bytes of a layer of Mixtral 8x7B on eight ranks, 4,096 tokens each."""
    workload = replace(job("dgx-h100", 1), model=preset("mixtral-8x7b"))
    recipe = replace(workload.framework.recipe, keeps_dispatched=stays)
    workload = replace(workload, framework=replace(workload.framework, recipe=recipe))
    meshes = context(workload, ep=ep, dp=8).meshes
    layer = workload.kinds[0]
    return float(dispatched_bytes(workload, layer, recipe.kind(kind), meshes)[0])


@pytest.mark.parametrize(("ep", "reached"), [(8, 2.0), (4, 2 - 1 / 7)])
def test_a_copy_for_every_rank_reached_and_the_sum_stay(
    ep: int, reached: float
) -> None:
    """Two experts of eight: two ranks of eight; of four, one in one draw of seven."""
    assert kept(ep, "full") == pytest.approx(2 * HIDDEN * TOKENS * (reached + 1))


@pytest.mark.parametrize(
    ("ep", "kind", "stays"),
    [(8, "full", False), (8, "none", True), (1, "full", True)],
)
def test_nothing_stays_without_a_second_exchange(
    ep: int, kind: str, *, stays: bool
) -> None:
    assert kept(ep, kind, stays=stays) == 0.0
