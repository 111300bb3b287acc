"""Low-rank adapters: parameters, kept tensors, states and work, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import framework, small_job

from planner.cost.activations import saved_bytes
from planner.cost.adapters import adapter_parameters
from planner.cost.context import Context
from planner.cost.estimate import flops_per_token
from planner.cost.layers import gemm_times
from planner.cost.meshes import Meshes
from planner.cost.owned import layer_owned
from planner.cost.states import optimizer_time, state_bytes
from planner.cost.workload import Workload
from planner.frameworks.stacks import with_stack
from planner.models import preset
from planner.specs.search import SearchSpec
from planner.specs.training import LoraSpec, TrainingSpec

WIDTHS = {"qkv": 4096 + 6144, "proj": 8192, "fc1": 4096 + 28672, "fc2": 14336 + 4096}
"""Inputs and outputs of Llama-3-8B's linears, added. [1]"""


def tuned(targets: object = "all", *, method: str = "lora", rank: int = 16) -> Workload:
    workload = small_job(SearchSpec(), nodes=1)
    training = TrainingSpec.model_validate(
        {
            "seq_len": 2048,
            "global_batch": 8,
            "method": method,
            "lora": {"rank": rank, "targets": targets},
        }
    )
    return replace(workload, model=preset("llama-3-8b"), training=training)


def eager(workload: Workload) -> Workload:
    stacked = with_stack(framework("accelerate"), "hf-trainer")
    return replace(workload, framework=stacked)


def mesh(*, zero: int = 0, tp: int = 1, dp: int = 1) -> Meshes:
    return Meshes.from_rows([(tp, 0, 1, 1, 1, 1, 1, dp, dp, zero, 1, 1, 0)])


@pytest.mark.parametrize("targets", ["all", "attention", ("fc2",), ("qkv", "fc1")])
def test_an_adapter_has_rank_times_both_widths(targets: object) -> None:
    """Hu et al. 2021: two factors, (i x rho) and (rho x o)."""
    workload = tuned(targets)
    wanted = 16 * sum(WIDTHS[name] for name in workload.training.lora.modules)
    dense, expert = adapter_parameters(workload, workload.kinds[0], mesh())
    assert (dense[0], expert[0]) == (wanted, 0)


@pytest.mark.parametrize(
    ("targets", "peft"), [("attention", 147_720), ("all", 184_680)]
)
def test_tensors_kept_beside_a_frozen_base(targets: str, peft: int) -> None:
    """PyTorch's own allocations of an eager Llama-8B block with peft, r = 16.

    Without q and k rotated apart and the norms' fp32 statistics, 0.2 % each.
    """
    workload = eager(tuned(targets))
    none = workload.recipe.kinds["none"]
    kept = saved_bytes(workload, workload.kinds[0], none, mesh())[0]
    assert kept / 2048 == pytest.approx(peft, rel=2e-3)


def test_a_full_training_keeps_what_it_kept() -> None:
    """The same block, all weights trained: 200,840 B a token, 8 of them statistics."""
    workload = eager(tuned(method="full"))
    none = workload.recipe.kinds["none"]
    kept = saved_bytes(workload, workload.kinds[0], none, mesh())[0]
    assert kept / 2048 == pytest.approx(200_840, rel=1e-3)


@pytest.mark.parametrize(
    ("method", "each"), [("lora", 2.0), ("qlora", 0.5 + (1 + 4 / 256) / 64)]
)
def test_a_frozen_base_has_weights_alone(method: str, each: float) -> None:
    """No gradient, no master, no moments: 2 B a weight, 0.516 B in scaled NF4."""
    workload = tuned(method=method)
    kind, meshes = workload.kinds[0], mesh()
    owned = layer_owned(workload, kind, meshes)
    states = state_bytes(workload, owned, meshes)
    trained = float(owned.dense[0])
    base = float(states.weights[0]) - 2 * trained
    norms = 2 * kind.norm_parameters
    linears = each * (kind.parameters - kind.norm_parameters)
    assert base == pytest.approx(norms + linears, rel=1e-9)
    assert states.gradients[0] == 4 * trained
    assert states.optimizer[0] == 12 * trained


@pytest.mark.parametrize("zero", [0, 3])
def test_only_zero_3_shards_a_frozen_base(zero: int) -> None:
    workload = tuned()
    meshes = mesh(zero=zero, dp=8)
    owned = layer_owned(workload, workload.kinds[0], meshes)
    weights = state_bytes(workload, owned, meshes).weights[0]
    whole = 2 * (owned.frozen[0] + owned.dense[0])
    assert weights == pytest.approx(whole / (8 if zero == 3 else 1))


@given(rank=st.integers(1, 128))
def test_work_falls_towards_two_thirds(rank: int) -> None:
    """Forward and input gradient, no weight gradient; adapters add a little."""
    full, lora = tuned(method="full"), tuned(rank=rank)
    times = [
        sum(
            float(np.sum(gemm_times(Context.of(job, mesh()), layer, gemm)[:2]))
            for gemm in layer.gemms()
        )
        for job in (full, lora)
        for layer in job.kinds
    ]
    assert 0.6 < times[1] / times[0] < 1.2
    counted = flops_per_token(lora, "full") / flops_per_token(full, "full")
    assert 2 / 3 < counted < 0.72


def test_only_adapters_are_updated() -> None:
    full, lora = tuned(method="full"), tuned()
    update = [
        float(optimizer_time(job, layer_owned(job, job.kinds[0], mesh()), mesh())[0])
        for job in (full, lora)
    ]
    parameters = 16 * sum(WIDTHS.values())
    ratio = parameters / full.kinds[0].parameters
    assert update[1] / update[0] == pytest.approx(ratio)


def test_targets_by_name() -> None:
    assert LoraSpec(targets="attention").modules == ("qkv", "proj")
    with pytest.raises(ValueError, match="targets"):
        LoraSpec.model_validate({"targets": ["query"]})
