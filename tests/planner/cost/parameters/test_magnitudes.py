"""Magnitudes beside adapters (DoRA): parameters, kept tensors and time, by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from strategies import framework, small_job

from planner.cost.memory.activations import counted_bytes, kept_bytes
from planner.cost.meshes import Meshes
from planner.cost.parameters.adapters import adapter_parameters, adapter_sums
from planner.cost.parameters.magnitudes import kept_weight_bytes, norm_bytes
from planner.cost.pricing import Pricing
from planner.cost.time.columns import Context
from planner.cost.time.layers import gemm_times
from planner.frameworks.stacks import with_stack
from planner.models import preset
from planner.specs.search import SearchSpec
from planner.specs.training import LoraSpec, TrainingSpec

OUTPUTS = 4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096
"""Outputs of all linears of a block of Llama-3-8B. [1]"""
TOKENS = 2048


def tuned(*, method: str = "lora", **lora: Any) -> Pricing:
    spec = {"rank": 16, "targets": "all-linear", **lora}
    training = TrainingSpec.model_validate(
        {"seq_len": TOKENS, "global_batch": 8, "method": method, "lora": spec}
    )
    workload = small_job(SearchSpec(), nodes=1)
    stacked = with_stack(framework("accelerate"), "hf-trainer")
    return replace(
        workload, model=preset("llama-3-8b"), training=training, framework=stacked
    )


def mesh(micro_batch: int = 1) -> Meshes:
    return Meshes.from_rows([(1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, micro_batch, 1, 0)])


def dense(pricing: Pricing) -> float:
    (layer,) = pricing.kinds
    return float(adapter_parameters(pricing, layer, mesh())[0][0])


def test_each_output_of_an_adapted_layer_has_one_magnitude() -> None:
    assert dense(tuned(dora=True)) - dense(tuned()) == OUTPUTS


def test_adafactor_keeps_a_vector_of_magnitudes_whole() -> None:
    found = [
        float(adapter_sums(w, w.kinds[0], mesh())[0][0])
        for w in (tuned(), tuned(dora=True))
    ]
    assert found[1] - found[0] == OUTPUTS


@pytest.mark.parametrize(
    ("lora", "each"),
    [
        ({}, 2 + 2),
        ({"precision": "fp32"}, 2 + 4),
        ({"dropout": 0.05}, 2 + 2),
        ({"precision": "fp32", "dropout": 0.05}, 4 + 4),
    ],
)
def test_both_outputs_are_kept_for_the_gradient_of_the_magnitude(
    lora: dict[str, Any], each: int
) -> None:
    """The frozen layer's in 16 bits, unless a dropped input makes it; the adapter's."""
    plain, scaled = tuned(**lora), tuned(dora=True, **lora)
    none = plain.recipe.kind("none")
    kept = [counted_bytes(w, w.kinds[0], none, mesh())[0] for w in (plain, scaled)]
    weights = kept_weight_bytes(scaled, scaled.kinds[0], mesh())[0]
    assert kept[1] - kept[0] == TOKENS * each * OUTPUTS + weights


@pytest.mark.parametrize("lora", [{}, {"precision": "fp32", "dropout": 0.05}])
@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_the_formula_adds_what_the_replay_adds(
    method: str, lora: dict[str, Any]
) -> None:
    """The replay is exact to the byte against PEFT's own layers (tests/oracle)."""
    plain, scaled = (tuned(method=method, dora=on, **lora) for on in (False, True))
    none = plain.recipe.kind("none")
    added = [
        (count(scaled, scaled.kinds[0], none, mesh()))[0]
        - (count(plain, plain.kinds[0], none, mesh()))[0]
        for count in (counted_bytes, kept_bytes)
    ]
    assert added[0] == pytest.approx(added[1], rel=2e-3)


def test_norms_need_four_matrices_of_the_largest_layer() -> None:
    """down_proj, 14336 x 4096: a unit matrix of its inputs, and three of its size."""
    workload = tuned(dora=True)
    wanted = 2 * (14336**2 + 3 * 14336 * 4096)
    assert norm_bytes(workload, workload.kinds[0], mesh())[0] == wanted
    packed = tuned(dora=True, method="qlora")
    wanted += 2 * 14336 * 4096
    assert norm_bytes(packed, packed.kinds[0], mesh())[0] == wanted
    assert not norm_bytes(tuned(), workload.kinds[0], mesh()).any()


def forward(pricing: Pricing, micro_batch: int) -> float:
    context = Context.of(pricing, mesh(micro_batch))
    (layer,) = pricing.kinds
    times = [gemm_times(context, layer, gemm)[0] for gemm in layer.gemms()]
    return float(np.sum(times))


def test_norms_cost_once_for_a_micro_batch_of_any_size() -> None:
    """Twice the tokens add less than twice the time that magnitudes take."""
    one, four = (forward(tuned(dora=True), n) - forward(tuned(), n) for n in (1, 4))
    assert 0 < one < four < 2 * one


def test_a_dropped_input_runs_the_frozen_product_again() -> None:
    dropped = forward(tuned(dora=True, dropout=0.1), 1) - forward(tuned(dropout=0.1), 1)
    plain = forward(tuned(dora=True), 1) - forward(tuned(), 1)
    assert dropped > plain + 0.4 * forward(tuned(), 1)


def test_scaling_and_rates_change_no_parameter_and_no_time() -> None:
    other = tuned(rslora=True, loraplus_lr_ratio=16)
    assert dense(other) == dense(tuned())
    assert forward(other, 1) == forward(tuned(), 1)


def test_off_is_the_same_as_absent() -> None:
    assert LoraSpec(dora=False, rslora=False) == LoraSpec()
    assert "dora" not in LoraSpec(dora=False).model_dump(exclude_none=True)
