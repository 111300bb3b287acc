"""A robust search lists another plan first and proves the same optimum."""

from functools import cache

import pytest
from strategies import small_job

from planner.cost.pricing import Pricing
from planner.planning.optimize import MOST_NEAR, optimize
from planner.search.best_first import search
from planner.search.variant import NEAR
from planner.specs.answer.result import Result
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
    ours = [(plan.layout, plan.slower) for plan in on.tie.plans]
    assert ours == [(plan.layout, plan.slower) for plan in off.tie.plans]


def test_without_robust_the_first_plan_is_the_plain_optimum() -> None:
    plans = answer(robust=False).plans
    assert plans[0].slower == 0
    assert [plan.slower for plan in plans] == sorted(plan.slower for plan in plans)


def test_a_robust_plan_is_a_tied_one_with_fewer_axes_in_as_much_room() -> None:
    """Memory differs by less than its error, so the axes decide."""
    on = answer(robust=True)
    assert on.tie is not None
    (first,) = [plan for plan in on.tie.plans if plan.rank == 1]
    fastest = on.tie.plans[0]
    assert on.plans[0].layout == first.layout != fastest.layout
    assert 0 <= first.slower <= first.error
    grain = (job().uncertainty.memory.high - 1) * job().gpu.memory_capacity / 2**30
    assert first.free_gib // grain == fastest.free_gib // grain
    assert first.axes < fastest.axes
    assert fastest.rank == 2
    assert on.plans[1].slower == 0
    assert on.explanation.runner_up.startswith("Chosen among")


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
