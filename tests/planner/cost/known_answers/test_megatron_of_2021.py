"""What Megatron, DeepSpeed and InternEvo of 2021 to 2023 cost beyond their kernels."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from strategies import small_job
from whole_fleet import groups_on

from planner.cost.kernels import gemm_rate, gemm_time
from planner.cost.meshes import Meshes
from planner.cost.network.collectives import all_gather_time, fabric, turn_latency
from planner.cost.parameters.data_groups import DataGroups, gather_time, scatter_time
from planner.cost.parameters.rank_parameters import layer_owned
from planner.cost.pricing import Pricing
from planner.cost.time.columns import Context
from planner.cost.time.ends import head_end
from planner.cost.time.transfers import stage_transfer
from planner.models import preset
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec


def job(precision: str = "bf16", **stack: Any) -> Pricing:
    """Llama 3 8B on two DGX A100 under a changed stack."""
    workload = small_job(SearchSpec(), node="dgx-a100-80gb", nodes=2)
    profile = workload.profile.model_copy(update=stack)
    training = TrainingSpec(seq_len=4096, global_batch=64, precision=precision)
    return replace(
        workload,
        model=preset("llama-3-8b"),
        training=training,
        framework=replace(workload.framework, profile=profile),
    )


def context(pricing: Pricing, **axes: int) -> Context:
    names = ("tp", "sp", "pp", "cp", "cp_kind", "ep", "etp", "dp", "dp_shard")
    names += ("zero", "hpz", "micro_batch", "micro_batches", "order")
    start = dict.fromkeys(names, 1) | {"sp": 0, "zero": 0, "order": 0}
    return Context.of(pricing, Meshes.from_rows([tuple((start | axes).values())]))


def test_a_scattered_activation_is_sent_in_eighths_and_gathered() -> None:
    """33.6 MB between nodes: the time falls by seven eighths of the bytes."""
    axes = {"tp": 8, "pp": 2}
    whole, scattered = (context(job(stage_scatter=on), **axes) for on in (False, True))
    message = np.array([2.0 * 4096 * 4096])
    gather = all_gather_time(whole.links, message, whole.tensor)
    saved = stage_transfer(whole) - (stage_transfer(scattered) - gather)
    nic = whole.pricing.topology.cluster.nic.bandwidth
    rate = nic * whole.links.network.p2p_efficiency
    assert saved == pytest.approx(7 / 8 * message / rate)


def test_sequence_parallel_stages_have_nothing_to_scatter() -> None:
    axes = {"tp": 8, "pp": 2, "sp": 1}
    both = [stage_transfer(context(job(stage_scatter=on), **axes)) for on in (0, 1)]
    assert both[0] == both[1]


def test_an_eager_loss_moves_its_bytes() -> None:
    """33 more bytes for each of 4096 x 128256 logits at 2039e9 * 0.863 B/s."""
    fused, eager = (context(job(loss_traffic=moved)) for moved in (10.0, 43.0))
    more = [
        getattr(head_end(eager), side).total - getattr(head_end(fused), side).total
        for side in ("forward", "backward")
    ]
    traffic = fused.pricing.profile.memory_traffic
    wanted = traffic * 33.0 * 4096 * 128256 / (2039e9 * 0.863)
    assert sum(more) == pytest.approx(wanted, rel=1e-6)
    assert more[0] / more[1] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("precision", "written", "bytes_shown"),
    [
        # Nothing is added; 0.6 of reading and writing 4 B hides behind no product.
        ("bf16", 2.0, 0.0),
        ("bf16", 8.0, 0.6 * 6.0),
        # A kernel of its own streams at 0.863 of the peak; fp16 adds 2 B to 2 B.
        ("bf16", 28.0, 26.0 / 0.863),
        ("fp16", 28.0, 6.0 / 0.863),
        ("fp16", 8.0, 0.6 * 6.0),
    ],
)
def test_weight_gradients_are_added_to_earlier_ones(
    precision: str, written: float, bytes_shown: float
) -> None:
    size, rate = np.array([1024.0]), gemm_rate(job(precision, gradient_traffic=written))
    once, more = (gemm_time(rate, size, size, size, wgrad=on) for on in (False, True))
    assert more - once == pytest.approx(bytes_shown * 1024**2 / 2039e9, abs=1e-12)


def test_one_nic_carries_a_collective() -> None:
    """Eight NICs of a ring over two nodes, or one of them."""
    message = np.array([1e12])
    everyone = groups_on(job().topology, np.array([16]), np.array([1]))
    eight, one = (
        all_gather_time(fabric(job(single_nic=on)), message, everyone)
        for on in (False, True)
    )
    nic = job().topology.cluster.nic.bandwidth
    efficiency = fabric(job()).network.efficiency
    assert one == pytest.approx(15 / 16 * 1e12 / (nic * efficiency), rel=1e-3)
    assert one > 7 * eight


def test_owners_take_turns() -> None:
    """7 tensors a layer of 32: 16 ranks join 224 tensors in 16 turns, 0.5 a layer."""
    times = []
    for whole in (False, True):
        its = context(job(whole_tensors=whole), dp=16, dp_shard=16, zero=1)
        data = DataGroups.of(its.pricing, its.meshes, its.links)
        owned = layer_owned(its.pricing, its.pricing.kinds[0], its.meshes)
        times.append((gather_time(data, owned), scatter_time(data, owned)))
    assert owned.tensors == 7
    each = 0.5 * turn_latency(data.links, data.shard)
    assert times[1][0] - times[0][0] == pytest.approx(each)
    assert times[1][1] - times[0][1] == pytest.approx(each)


def test_nobody_takes_turns_alone() -> None:
    alone = groups_on(job().topology, np.array([1]), np.array([1]))
    assert turn_latency(fabric(job()), alone) == 0.0
