"""A robust search lists another plan first and proves the same optimum."""

import re
from dataclasses import replace
from functools import cache

import pytest
from pydantic import ValidationError
from strategies import small_job, with_profile

from planner.cost.pricing import Pricing
from planner.planning.optimize import MOST_NEAR, optimize
from planner.planning.ties import MOST_SLOWER
from planner.search.best_first import search
from planner.search.variant import NEAR
from planner.specs.answer.result import Result
from planner.specs.answer.uncertainty import Band
from planner.specs.search import SearchSpec

SEARCH = SearchSpec(tp=(1, 2), pp=(1, 2), cp=1)


def job() -> Pricing:
    return small_job(SEARCH)


@cache
def answer(*, robust: bool, top: int = 4) -> Result:
    return optimize([job()], top=top, robust=robust)


def test_the_certificate_speaks_of_the_fastest_either_way() -> None:
    off, on = answer(robust=False), answer(robust=True)
    assert (off.robust, on.robust) == (False, True)
    assert on.objective == off.objective
    assert on.status == off.status == "optimal"
    assert on.tie is not None
    assert off.tie is not None
    ours = {plan.layout: plan.slower for plan in on.tie.plans}
    assert ours | {p.layout: p.slower for p in off.tie.plans} == ours


def test_without_robust_the_first_plan_is_the_plain_optimum() -> None:
    plans = answer(robust=False).plans
    assert plans[0].slower == 0
    assert [plan.slower for plan in plans] == sorted(plan.slower for plan in plans)


def test_a_robust_plan_is_the_tied_one_with_fewest_axes() -> None:
    on = answer(robust=True)
    assert on.tie is not None
    (first,) = [plan for plan in on.tie.plans if plan.rank == 1]
    fastest = on.tie.plans[0]
    assert on.plans[0].layout == first.layout != fastest.layout
    assert 0 <= first.slower <= min(first.error, MOST_SLOWER)
    near = [plan for plan in on.tie.plans if plan.slower <= MOST_SLOWER]
    assert first.axes == min(plan.axes for plan in near) < fastest.axes
    assert fastest.rank == 2
    assert on.plans[1].slower == 0
    assert on.explanation.runner_up.startswith("Chosen among")


def crowded(share: float, **search: object) -> Pricing:
    """The job with so much of a GPU taken, and a band of 0.8 to 1.5.

    Without workspaces: states are the larger part of what the small model needs.
    """
    taken = share * job().gpu.memory_capacity / 1e9
    plain = small_job(SEARCH.model_copy(update=search))
    its = with_profile(plain, context_gb=taken, communicator_gb=0.0)
    recipe = replace(its.framework.recipe, workspace_mib={})
    its = replace(its, framework=replace(its.framework, recipe=recipe))
    bands = its.uncertainty.model_copy(update={"memory": Band(low=0.8, high=1.5)})
    return replace(its, uncertainty=bands)


@pytest.mark.parametrize("risk", [0.05, 0.3])
def test_every_plan_is_within_the_risk_and_the_fastest_stands_beside(
    risk: float,
) -> None:
    its = crowded(0.62, memory_risk=risk)
    result, plain = optimize([its], robust=True), optimize([its])
    assert result.status == "optimal"
    chances = [plan.estimate.memory.oom_probability for plan in result.plans]
    assert all(chance is not None and chance <= risk for chance in chances)
    assert result.fastest is not None
    assert result.fastest.layout == plain.plans[0].layout
    step = plain.plans[0].estimate.step_time_s.value
    assert result.fastest.step_time_s == step
    safe = min(plan.estimate.step_time_s.value for plan in result.plans)
    assert result.fastest.faster == pytest.approx(1 - step / safe)
    assert plain.fastest is None


def test_an_even_risk_is_the_memory_that_is_predicted() -> None:
    its = crowded(0.62, memory_risk=0.5)
    result, plain = optimize([its], robust=True), optimize([its])
    assert result.objective == plain.objective


def test_where_no_layout_is_within_the_risk_the_ways_out_are_named() -> None:
    result = optimize([crowded(0.9, memory_risk=0.05)], robust=True)
    assert (result.status, result.plans) == ("infeasible", ())
    assert result.fastest is not None
    said = " ".join(result.explanation.infeasible)
    chance = result.fastest.oom_probability
    assert chance > 0.05
    assert f"{chance:.0%}" in said
    assert "--robust off" in said
    assert "would lower the risk" in said
    assert "times the memory" not in said
    assert "would hold them" not in said
    (least,) = re.findall(r"--set search.memory_risk=(0\.\d+)", said)
    out = optimize([crowded(0.9, memory_risk=float(least))], robust=True)
    assert out.fastest is not None
    assert out.fastest.faster == 0


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, "5%", True, float("nan")])
def test_a_risk_that_is_no_probability_is_refused(bad: object) -> None:
    with pytest.raises(ValidationError, match="memory_risk"):
        SearchSpec.model_validate({"memory_risk": bad})


def test_a_tie_reaches_beyond_the_list_and_ends_at_its_width() -> None:
    found = answer(robust=False, top=1).tie
    assert found is not None
    assert [plan.rank for plan in found.plans if plan.rank] == [1]
    assert 1 < len(found.plans) <= MOST_NEAR
    assert all(plan.slower <= plan.error for plan in found.plans)
    assert found.within == max(plan.slower for plan in found.plans)


def test_a_plan_that_stands_alone_has_no_tie() -> None:
    one = SearchSpec(tp=1, pp=1, cp=1, micro_batch=1, recompute="none", zero_stage=1)
    result = optimize([small_job(one)], robust=True)
    assert len(result.plans) == 1
    assert result.tie is None


def test_what_was_found_near_the_best_holds_the_list_as_far_as_it_is_near() -> None:
    outcome = search(job(), top=3)
    most = outcome.ranked[0].step_s * (1 + NEAR)
    assert outcome.near == sorted(outcome.near)
    assert all(plan.step_s <= most for plan in outcome.near)
    assert {p for p in outcome.ranked if p.step_s <= most} <= set(outcome.near)


def test_a_rate_that_was_never_seen_is_warned_of() -> None:
    """A tiny model is far below the rate that experience expects."""
    result = answer(robust=False)
    assert result.plans[0].estimate.hfu == pytest.approx(0.0, abs=0.3)
    assert any("experience looks for a mistake" in said for said in result.warnings)
