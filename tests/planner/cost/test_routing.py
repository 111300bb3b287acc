"""Loads of expert ranks that wait for the busiest, by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_stack_physics import context, job

from planner.cost.memory.activations import expert_tokens
from planner.cost.routing import assumed_routing, imbalance
from planner.models import preset

LARGEST = {2: 0.5642, 4: 1.0294, 8: 1.4236}
"""Mean of the largest of n normal deviates: H. L. Harter, Biometrika 48 (1961)."""


def load(ep: int, layers: int = 1, **stack: Any) -> float:
    """Busiest of ep ranks over the mean, of the 8 experts of Mixtral 8x7B."""
    workload = replace(job("dgx-h100", 1, **stack), model=preset("mixtral-8x7b"))
    meshes = context(workload, ep=ep, dp=8).meshes
    return float(imbalance(workload, meshes, layers)[0])


@pytest.mark.parametrize("ep", [2, 4, 8])
def test_a_rank_adds_up_its_experts(ep: int) -> None:
    """Eight experts on n ranks: 1 + sigma sqrt(n / 8) e(n)."""
    expected = 1 + 0.3 * np.sqrt(ep / 8) * LARGEST[ep]
    assert load(ep, expert_spread=0.3) == pytest.approx(expected, rel=5e-3)


def test_one_rank_waits_for_nobody() -> None:
    assert load(1, expert_spread=1.7) == 1.0
    assert load(1, expert_imbalance=1.5) == 1.0


def test_no_rank_gets_more_than_a_copy_of_every_token() -> None:
    """One expert of eight, of which a token asks two: at most 8 x 1 / 2."""
    assert load(8, expert_spread=100.0) == 4.0


def test_what_the_user_states_holds() -> None:
    assert load(8, expert_imbalance=1.5, expert_spread=1.7) == 1.5


def test_loads_of_many_layers_even_out_in_memory() -> None:
    """Of four layers, half the spread; the busiest layer still waits for all."""
    one, four = load(8, expert_spread=0.3) - 1, load(8, 4, expert_spread=0.3) - 1
    assert four == pytest.approx(one / 2)


def test_tokens_of_the_busiest_rank() -> None:
    """4,096 tokens on every rank, 1.43 times as many on the busiest of eight."""
    workload = replace(
        job("dgx-h100", 1, expert_spread=0.3), model=preset("mixtral-8x7b")
    )
    meshes = context(workload, ep=8, dp=8).meshes
    busiest = 4096 * (1 + 0.3 * LARGEST[8])
    assert expert_tokens(workload, meshes) == pytest.approx(busiest, rel=5e-3)


@pytest.mark.parametrize(
    ("stack", "said"),
    [
        ({"expert_spread": 0.3}, "loads of experts spread by 30 % of their mean"),
        ({"expert_imbalance": 1.2}, "busiest expert rank carries 1.2 times the mean"),
    ],
)
def test_the_assumption_is_said(stack: dict[str, float], said: str) -> None:
    dense = job("dgx-h100", 1, **stack)
    assert assumed_routing(dense) == ()
    assert assumed_routing(replace(dense, model=preset("mixtral-8x7b"))) == (said,)
