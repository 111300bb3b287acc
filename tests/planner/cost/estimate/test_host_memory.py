"""Host memory of a node: what leaves its GPUs lies there, and has to fit."""

import re
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError
from strategies import framework, small_job, topology

from planner.cost.network.offload_copies import fetch_time
from planner.cost.pricing import Pricing
from planner.errors import BadInputError
from planner.frameworks.stacks import with_stack
from planner.models import preset
from planner.planning.prediction.predict import predict
from planner.report.vocabulary import host_words
from planner.specs.answer.estimate import Estimate, HostMemory
from planner.specs.layouts.layout import Offload, PartialLayout
from planner.specs.search import SearchSpec
from planner.specs.training import TrainingSpec

GIB = 2**30
NODE = "dgx-a100-80gb"


def job(model: str, node: str = NODE, nodes: int = 1, **fields: object) -> Pricing:
    training = TrainingSpec.model_validate(
        {"seq_len": 2048, "global_batch": 16 * nodes, **fields}
    )
    workload = small_job(SearchSpec(), node=node, nodes=nodes)
    room = with_stack(framework("torchtitan"), "deepspeed-zero3")
    return replace(workload, model=preset(model), training=training, framework=room)


def priced(pricing: Pricing, zero: int = 3, **offload: object) -> Estimate:
    layout = PartialLayout.model_validate(
        {
            "zero_stage": zero,
            "recompute": "full",
            "stages": "even",
            "offload": offload,
        }
    )
    return predict(pricing, layout).estimate


def host(estimate: Estimate) -> HostMemory:
    assert estimate.memory.host is not None
    return estimate.memory.host


@pytest.mark.parametrize(
    ("offload", "each", "here"),
    [
        ({"optimizer": 1.0}, 12 + 4, 2),
        ({"optimizer": 1.0, "parameters": 1.0}, 12 + 4 + 2, 0),
        ({"optimizer": 0.5}, 6 + 2, 2 + 6 + 2),
        ({"parameters": 1.0}, 2, 12 + 4),
    ],
)
def test_bytes_a_parameter_that_zero_offload_moves(
    offload: dict[str, object], each: float, here: float
) -> None:
    """ZeRO-Offload: the host has master, moments and gradients, the GPU weights."""
    workload = job("llama-3-8b")
    estimate = priced(workload, **offload)
    parameters = workload.model.parameters
    assert host(estimate).needed_gib * GIB == pytest.approx(each * parameters, rel=1e-6)
    (stage,) = estimate.memory.stages
    held = stage.weights + stage.gradients + stage.optimizer
    whole = 4 * workload.model.vocab * workload.model.hidden * 2 / GIB
    assert held * GIB * 8 == pytest.approx(here * parameters, abs=whole * GIB * 8)


def test_fsdp_keeps_parameters_gradients_and_states_on_the_host() -> None:
    """CPUOffloadPolicy: fp32 shards, their gradients and two moments, 16 B."""
    plain = job("llama-3-8b")
    workload = replace(plain, framework=framework("torchtitan"))
    estimate = priced(workload, optimizer=1.0, parameters=1.0, gradients=1.0)
    assert host(estimate).needed_gib * GIB == pytest.approx(
        16 * workload.model.parameters, rel=1e-6
    )
    (stage,) = estimate.memory.stages
    assert stage.gradients == stage.optimizer == 0


def test_drives_are_a_framework_s_own() -> None:
    workload = replace(job("llama-3-8b"), framework=framework("torchtitan"))
    with pytest.raises(BadInputError, match="keeps nothing on NVMe"):
        priced(workload, optimizer=1.0, device="nvme")


def test_drives_take_states_and_parameters_alone() -> None:
    with pytest.raises(ValidationError, match="optimizer states and parameters"):
        Offload(device="nvme", activations=1.0)


def test_paged_moments_are_not_offloaded_again() -> None:
    workload = job("llama-3-8b", optimizer="paged-adamw")
    with pytest.raises(BadInputError, match="by itself"):
        priced(workload, optimizer=1.0)


def test_weights_of_the_host_come_by_their_own_width() -> None:
    """FSDP2 copies its fp32 shards, DeepSpeed its 16-bit ones: twice the time."""
    times = []
    for room in (framework("torchtitan"), job("llama-3-8b").framework):
        workload = replace(job("llama-3-8b"), framework=room)
        workload = replace(workload, offload=Offload(parameters=1.0))
        times.append(float(fetch_time(workload, np.ones(1) * 1e9)[0]))
    assert times[0] == pytest.approx(2 * times[1])


def test_a_report_says_what_the_host_keeps() -> None:
    """Needed and there, on the line of the verdict; nothing where nothing is."""
    assert host_words(priced(job("llama-3-8b")).memory) == ""
    told = host_words(priced(job("llama-3-8b"), optimizer=1.0, device="nvme").memory)
    assert re.search(r"host [\d.]+ GiB of 2,048.0 GiB a node, NVMe 89.7 GiB of", told)


def test_what_stays_on_the_gpu_needs_no_host() -> None:
    assert priced(job("llama-3-8b")).memory.host is None


@pytest.mark.parametrize("nodes", [1, 2])
def test_nodes_share_what_shards_share(nodes: int) -> None:
    workload = job("llama-3-8b", nodes=nodes)
    needed = host(priced(workload, optimizer=1.0)).needed_gib
    assert needed * GIB * nodes == pytest.approx(16 * workload.model.parameters)


def test_offloaded_activations_lie_on_the_host() -> None:
    workload = job("llama-3-8b")
    kept = priced(workload).memory.stages[0].activations
    needed = host(priced(workload, activations=0.5)).needed_gib
    assert needed == pytest.approx(8 * 0.5 * kept, rel=1e-6)


def test_paged_moments_lie_on_the_host() -> None:
    """Adam's 8 B a parameter over the node; in 8 bits 2 and their scales."""
    for optimizer, each in (("paged-adamw", 8), ("paged-adamw-8bit", 2 + 8 / 256)):
        workload = job("llama-3-8b", optimizer=optimizer)
        needed = host(priced(workload)).needed_gib
        assert needed * GIB == pytest.approx(each * workload.model.parameters)


def test_nvme_takes_states_and_leaves_gradients_and_buffers() -> None:
    """12 B a parameter on drives, 4 B of gradients and four buffers in memory."""
    workload = job("llama-3-8b")
    there = priced(workload, optimizer=1.0, device="nvme")
    memory = host(there)
    parameters = workload.model.parameters
    assert memory.nvme_needed_gib * GIB == pytest.approx(12 * parameters)
    assert memory.nvme_available_gib is not None
    layers = sum(kind.parameters * count for kind, count in workload.model.runs)
    buffers = 4 * 4 * layers
    assert memory.needed_gib * GIB == pytest.approx(4 * parameters + buffers)
    in_memory = priced(workload, optimizer=1.0)
    assert there.step_time_s.value > in_memory.step_time_s.value


def test_a_host_that_is_too_small_is_refused_with_both_numbers() -> None:
    """70 billion parameters at 16 B are 1,052 GiB, a server of 4090s has 512."""
    workload = job("llama-3-70b", node="server-rtx-4090-8")
    with pytest.raises(
        BadInputError, match=r"1,05\d GiB a node needed, 512 GiB"
    ) as told:
        priced(workload, optimizer=1.0)
    assert told.value.field == "layout.offload"


def test_a_host_that_is_too_small_for_paged_moments_is_refused() -> None:
    workload = job("llama-3-70b", node="server-rtx-4090-8", optimizer="paged-adamw")
    with pytest.raises(BadInputError, match="host memory of server") as told:
        priced(workload)
    assert told.value.field == "training.optimizer"


def test_a_host_that_nobody_knows_is_told_of_not_refused() -> None:
    workload = job("llama-3-8b", node="hgx-h800")
    assert topology("hgx-h800", 1).cluster.node.host_memory is None
    estimate = priced(workload, optimizer=1.0)
    assert host(estimate).available_gib is None
    assert any("is not known; a node needs" in said for said in estimate.assumptions)


@pytest.mark.parametrize(
    ("memory", "enough"),
    [
        (HostMemory(needed_gib=2, available_gib=None), True),
        (HostMemory(needed_gib=2, available_gib=2), True),
        (HostMemory(needed_gib=3, available_gib=2), False),
        (
            HostMemory(
                needed_gib=1, available_gib=2, nvme_needed_gib=9, nvme_available_gib=8
            ),
            False,
        ),
    ],
)
def test_what_is_known_decides(memory: HostMemory, *, enough: bool) -> None:
    assert memory.is_enough == enough
