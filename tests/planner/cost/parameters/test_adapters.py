"""Low-rank adapters: parameters, kept tensors, states and work, worked out by hand."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import framework, small_job

from planner.cost.estimate.estimate import flops_per_token
from planner.cost.memory.activations import saved_bytes
from planner.cost.meshes import Meshes
from planner.cost.parameters.adapters import adapter_parameters, copied_bytes
from planner.cost.parameters.quantised import dequantised_bytes
from planner.cost.parameters.rank_parameters import (
    Owned,
    embedding_owned,
    head_owned,
    layer_owned,
    padded_vocab,
)
from planner.cost.parameters.states import held_bytes, optimizer_time, state_bytes
from planner.cost.pricing import Pricing
from planner.cost.time.columns import Context
from planner.cost.time.layers import gemm_times
from planner.frameworks.stacks import with_stack
from planner.models import preset
from planner.specs.layouts.layout import Offload
from planner.specs.search import SearchSpec
from planner.specs.training import LoraSpec, TrainingSpec

WIDTHS = {"qkv": 4096 + 6144, "proj": 8192, "fc1": 4096 + 28672, "fc2": 14336 + 4096}
"""Inputs and outputs of Llama-3-8B's linears, added. [1]"""


def tuned(targets: object = "all", *, method: str = "lora", rank: int = 16) -> Pricing:
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


def eager(pricing: Pricing) -> Pricing:
    stacked = with_stack(framework("accelerate"), "hf-trainer")
    return replace(pricing, framework=stacked)


def mesh(*, zero: int = 0, tp: int = 1, dp: int = 1) -> Meshes:
    return Meshes.from_rows([(tp, 0, 1, 1, 1, 1, 1, dp, dp, zero, 1, 1, 1, 0)])


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
    none = workload.recipe.kind("none")
    kept = saved_bytes(workload, workload.kinds[0], none, mesh())[0]
    assert kept / 2048 == pytest.approx(peft, rel=2e-3)


FOUR = ("q_proj", "k_proj", "v_proj", "o_proj")
ROUNDED = 5e-4
"""Statistics of norms and rotations, which the widths leave out. [1]"""


@pytest.mark.parametrize(
    ("lora", "peft"),
    [
        ({"targets": FOUR}, 147_720),
        ({"targets": "all-linear"}, 184_680),
        ({"targets": FOUR, "precision": "fp32"}, 147_720 + 57_472),
        ({"targets": FOUR, "dropout": 0.05}, 147_720 + 40_960),
    ],
)
def test_copies_of_inputs_that_adapters_keep(
    lora: dict[str, object], peft: int
) -> None:
    """PyTorch's allocations of an eager Llama-8B block with peft, r = 16.

    In fp32 each of four adapters keeps a copy of its input (16 h), the 16-bit one
    goes (2 h), and the inner columns widen (8 r); with dropout each keeps what was
    not dropped and a mask, 3 h, and the input that three share goes.
    """
    training = tuned().training.model_copy(
        update={"lora": LoraSpec.model_validate({"rank": 16, **lora})}
    )
    workload = eager(replace(tuned(), training=training))
    none = workload.recipe.kind("none")
    kept = saved_bytes(workload, workload.kinds[0], none, mesh())[0]
    assert kept / 2048 == pytest.approx(peft, rel=ROUNDED)


@pytest.mark.parametrize(
    ("tensor", "kept"), [("expert_input", 24_576), ("expert_activation", 86_016)]
)
def test_dropout_copies_every_token_of_every_expert(tensor: str, kept: float) -> None:
    """Mixtral sends a token to two experts: 3 B x 2 x 4,096 and 3 B x 2 x 14,336."""
    training = tuned().training.model_copy(update={"lora": LoraSpec(dropout=0.05)})
    workload = replace(tuned(), model=preset("mixtral-8x7b"), training=training)
    assert copied_bytes(workload, workload.kinds[0], tensor) == kept


def test_adapters_in_fp32_are_16_bytes_a_parameter() -> None:
    """Weight, gradient and two moments in fp32, and no master copy."""
    training = tuned().training.model_copy(update={"lora": LoraSpec(precision="fp32")})
    workload = replace(tuned(), training=training)
    owned = layer_owned(workload, workload.kinds[0], mesh())
    states = state_bytes(workload, owned, mesh())
    trained = float(owned.dense[0])
    assert states.weights[0] == 4 * trained + 2 * owned.frozen[0]
    assert (states.gradients[0], states.optimizer[0]) == (4 * trained, 8 * trained)


@pytest.mark.parametrize("tp", [1, 8])
def test_separate_projections_carry_an_adapter_each(tp: int) -> None:
    """Three factors of h beside Q, K and V where a fused one has a single one."""
    fused, apart = tuned(("qkv",)), tuned(("q_proj", "k_proj", "v_proj"))
    sizes = [
        float(adapter_parameters(job, job.kinds[0], mesh(tp=tp))[0][0])
        for job in (fused, apart)
    ]
    assert sizes[1] - sizes[0] == 2 * 16 * 4096 / tp
    forward = [
        gemm_times(Context.of(job, mesh(tp=tp)), job.kinds[0], job.kinds[0].gemms()[0])
        for job in (fused, apart)
    ]
    assert forward[1][0][0] > forward[0][0][0]


def quantised(name: str, **fields: object) -> Pricing:
    workload = replace(tuned(method="qlora"), model=preset(name))
    training = TrainingSpec.model_validate(
        {"seq_len": 2048, "global_batch": 8, "method": "qlora", **fields}
    )
    return replace(workload, training=training)


@pytest.mark.parametrize(
    ("fields", "each"),
    [
        ({}, 0.5 + (1 + 4 / 256) / 64),
        ({"double_quantization": False}, 0.5 + 4 / 64),
        ({"quantization": "fp4", "double_quantization": False}, 0.5 + 4 / 64),
        ({"quantization": "int8"}, 1.0),
    ],
)
def test_a_quantised_base_by_format(fields: dict[str, object], each: float) -> None:
    """Weights of linears by format; int8 has 4 B for every row besides."""
    workload = quantised("llama-3-8b", **fields)
    kind = workload.kinds[0]
    owned = layer_owned(workload, kind, mesh())
    weights = float(held_bytes(workload, owned, mesh())[0])
    linears = sum(gemm.weights for gemm in kind.gemms())
    rows = sum(gemm.outputs for gemm in kind.gemms())
    scales = 4 * rows if fields.get("quantization") == "int8" else 0
    assert weights == pytest.approx(2 * kind.norm_parameters + each * linears + scales)


@pytest.mark.parametrize("experts", [False, True])
def test_fused_experts_are_quantised_only_where_the_job_says_so(
    *, experts: bool
) -> None:
    workload = quantised("mixtral-8x7b", quantized_experts=experts)
    kind = workload.kinds[0]
    owned = layer_owned(workload, kind, mesh())
    held = float(held_bytes(workload, owned, mesh())[0])
    least = 2.0 * kind.expert_parameters
    assert (held < least) == experts
    largest = max(
        g.weights for g in kind.gemms() if experts or not g.split.startswith("expert")
    )
    assert dequantised_bytes(workload, kind, mesh())[0] == 2 * largest


def test_quantised_weights_travel_packed() -> None:
    """ZeRO-3 gathers what is stored: a quarter of the bytes of 16 bits."""
    lora, qlora = tuned(), tuned(method="qlora")
    lengths = []
    for job in (lora, qlora):
        owned = layer_owned(job, job.kinds[0], mesh(zero=3, dp=8))
        lengths.append(sum(float(np.sum(part)) for part in owned.packed))
    assert 0.25 < lengths[1] / lengths[0] < 0.27


@pytest.mark.parametrize(
    ("fields", "each"),
    [({}, (1 + 4 / 256) / 64), ({"double_quantization": False}, 4 / 64)],
)
def test_scales_stay_whole_where_weights_are_sharded(
    fields: dict[str, object], each: float
) -> None:
    """bitsandbytes' quant_state is no parameter: FSDP shards the 4-bit weight alone."""
    workload, meshes = quantised("llama-3-8b", **fields), mesh(zero=3, dp=8)
    kind = workload.kinds[0]
    owned = layer_owned(workload, kind, meshes)
    shards = held_bytes(workload, owned, meshes)[0]
    trained = workload.states[3].sharded_weights * owned.dense[0] / 8
    whole = each * sum(gemm.weights for gemm in kind.gemms())
    weights = state_bytes(workload, owned, meshes).weights[0]
    assert weights - trained - shards == pytest.approx(whole * 7 / 8, rel=1e-9)
    away = replace(workload, offload=Offload(parameters=1, gradients=1, optimizer=1))
    assert state_bytes(away, owned, meshes).weights[0] == pytest.approx(whole, rel=1e-9)


def test_a_full_training_keeps_what_it_kept() -> None:
    """The same block, all weights trained: 200,840 B a token, 8 of them statistics."""
    workload = eager(tuned(method="full"))
    none = workload.recipe.kind("none")
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


@pytest.mark.parametrize(
    ("module", "owned"), [("embed_tokens", embedding_owned), ("lm_head", head_owned)]
)
def test_a_table_that_trains_beside_adapters_is_a_copy(
    module: str, owned: Callable[[Pricing, Meshes], Owned]
) -> None:
    """peft keeps the frozen table, and gives the copy gradient and moments."""
    workload = tuned()
    lora = LoraSpec.model_validate({"modules_to_save": [module]})
    training = workload.training.model_copy(update={"lora": lora})
    before, after = (
        state_bytes(w, owned(w, mesh()), mesh())
        for w in (workload, replace(workload, training=training))
    )
    table = float(padded_vocab(workload, mesh())[0]) * workload.model.hidden
    assert after.weights[0] - before.weights[0] == 2 * table
    assert (after.gradients[0], after.optimizer[0]) == (4 * table, 12 * table)
    assert before.optimizer[0] == 0
