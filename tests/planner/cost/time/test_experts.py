"""Dispatch, overlap and launches of routed experts, by hand."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from test_stack_physics import context, job, number

from planner.cost.routing import parts_reached
from planner.cost.streaming import memory_time
from planner.cost.time.columns import Context
from planner.cost.time.experts import (
    expert_exchange,
    expert_waits,
    shown_exchange,
)
from planner.cost.time.operators import operator_times
from planner.models import preset
from planner.models.layers.blocks import LayerKind, Moe


def routed(
    nodes: int = 1, ep: int = 8, precision: str = "bf16", **stack: Any
) -> tuple[Context, LayerKind]:
    """Mixtral 8x7B, 8 experts of which 2 are asked, on DGX H100."""
    workload = job("dgx-h100", nodes, precision, expert_imbalance=1.0, **stack)
    workload = replace(workload, model=preset("mixtral-8x7b"))
    its = context(workload, ep=ep, dp=8 * nodes, micro_batches=2)
    return its, next(k for k in workload.model.kinds if isinstance(k.ffn, Moe))


def test_one_copy_goes_to_every_rank_that_holds_an_expert() -> None:
    """Of 8 ranks with one expert each both copies; of 4 with two, fewer.

    A second expert shares its rank once in 7: 3 (1 - 6 / 8 * 5 / 7) = 1.393 of 1.5.
    Four ranks lose (1 + 0.435 / 3) / (1 + 0.435 / 7) of the rate of eight.
    """
    latency = {}
    slower = (1 + 0.435 / 3) / (1 + 0.435 / 7)
    for ep, share, lost in ((8, 1.0, 1.0), (4, 1.392857 / 1.5, slower)):
        whole = expert_exchange(*routed(ep=ep))
        once = expert_exchange(*routed(ep=ep, expert_dispatch="deduplicated"))
        none = lost * 2 * 4096 * 4096 * 2 / 320e9 * 2 * (ep - 1) / ep
        latency[ep] = whole - none
        assert once == pytest.approx(none * share + latency[ep], rel=1e-5)
        assert 0 < latency[ep] < 1e-4


def test_a_token_crosses_once_to_each_domain() -> None:
    """Two nodes of 8 ranks: 1 - 4 / 8 * 3 / 7 = 0.786 crossings, not 2 * 1 / 2.

    They go in pairs at 0.85 of the line, all-to-alls at 0.74.
    """
    whole = expert_exchange(*routed(nodes=2, ep=16))
    once = expert_exchange(*routed(nodes=2, ep=16, expert_dispatch="deduplicated"))
    assert once / whole == pytest.approx(0.786 * 0.74 / 0.85, rel=0.05)


@pytest.mark.parametrize(
    ("ep", "dispatch", "times"),
    [(4, "all-to-all", 1), (8, "all-to-all", 0), (4, "deduplicated", 0)],
)
def test_copies_are_sorted_where_a_rank_has_several_experts(
    ep: int, dispatch: str, times: int
) -> None:
    """8 h k B each way for 4096 tokens of 4096 columns, two copies of each."""
    moved, same = routed(ep=ep, expert_dispatch=dispatch), routed(ep=8)
    sorting = [
        float((ours - theirs)[0])
        for ours, theirs in zip(
            operator_times(*moved), operator_times(*same), strict=True
        )
    ]
    whole = memory_time(moved[0].pricing, np.array([8.0 * 4096 * 2 * 4096]), 0)[0]
    assert sorting == pytest.approx([times * whole] * 2)


def drawn(ffn: Moe, parts: int) -> float:
    """Other parts that hold a token's experts, by listing every way to route it."""
    each, found = ffn.experts // ffn.groups, []
    for groups in combinations(range(ffn.groups), ffn.top_groups):
        pool = [g * each + i for g in groups for i in range(each)]
        for chosen in combinations(pool, ffn.top_k):
            hit = {expert * parts // ffn.experts for expert in chosen}
            found.append(len(hit - {0}))
    return sum(found) / len(found)


@pytest.mark.parametrize("parts", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(
    ("groups", "chosen", "k"), [(1, 1, 3), (4, 2, 3), (8, 2, 4), (4, 1, 4), (4, 4, 2)]
)
def test_limited_routing_reaches_as_many_parts_as_all_its_draws(
    parts: int, groups: int, chosen: int, k: int
) -> None:
    ffn = Moe(8, 16, k, 8, 0, groups=groups, top_groups=chosen)
    reached = parts_reached(ffn, np.array([parts]))
    assert reached == pytest.approx(drawn(ffn, parts))


def test_deepseek_v3_crosses_to_four_nodes_at_most() -> None:
    """Of 7 other nodes 3.18, where 8 experts of 256 at will would hit 4.63.

    Half of the groups are chosen, and each holds one of the 8 experts in 90.7 %.
    """
    ffn = preset("deepseek-v3").kinds[-1].ffn
    assert isinstance(ffn, Moe)
    assert (ffn.groups, ffn.top_groups) == (8, 4)
    nodes = np.array([8])
    assert parts_reached(ffn, nodes) == pytest.approx(3.1754, abs=1e-4)
    free = replace(ffn, groups=1, top_groups=1)
    assert parts_reached(free, nodes) == pytest.approx(4.6328, abs=1e-4)


@pytest.mark.parametrize("dispatch", ["all-to-all", "deduplicated"])
def test_only_one_copy_per_node_profits_from_limited_routing(dispatch: str) -> None:
    """Over four nodes of 8 ranks; copy by copy the same bytes cross."""
    workload = job("dgx-h100", 4, expert_imbalance=1.0, expert_dispatch=dispatch)
    workload = replace(workload, model=preset("deepseek-v3"))
    its, layer = context(workload, ep=32, dp=32), workload.model.kinds[-1]
    assert isinstance(layer.ffn, Moe)
    free = replace(layer, ffn=replace(layer.ffn, groups=1, top_groups=1))
    ratio = (expert_exchange(its, layer) / expert_exchange(its, free)).item()
    assert (ratio < 0.95) is (dispatch == "deduplicated")
    assert ratio <= 1.0


def test_an_exchange_hides_behind_another_micro_batch() -> None:
    """Beside 10 ms of passes: of 2 * 8 ms, 6 show and 10 cost 15 %; of 2 * 3, 15 %."""
    ask = {"ep_overlap": True, "overlap_contention": 0.15}
    its, _ = routed(nodes=2, ep=16, **ask)
    passes = number(10e-3)
    assert shown_exchange(its, number(8e-3), passes) == pytest.approx((6 + 1.5) / 2e3)
    assert shown_exchange(its, number(3e-3), passes) == pytest.approx(0.9 / 2e3)
    inside, _ = routed(**ask)
    assert shown_exchange(inside, number(8e-3), passes) == pytest.approx(7.5 / 2e3)


@pytest.mark.parametrize("nodes", [1, 2])
def test_nothing_hides_unasked(nodes: int) -> None:
    its, _ = routed(nodes=nodes, ep=8 * nodes, ep_overlap=False)
    assert shown_exchange(its, number(8e-3), number(10e-3)) == 8e-3


def test_the_host_launches_every_expert() -> None:
    """Four experts a rank: 1 ms and 2 or 4 products, and 6 casts in fp8, of 10 us."""
    ask: dict[str, Any] = {
        "expert_wait": 1e-3,
        "expert_launch": 10e-6,
        "ep": 2,
        "latency": 1.0,
    }
    none = number(0.0), number(0.0)

    def waits(**stack: Any) -> Any:
        return np.ravel(expert_waits(*routed(**ask, **stack), none, none))

    assert waits() == pytest.approx([1.08e-3, 1.16e-3])
    assert waits(precision="fp8") == pytest.approx([1.32e-3, 1.40e-3])
    assert waits(cuda_graphs="dense") == pytest.approx([1.08e-3, 1.16e-3])
    assert waits(cuda_graphs="full").sum() == 0


def test_launches_hide_behind_the_kernels_launched() -> None:
    """Products of 50 us hide as much of 80 and 160 us of launches; casts hide casts.

    In fp8 casts of 300 us hide all 240 us of their launches and none of products.
    """
    ask: dict[str, Any] = {
        "expert_wait": 1e-3,
        "expert_launch": 10e-6,
        "ep": 2,
        "latency": 1.0,
    }
    products, casts = (number(50e-6),) * 2, (number(300e-6),) * 2
    for precision in ("bf16", "fp8"):
        shown = expert_waits(*routed(precision=precision, **ask), products, casts)
        assert np.ravel(shown) == pytest.approx([1.03e-3, 1.11e-3])
    long = (number(1.0),) * 2
    assert np.ravel(expert_waits(*routed(**ask), long, long)) == pytest.approx(1e-3)
