"""Kinds of cp that another kind makes useless are left out, and no better plan is."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from against_brute_force import check_job
from every_split import best_of_space
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from strategies import framework, priced_space, small_job, tightened
from tiers import some
from tiny_models import TINY_MIXTRAL

from planner.cost.pricing import Pricing
from planner.frameworks import FRAMEWORKS
from planner.planning.optimize import optimize
from planner.search.best_first import search
from planner.search.space import context_kinds as context
from planner.search.space.space import enumerate_space
from planner.specs.layouts.context import CP_KINDS, FAMILIES, cp_family
from planner.specs.search import SearchSpec

HEADS = {"num_attention_heads": 16, "num_key_value_heads": 8, "hidden_size": 1024}
FEW: dict[str, Any] = {
    "space": "full",
    "recompute": ("none", "full"),
    "schedule": "1f1b",
    "zero_stage": 1,
    "etp": 1,
}
LIMITS: list[dict[str, Any]] = [
    {"tp": 1, "cp": (2, 8), "pp": (1, 2), "micro_batch": (1, 2), "dp": (1, 2, 4)},
    {"tp": 2, "cp": 4, "pp": (1, 2), "micro_batch": (1, 4), "dp": (1, 2)},
    {"tp": (2, 4), "cp": (1, 4), "pp": 1, "micro_batch": (1, 2)},
]


def job(limits: dict[str, Any], nodes: int = 1, **fields: Any) -> Pricing:
    config = HEADS | {"num_hidden_layers": 3} | fields.pop("config", {})
    return small_job(SearchSpec(**(FEW | limits)), nodes=nodes, config=config, **fields)


def kinds(pricing: Pricing) -> set[str]:
    found = enumerate_space(pricing).meshes
    return {CP_KINDS[kind] for kind in found.cp_kind[found.cp > 1]}


def everything(prices: np.ndarray) -> list[int]:
    return list(range(len(prices)))


@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(1, 4)),
        elements=st.sampled_from([0.0, 1.0, 2.0]),
    )
)
def test_every_row_is_kept_or_matched_by_one_that_is(prices: np.ndarray) -> None:
    kept = context.undominated(prices)
    for row, price in enumerate(prices):
        matched = any((prices[k] <= price).all() for k in kept)
        assert matched
        others = [k for k in kept if k != row]
        if row in kept:
            assert not any((prices[k] <= price).all() for k in others)


@pytest.mark.parametrize("seq_len", some((65536, 2048), 2))
@pytest.mark.parametrize("nodes", some((1, 2), 2))
@pytest.mark.parametrize("limits", LIMITS)
def test_the_best_plan_stays_in_the_space(
    limits: dict[str, Any],
    nodes: int,
    seq_len: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The best of all plans with every kind is the best without those left out."""
    workload = job(limits, nodes=nodes, seq_len=seq_len)
    fewer = search(workload)
    best = best_of_space(*priced_space(fewer.pricing))
    monkeypatch.setattr(context, "undominated", everything)
    every = search(workload)
    assert every.candidates > fewer.candidates
    of_all = best_of_space(*priced_space(every.pricing))
    assert (best and best.step_s) == (of_all and of_all.step_s)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_search_over_kinds_of_cp_equals_brute_force(
    limits: dict[str, Any], share: float
) -> None:
    check_job(tightened(job(limits, seq_len=16384), share))


@pytest.mark.parametrize(
    ("overlap", "nodes", "stay"), [(True, 2, True), (False, 2, False), (True, 1, True)]
)
def test_plain_kinds_stay_where_experts_hide_beside_other_passes(
    overlap: bool,  # noqa: FBT001
    nodes: int,
    stay: bool,  # noqa: FBT001
) -> None:
    """A slower backward may make a forward shorter where an exchange hides."""
    config = TINY_MIXTRAL | HEADS | {"num_local_experts": 16}
    limits = {"tp": 1, "cp": 4, "pp": 1, "micro_batch": 1, "ep": 8 * nodes}
    workload = job(limits, nodes=nodes, seq_len=65536, config=config)
    profile = workload.profile.model_copy(
        update={"ep_overlap": overlap, "cp_sum_bytes": 0.0, "host_ring": 0.0}
    )
    changed = replace(workload.framework, profile=profile)
    left = kinds(replace(workload, framework=changed))
    assert ({"ring", "all-gather", "ulysses"} <= left) is stay


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_plan_of_every_kind_passes_the_verifier(kind: str) -> None:
    """optimize() refuses a plan that the verifier objects to."""
    room = next(room for room in FRAMEWORKS if kind in room.limits.cp_kinds)
    limits = LIMITS[0] | {"cp": 8, "dp": 1, "pp": 1, "cp_kind": kind}
    limits |= {"zero_stage": room.limits.default_zero_stage}
    (plan,) = optimize([job(limits, name=room.name)], top=1).plans
    assert cp_family(plan.layout.cp_kind) == kind


def test_the_framework_decides_which_kinds_there_are() -> None:
    limits = {"tp": 1, "cp": 8, "pp": 1, "zero_stage": (1, 2, 3)}
    for name in ("megatron", "torchtitan"):
        found = {cp_family(kind) for kind in kinds(job(limits, name=name))}
        assert found <= set(framework(name).limits.cp_kinds)
