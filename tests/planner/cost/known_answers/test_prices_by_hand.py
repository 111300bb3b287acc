"""Ten prices worked out by hand from the formulas and the measured constants."""

from dataclasses import replace

import numpy as np
import pytest
from strategies import small_job
from whole_fleet import groups_on

from planner.cost.attention import attention_time
from planner.cost.kernels import gemm_rate, gemm_time
from planner.cost.memory.activations import saved_bytes
from planner.cost.meshes import Groups, Meshes
from planner.cost.network.collectives import (
    all_gather_time,
    all_reduce_time,
    all_to_all_time,
    fabric,
    send_time,
)
from planner.cost.parameters.rank_parameters import layer_owned
from planner.cost.parameters.states import state_bytes
from planner.cost.pricing import Pricing
from planner.cost.streaming import memory_time
from planner.cost.table.table import straggler_factor
from planner.models import preset
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec

MICRO = 1e-6
EXACT = 1e-5
"""The literals below have six digits. [1]"""


def job(nodes: int, *, node: str = "dgx-h100", seq_len: int = 1024) -> Pricing:
    workload = small_job(SearchSpec(), node=node, nodes=nodes)
    training = TrainingSpec(seq_len=seq_len, global_batch=64)
    return replace(workload, training=training)


def llama_8b(nodes: int) -> Pricing:
    return replace(job(nodes, seq_len=8192), model=preset("llama-3-8b"))


def mesh(**axes: int) -> Meshes:
    names = ("tp", "sp", "pp", "cp", "cp_kind", "ep", "etp", "dp", "dp_shard")
    names += ("zero", "hpz", "micro_batch", "micro_batches", "order")
    start = dict.fromkeys(names, 1) | {"sp": 0, "zero": 0, "order": 0}
    return Meshes.from_rows([tuple((start | axes).values())])


def ranks(pricing: Pricing, size: int) -> Groups:
    return groups_on(pricing.topology, np.array([size]), np.array([1]))


def number(value: float) -> np.ndarray:
    return np.array([value])


def test_a_square_gemm_on_h100() -> None:
    """M = N = K = 8192.

    Tail 0.095 * 132 * 128^2 = 205455.4; level 0.79 * 0.9 = 0.711. Work
    2 (8192^2 + 205455.4) (8192 + 79) / (989e12 * 0.711) = 1583.54 us;
    traffic 3 * 2 * 8192^2 = 402653184 B, times 0.003, over 3.35e12 = 0.36 us;
    overhead 2.9 us: together 1586.80 us.
    """
    side = number(8192.0)
    time = gemm_time(gemm_rate(job(1)), side, side, side)
    assert time == pytest.approx(1586.80 * MICRO, rel=EXACT)


def test_a_square_gemm_on_a100() -> None:
    """M = N = K = 4096: 16 * 32 = 512 blocks of 256 x 128, five waves on 108 SMs.

    5 * 108 * 256 * 128 - 4096^2 = 917504 idle outputs; the ten waves of 128 x 128 at
    0.75 idle more. Over 1 + 4096 / 2766 these are 369836.2. Work
    2 (4096^2 + 369836.2) (4096 + 120) / (312e12 * 0.836) = 554.318 us; traffic
    0.029 * 6 * 4096^2 / 2039e9 = 1.432 us; overhead 0.8 us: together 556.550 us.
    """
    side = number(4096.0)
    time = gemm_time(gemm_rate(job(1, node="dgx-a100-80gb")), side, side, side)
    assert time == pytest.approx(556.550 * MICRO, rel=EXACT)


def test_attention_of_32_heads_on_a100() -> None:
    """s = 2048, d = 128, causal: 4 * 4096 * 1024 * 2048 = 3.435974e10 FLOP.

    The curve has 183.6 and 145.9 TFLOP/s there, at 19 waves. Ours are
    32 * 16 / 108 = 4.740741. Forward 187.145 us, times
    (1 + 1.7 / 4.740741) / (1 + 1.7 / 19) = 1.247019: 233.373 us.
    Backward 2.5 * 3.435974e10 / 145.9e12 = 588.755 us, times
    (1 + 0.92 / 4.740741) / (1 + 0.92 / 19) = 1.138915: 670.542 us.
    """
    forward, backward = attention_time(
        job(1, node="dgx-a100-80gb", seq_len=2048),
        span=2048,
        flops=number(4.0 * 4096 * 1024 * 2048),
        blocks=number(512.0),
        head_dim=128,
    )
    assert forward == pytest.approx(233.373 * MICRO, rel=EXACT)
    assert backward == pytest.approx(670.542 * MICRO, rel=EXACT)


def test_three_memory_bound_operators_on_a100() -> None:
    """1e9 B / (0.863 * 2039e9) = 568.295 us, and 3 * 2.5 us: 575.795 us."""
    time = memory_time(job(1, node="dgx-a100-80gb"), number(1e9), 3)
    assert time == pytest.approx(575.795 * MICRO, rel=EXACT)


def test_an_all_gather_inside_a_node() -> None:
    """512 MiB on 8 H100, where the ring's curve is at 335.8 of 370 GB/s.

    7/8 * 536870912 / 335.8e9 = 1398.93 us.
    """
    workload = job(1)
    time = all_gather_time(fabric(workload), number(2.0**29), ranks(workload, 8))
    assert time == pytest.approx(1398.93 * MICRO, rel=EXACT)


def test_an_all_reduce_across_two_nodes() -> None:
    """1e9 B on 16 ranks: the switch's 480 GB/s, below 2 * 8 * 50 * 0.92 = 736.

    Tree: 8.4 + 2 (7 * 4 + 14) = 92.4 us, its chunk of 8 MiB up and down 34.953 us,
    volume 2e9 / 480e9 = 4166.667 us: 4294.019 us. A ring has a volume of
    2 * 15/16 * 1e9 / 368e9 = 5095.109 us alone.
    """
    workload = job(2)
    time = all_reduce_time(fabric(workload), number(1e9), ranks(workload, 16))
    assert time == pytest.approx(4294.019 * MICRO, rel=EXACT)


def test_an_all_to_all_over_two_nodes() -> None:
    """1e8 B from each of 16 ranks, half of it to the other node.

    0.5e8 / (50e9 * 0.74) = 1351.351 us beside 0.4375e8 / 320e9 = 136.719 us;
    latency 8.4 + log2(16) 14 = 64.4 us: 1415.751 us.
    """
    workload = job(2)
    time = all_to_all_time(fabric(workload), number(1e8), ranks(workload, 16))
    assert time == pytest.approx(1415.751 * MICRO, rel=EXACT)


def test_a_stage_sends_to_the_next_node_and_within_one() -> None:
    """1e7 B: 8.4 + 14 + 1e7 / (50e9 * 0.85) = 257.694 us across nodes.

    Inside, NVLink gives 450 * 370 / 450 GB/s: 8.4 + 3.4 + 27.027 = 38.827 us.
    """
    links = fabric(job(2))
    across = send_time(links, number(1e7), number(50e9), np.array([True]))
    inside = send_time(links, number(1e7), number(450e9), np.array([False]))
    assert across == pytest.approx(257.694 * MICRO, rel=EXACT)
    assert inside == pytest.approx(38.827 * MICRO, rel=EXACT)


def test_states_of_a_llama_layer_under_megatron() -> None:
    """t = 8, S = 16: (218112000 - 8192) / 8 + 8192 = 27271168 parameters.

    2 + 4 + 12 / 16 = 6.75 B each: 184080384 B.
    """
    workload, meshes = llama_8b(16), mesh(tp=8, dp=16, dp_shard=16, zero=1)
    states = state_bytes(
        workload, layer_owned(workload, workload.kinds[0], meshes), meshes
    )
    assert states.total == pytest.approx(184_080_384, rel=1e-12)


def test_saved_bytes_of_a_llama_layer() -> None:
    """h = 4096, a = 32, g = 8, d = 128, f = 14336, bf16, 8192 tokens.

    8 * 4096 + 2 * 48 * 128 + 2 * 4096 + 4 * 32 + 6 * 14336 = 139392 B a token,
    1141899264 B in all.
    """
    workload = llama_8b(1)
    kind = workload.recipe.kind("none")
    kept = saved_bytes(workload, workload.kinds[0], kind, mesh())
    assert kept == pytest.approx(1_141_899_264, rel=1e-12)


def test_sixteen_replicas_on_four_nodes_wait_for_the_slowest_node() -> None:
    """1 + 0.008 sqrt(2 ln 4) = 1 + 0.008 * 1.665109 = 1.013321."""
    factor = straggler_factor(job(4), mesh(tp=2, dp=16, dp_shard=16))
    assert factor == pytest.approx(1.013321, rel=1e-6)
