"""States: the tables of ZeRO and of Megatron's optimizer, and how they shrink."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import framework, small_job
from tiny_models import TINY_MIXTRAL

from planner.cost.meshes import Meshes
from planner.cost.parameters.rank_parameters import Owned, layer_owned
from planner.cost.parameters.states import state_bytes
from planner.cost.pricing import Pricing
from planner.specs.frameworks.states import StateBytes
from planner.specs.search import SearchSpec

GB = 1e9
ZERO_PAPER = {
    0: StateBytes(weights=2, gradients=2, optimizer=4),
    1: StateBytes(weights=2, gradients=2, sharded_optimizer=4),
    2: StateBytes(weights=2, sharded_gradients=2, sharded_optimizer=4),
    3: StateBytes(sharded_weights=2, sharded_gradients=2, sharded_optimizer=4),
}
"""fp16 weights and gradients, fp32 master; Adam's two moments make K = 12. [B]"""


def meshes(dp: int, zero: int, *, tp: int = 1, ep: int = 1) -> Meshes:
    row = (tp, 0, 1, 1, 1, ep, 1, dp, dp, zero, 1, 1, 1, 0)
    return Meshes.from_rows([row])


def with_states(states: dict[int, StateBytes]) -> Pricing:
    workload = small_job(SearchSpec())
    recipe = replace(workload.recipe, states=states)
    return replace(workload, framework=replace(workload.framework, recipe=recipe))


def states_of(pricing: Pricing, parameters: float, *, dp: int, zero: int) -> float:
    owned = Owned(np.array([parameters]), np.zeros(1))
    return float(state_bytes(pricing, owned, meshes(dp, zero)).total[0])


@pytest.mark.parametrize(
    ("zero", "gigabytes"), [(0, 120.0), (1, 31.406), (2, 16.641), (3, 1.875)]
)
def test_zero_on_64_gpus(zero: int, gigabytes: float) -> None:
    """Rajbhandari et al., figure 1: 7.5 B parameters, 120 / 31.4 / 16.6 / 1.9 GB."""
    held = states_of(with_states(ZERO_PAPER), 7.5e9, dp=64, zero=zero)
    assert held / GB == pytest.approx(gigabytes, abs=5e-4)


@pytest.mark.parametrize(
    ("zero", "column"),
    [
        (1, [120, 52.5, 35.6, 31.4, 30.4, 30.1]),
        (2, [120, 41.3, 21.6, 16.6, 15.4, 15.1]),
        (3, [120, 30, 7.5, 1.88, 0.47, 0.12]),
    ],
)
def test_zero_by_size_of_the_group(zero: int, column: list[float]) -> None:
    """Rajbhandari et al., table 1: 7.5 B parameters on 1 to 1024 GPUs."""
    workload = with_states(ZERO_PAPER)
    for dp, gigabytes in zip((1, 4, 16, 64, 256, 1024), column, strict=True):
        held = states_of(workload, 7.5e9, dp=dp, zero=zero)
        assert held / GB == pytest.approx(gigabytes, abs=0.051 if zero < 3 else 0.006)


@pytest.mark.parametrize(
    ("whole", "sharded", "per_parameter"),
    [
        (StateBytes(weights=2, gradients=4), 4, 7.5),
        (StateBytes(weights=2, gradients=2), 8, 6.0),
        (StateBytes(weights=4, gradients=4), 0, 9.0),
    ],
)
def test_megatron_s_bytes_per_parameter_on_eight(
    whole: StateBytes, sharded: float, per_parameter: float
) -> None:
    """dist_optimizer.md: bf16 6 + 12 / 8, fp16 4 + 16 / 8, fp32 8 + 8 / 8."""
    workload = with_states({1: replace(whole, sharded_optimizer=sharded)})
    assert states_of(workload, 1.0, dp=8, zero=1) == per_parameter


def test_our_megatron_recipe_is_the_bf16_row() -> None:
    """6 + 12 / S with the distributed optimizer, 18 without."""
    workload = small_job(SearchSpec())
    assert states_of(workload, 1.0, dp=8, zero=1) == 7.5
    assert states_of(workload, 1.0, dp=8, zero=0) == 18.0


def test_our_torchtitan_recipe_is_fully_sharded_fp32() -> None:
    """16 / S under ZeRO-3, and whole bf16 parameters beside it under ZeRO-2."""
    workload = small_job(SearchSpec(), name="torchtitan")
    assert states_of(workload, 1.0, dp=8, zero=3) == 2.0
    assert states_of(workload, 1.0, dp=8, zero=2) == 4.0


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 8, 64]))
def test_higher_stages_never_hold_more(tp: int, dp: int) -> None:
    """Z1 <= Z0 in Megatron, Z3 <= Z2 in torchtitan, experts included."""
    for name, low, high in (("megatron", 0, 1), ("torchtitan", 2, 3)):
        workload = small_job(SearchSpec(), name=name, config=TINY_MIXTRAL)
        less, more = (layer_bytes(workload, dp, z, tp) for z in (high, low))
        assert less <= more


@given(st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 8, 64]))
def test_states_shrink_with_tp_and_with_dp(tp: int, dp: int) -> None:
    for name in ("megatron", "torchtitan"):
        workload = small_job(SearchSpec(), name=name)
        for zero in framework(name).limits.zero_stages:
            here = layer_bytes(workload, dp, zero, tp)
            assert layer_bytes(workload, dp, zero, 2 * tp) < here
            wider = layer_bytes(workload, 2 * dp, zero, tp)
            assert wider == here if zero == 0 else wider < here


def layer_bytes(pricing: Pricing, dp: int, zero: int, tp: int) -> float:
    """States of one layer on a rank. [B]."""
    mesh = meshes(dp, zero, tp=tp)
    owned = layer_owned(pricing, pricing.kinds[0], mesh)
    return float(state_bytes(pricing, owned, mesh).total[0])
