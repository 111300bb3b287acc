"""The flow over variants: status, plans with their settings, and what would fit."""

from dataclasses import replace
from typing import Any

import pytest
from strategies import small_job, tightened, with_host_memory, with_profile

from planner.cost.pricing import Pricing
from planner.errors import BadInputError
from planner.planning import infeasible
from planner.planning.infeasible import tightest
from planner.planning.optimize import _status, optimize
from planner.search.best_first import search
from planner.specs.answer.result import Result
from planner.specs.layouts.layout import Offload
from planner.specs.search import SearchSpec

ONE_GPU_EACH: dict[str, Any] = {"tp": 1, "pp": 1, "cp": 1, "micro_batch": 1}
WIDE = {"hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 32000}
"""Layers of an 8 B model: six of them with embedding and head hold 1.6 B."""


def job(name: str = "torchtitan", capacity: float | None = None, **s: Any) -> Pricing:
    """Six wide layers on one node, each GPU with so much room. [GB]."""
    block = SearchSpec(**(ONE_GPU_EACH | s))
    workload = small_job(block, name=name, config=WIDE)
    if capacity is None:
        return workload
    rest = workload.gpu.memory_capacity / 1e9 - capacity
    return with_profile(workload, context_gb=rest, communicator_gb=0.0)


def offload_of(result: Result) -> Offload:
    return result.plans[0].layout.offload


@pytest.mark.slow
def test_offload_is_chosen_where_only_it_fits() -> None:
    """States take 3.9 of 8 GB that fit; in 6 GB the host has to hold them."""
    assert optimize([job(capacity=6.0)]).status == "infeasible"
    result = optimize([job(capacity=6.0, offload=True)])
    assert result.status == "optimal"
    assert offload_of(result) == Offload(parameters=1, gradients=1, optimizer=1)
    assert result.search.variants == 2


def test_offload_is_left_alone_where_it_costs_time_for_nothing() -> None:
    result = optimize([job(offload=True)])
    assert offload_of(result) == Offload()
    assert result.plans[0].chosen == ""


def test_a_plan_says_the_settings_that_were_open() -> None:
    """Fewer states and gradients: adapters are the faster method."""
    result = optimize([job(method=["full", "lora"], optimizer="adamw")])
    best = result.plans[0]
    assert best.settings == {"method": "lora", "optimizer": "adamw"}
    assert best.chosen == "method lora, optimizer adamw"
    assert optimize([job()]).plans[0].settings == {}


def test_the_runner_up_is_told_by_its_settings() -> None:
    """One layout and two methods: only the method can differ."""
    limits = {"zero_stage": 3, "recompute": "none", "dp_shard": 8}
    result = optimize([job(method=["full", "lora"], **limits)])
    assert len(result.plans) == 2
    assert result.explanation.runner_up.startswith("It beats method full by")
    offloaded = optimize([job(offload=True, **limits)])
    assert "offload optimizer 1.0 + parameters" in offloaded.explanation.runner_up


def test_the_best_of_any_framework_is_told_from_that_of_another() -> None:
    limits = {"recompute": "none", "dp_shard": 8}
    both = [job("megatron", zero_stage=1, **limits), job(zero_stage=2, **limits)]
    result = optimize(both)
    assert "framework torchtitan" in result.explanation.runner_up


@pytest.mark.slow
def test_infeasible_holds_for_every_variant_and_offers_what_helps() -> None:
    result = optimize([job(capacity=6.0, method=["full"])])
    said = " ".join(result.explanation.infeasible)
    assert "search.offload: true would fit" in said
    assert "method full" in said


@pytest.mark.slow
def test_offload_that_would_not_help_is_not_promised() -> None:
    """Room for nothing at all: even two layers' activations are too much."""
    said = " ".join(optimize([tightened(job(), 0)]).explanation.infeasible)
    assert "would fit" not in said
    assert "found not to be enough" in said


def test_offload_that_was_allowed_is_not_proposed_again() -> None:
    full = tightened(job(offload=True), 0)
    said = " ".join(optimize([full]).explanation.infeasible)
    assert "over 2 settings" in said
    assert "not allowed" not in said


def test_what_is_promised_to_fit_does() -> None:
    """The offload that the explanation names is found by a search that may use it."""
    tight = job(capacity=6.0)
    assert "would fit" in " ".join(optimize([tight]).explanation.infeasible)
    block = tight.search.model_copy(update={"offload": True})
    assert optimize([replace(tight, search=block)]).status == "optimal"


def test_the_host_needs_room_for_what_a_plan_offloads() -> None:
    """A plan of 6 GB on the GPUs fits a node of 1 TB and none of 1 GB."""
    tight = job(capacity=6.0, offload=True)
    best = optimize([with_host_memory(tight, 1e12)]).plans[0]
    host = best.estimate.memory.host
    assert host is not None
    assert host.is_enough
    short = optimize([with_host_memory(tight, 1e9)])
    assert short.status == "infeasible"
    said = " ".join(short.explanation.infeasible)
    assert "ruled out by host memory: 1 GB a node" in said


def test_offload_is_not_proposed_to_a_host_without_room() -> None:
    said = optimize([with_host_memory(job(capacity=6.0), 1e9)]).explanation.infeasible
    assert "would fit" not in " ".join(said)


def test_given_up_without_a_plan_is_not_infeasible() -> None:
    """Neither a plan nor a proof: the bound is finite."""
    outcome = search(job())
    assert _status([replace(outcome, ranked=[], bound_s=1.0)], []) == "unknown"
    ruled_out = replace(outcome, ranked=[], bound_s=float("inf"))
    assert _status([ruled_out], []) == "infeasible"


def test_the_tightest_layout_of_a_job_that_fits_is_within_the_capacity() -> None:
    outcome = search(job())
    least = tightest(outcome.pricing)
    assert least is not None
    assert least.excess < 1
    assert least.needed == least.stage.device


def test_the_tightest_layout_does_not_depend_on_the_parts_of_the_space(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Candidates that tie come from several parts, and the first of them is kept."""
    workload = small_job(SearchSpec(), config=WIDE)
    monkeypatch.setattr(infeasible, "TRIED", 3)
    whole = tightest(workload)
    monkeypatch.setattr(infeasible, "PART", 5)
    parts = tightest(workload)
    assert whole is not None
    assert parts is not None
    assert parts.layout == whole.layout


def test_out_of_time_is_never_infeasible() -> None:
    """Under several variants, with and without room."""
    for capacity in (None, 6.0):
        result = optimize([job(capacity=capacity, offload=True)], time_limit=0.0)
        assert result.status == "unknown"
        assert result.objective.bound > 0


def test_a_variant_without_legal_layouts_is_no_error_but_all_of_them_are() -> None:
    """ZeRO-2 has whole parameters, which cannot be offloaded."""
    result = optimize([job(offload=True, zero_stage=2)])
    assert result.status == "optimal"
    with pytest.raises(BadInputError, match="offload of parameters needs ZeRO-3"):
        optimize([job(offload="optimizer+parameters+gradients", zero_stage=2)])
