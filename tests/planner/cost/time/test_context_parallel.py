"""What context ranks exchange, by hand: volumes, where they travel, buffers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_stack_physics import context, job

from planner.cost.memory.context_buffers import context_buffers, dealt_width, key_width
from planner.cost.network.collectives import all_gather_time, all_to_all_time
from planner.cost.streaming import memory_time, operator_latency
from planner.cost.time.columns import Context
from planner.cost.time.context_parallel import context_exchange, ring_chunks
from planner.cost.time.exchange import core_times
from planner.cost.time.layers import layer_time
from planner.models import preset
from planner.models.layers.blocks import LayerKind
from planner.specs.layouts.context import CP_KINDS, PLAIN

LLAMA = preset("llama-3-8b").kinds[0]
"""32 query heads and 8 heads of keys of 128 columns."""
DEEPSEEK = preset("deepseek-v3").kinds[0]
"""128 heads; queries and keys of 192 columns, values of 128."""


def ranks(kind: str, cp: int = 4, nodes: int = 1, **more: Any) -> Context:
    """4096 tokens over some context ranks of DGX H100, one sequence at a time."""
    tp, plain = more.pop("tp", 1), {"cp_sum_bytes": 0.0, "hidden_cp": 0.0}
    more = {**plain, "overlap_contention": 0.25, **more}
    workload = job("dgx-h100", nodes, **more)
    dp = workload.gpus // (tp * cp)
    axes = {"tp": tp, "cp": cp, "dp": dp, "cp_kind": CP_KINDS.index(kind)}
    return context(workload, **axes)


def times(its: Context, layer: LayerKind = LLAMA) -> tuple[float, float]:
    ahead, behind = context_exchange(its, layer)
    return float(ahead[0]), float(behind[0])


def passes(its: Context) -> list[float]:
    """Forward and backward of a layer, nothing recomputed."""
    kind = its.pricing.recipe.kind("none")
    return [float(each.total[0]) for each in layer_time(its, LLAMA, kind)]


def gathered(its: Context, size: float) -> float:
    """Time to gather so many bytes over the ranks that see each other's keys."""
    return float(all_gather_time(its.links, np.array([size]), its.ring)[0])


def dealt(its: Context, size: float) -> float:
    """Time of four all-to-alls of so many bytes in all."""
    return 4 * float(all_to_all_time(its.links, np.array([size / 4]), its.ulysses)[0])


def beside(moved: float, core: float) -> float:
    """Exposed time of one transfer: the excess, and a quarter of the rest."""
    return max(moved - core, 0.0) + 0.25 * min(moved, core)


def hidden(its: Context, moved: tuple[float, float]) -> tuple[float, float]:
    """What shows of transfers beside attention: a quarter, and r - 1 launches."""
    core = [float(time[0]) for time in core_times(its, LLAMA)]
    assert all(m < c for m, c in zip(moved, core, strict=True)), "all hides"
    launches = float(its.ring.size[0] - 1) * operator_latency(its.pricing)
    ahead, behind = (0.25 * each + launches for each in moved)
    return ahead, behind


def test_a_ring_moves_keys_and_values_and_thrice_that_back() -> None:
    """2 * 8 * 128 columns of 2 B for each of 4096 tokens: 16.8 MB."""
    its = ranks("ring")
    once = gathered(its, 16_777_216)
    assert times(its) == pytest.approx(hidden(its, (once, 3 * once)))


def test_a_ring_over_a_slow_link_takes_less_of_the_attention() -> None:
    """One NIC of 50 GB/s moves B in T, and takes B / T of 150 GB/s of a quarter."""
    its = ranks("ring", cp=4, tp=8, nodes=4)
    size = 16_777_216 / 8
    once = gathered(its, size)
    assert not bool(its.ring.intra[0])
    core = float(core_times(its, LLAMA)[0][0])
    launches = 3 * operator_latency(its.pricing)
    lost = 0.25 * size / once / 150e9
    assert lost < 0.25 / 3
    shown = max(once - core, 0.0) + lost * min(once, core) + launches
    assert times(its)[0] == pytest.approx(shown)


def test_an_all_gather_shows_whole() -> None:
    its = ranks("all-gather")
    once = gathered(its, 16_777_216)
    assert times(its) == pytest.approx((once, 2 * once))


def test_a_gathered_ring_gathers_beside_a_quarter_of_the_attention() -> None:
    """Four chunks; 16.8 MB beside the own one, and twice that beside the others."""
    its = ranks("gathered-ring")
    once = gathered(its, 16_777_216)
    ahead, behind = (float(time[0]) for time in core_times(its, LLAMA))
    launches = 3 * operator_latency(its.pricing)
    back = beside(once, behind / 4) + beside(2 * once, behind * 3 / 4)
    assert times(its) == pytest.approx(
        (beside(once, ahead / 4) + launches, back + launches)
    )


def test_a_ring_of_copied_heads_moves_as_many_as_there_are_queries() -> None:
    """2 * 32 * 128 columns of 2 B for each of 4096 tokens, and their buffers."""
    its = ranks("all-gather")
    recipe = replace(its.pricing.framework.recipe, cp_repeats_kv=True)
    copied = replace(its.pricing.framework, recipe=recipe)
    its = replace(its, pricing=replace(its.pricing, framework=copied))
    once = gathered(its, 4 * 16_777_216)
    assert times(its) == pytest.approx((once, 2 * once))
    assert context_buffers(LLAMA, its.meshes, repeated=True) == 4 * 4 * 4096


def test_sums_of_a_ring_pass_through_memory() -> None:
    """1024 tokens; 3 outputs of 4096 columns, 4 gradients of 4096 + 2048 columns."""
    plain, summed = times(ranks("ring")), times(ranks("ring", cp_sum_bytes=10))
    pricing = ranks("ring").pricing
    moved = 10 * 1024 * np.array([3 * 4096, 4 * (4096 + 2048)])
    expected = memory_time(pricing, moved, 0)
    assert np.subtract(summed, plain) == pytest.approx(expected)
    assert times(ranks("all-gather", cp_sum_bytes=10)) == times(ranks("all-gather"))


def test_a_ring_attends_to_one_chunk_after_the_other() -> None:
    chunks = {
        kind: float(ring_chunks(ranks(kind), LLAMA)[0])
        for kind in ("ring", "gathered-ring", "ulysses2+ring", "all-gather", "ulysses")
    }
    assert list(chunks.values()) == [4.0, 4.0, 2.0, 0.0, 0.0]
    assert float(ring_chunks(ranks("ring", cp=1), LLAMA)[0]) == 0.0


def test_the_host_launches_every_chunk_of_a_ring_each_way() -> None:
    """A pass that the host decides is longer by 4 chunks, or by none of one rank."""
    slow = {"host_forward": 1.0, "host_backward": 2.0, "latency": 1.0}
    for kind, longer in (("ring", 4 * 0.25), ("all-gather", 0.0)):
        launched, alone = (ranks(kind, host_ring=each, **slow) for each in (0.25, 0.0))
        for one, other in zip(passes(launched), passes(alone), strict=True):
            assert one - other == pytest.approx(longer)


def test_ulysses_deals_queries_keys_values_and_output() -> None:
    """2 * 32 * 128 + 2 * 8 * 128 columns of 2 B for its 1024 tokens: 21.0 MB."""
    its = ranks("ulysses")
    both = dealt(its, 20_971_520)
    assert times(its) == pytest.approx((both, both))


def test_ulysses_inside_a_ring_does_both_on_fewer_ranks() -> None:
    """Pairs deal 21.0 MB; two pairs pass 2048 columns of 2 * 1024 tokens on."""
    its = ranks("ulysses2+ring")
    assert (int(its.ulysses.size[0]), int(its.ring.size[0])) == (2, 2)
    deal, once = dealt(its, 20_971_520), gathered(its, 8_388_608)
    ahead, behind = hidden(its, (once, 3 * once))
    assert times(its) == pytest.approx((deal + ahead, deal + behind))


def test_the_inner_group_stays_in_the_node() -> None:
    """Of 16 ranks on two nodes 8 deal over NVLink, and pairs cross the network."""
    its = ranks("ulysses8+ring", cp=16, nodes=2)
    assert bool(its.ulysses.intra[0])
    assert int(its.ulysses.ranks_per_domain[0]) == 8
    assert not bool(its.ring.intra[0])
    assert int(its.ring.ranks_per_domain[0]) == 1
    outside = ranks("ulysses", cp=16, nodes=2)
    assert int(outside.ulysses.domains[0]) == 2


def test_heads_of_keys_are_copied_for_more_ranks_than_there_are() -> None:
    """4 tensor ranks times 4 of Ulysses hold 16 heads of the 8."""
    few, many = ranks("ulysses2+ring", 4, tp=2), ranks("ulysses", 4, nodes=2, tp=4)
    assert key_width(LLAMA, few.meshes) == 2 * 8 * 128
    assert key_width(LLAMA, many.meshes) == 2 * 16 * 128
    assert dealt_width(LLAMA, many.meshes) == 2 * 4096 + 2 * 16 * 128


def test_latent_attention_sends_its_decompressed_heads() -> None:
    """128 (192 + 128) columns of keys and values; queries of 192, output of 128."""
    its = ranks("ulysses", 4)
    assert key_width(DEEPSEEK, its.meshes) == 128 * 320
    assert dealt_width(DEEPSEEK, its.meshes) == 128 * 640


@pytest.mark.parametrize(
    ("kind", "cp", "expected"),
    [
        ("ring", 4, 6 * 4096),
        ("all-gather", 4, 4 * 4096),
        ("gathered-ring", 4, 8 * 4096),
        ("ulysses", 4, 2 * 20_480),
        ("ulysses2+ring", 4, 6 * 4096 + 2 * 20_480),
        ("all-gather", 1, 0),
    ],
)
def test_buffers_of_a_token(kind: str, cp: int, expected: float) -> None:
    """4096 B of keys and values a token, 20 480 B of all that is dealt out."""
    assert context_buffers(LLAMA, ranks(kind, cp).meshes) == expected


@pytest.mark.parametrize("kind", PLAIN)
def test_one_context_rank_exchanges_nothing(kind: str) -> None:
    assert times(ranks(kind, 1)) == (0.0, 0.0)


@pytest.mark.parametrize(("kind", "inner"), [("ulysses4+ring", 4), ("ulysses", 8)])
def test_the_ends_of_the_family_are_the_plain_kinds(kind: str, inner: int) -> None:
    """The smaller the ring, the more is dealt out; u ranks deal, c / u pass on."""
    its = ranks(kind, 8)
    assert int(its.meshes.ulysses[0]) == inner
    assert int(its.ulysses.size[0] * its.ring.size[0]) == 8
