"""The price of free memory is that of the fastest plan on a smaller GPU."""

from dataclasses import replace
from functools import cache

import pytest
from strategies import small_job, with_profile

from planner.cost.estimate.estimate import estimate
from planner.cost.pricing import Pricing
from planner.planning import given_back as room
from planner.planning.explanation.changes import with_capacity
from planner.planning.optimize import optimize
from planner.search.best_first import search
from planner.search.outcome import SearchOutcome
from planner.specs.answer.result import GivenBack, Result
from planner.specs.answer.uncertainty import Band
from planner.specs.layouts.layout import Layout
from planner.specs.search import SearchSpec
from planner.verify import violations

OPEN = SearchSpec(tp=(1, 2), pp=(1, 2), cp=1)
SHARES = (0.05, 0.095, 0.1, 0.2)
"""Amounts of memory that the tests take, of the GPU's. [1]"""


def crowded() -> Pricing:
    """A job that fills three fifths of a GPU before its first tensor, more or less."""
    job = small_job(OPEN)
    taken = 0.6 * job.gpu.memory_capacity / 1e9
    its = with_profile(job, context_gb=taken, communicator_gb=0.0)
    bands = its.uncertainty.model_copy(update={"memory": Band(low=0.8, high=1.5)})
    return replace(its, uncertainty=bands)


@cache
def answer() -> Result:
    """The job's answer, with amounts that matter to a small job."""
    with pytest.MonkeyPatch.context() as patch:
        capacity = crowded().gpu.memory_capacity / room.GIB
        patch.setattr(room, "AMOUNTS", tuple(capacity * each for each in SHARES))
        patch.setattr(room, "MOST_SLOWER", 1.0)
        return optimize([crowded()], robust=True)


def on_less(gib: float) -> SearchOutcome:
    """The search of the job on GPUs that have so much less memory."""
    smaller = crowded().gpu.memory_capacity - gib * room.GIB
    its = with_capacity(smaller)(crowded()).at_risk_of_most(robust=True)
    assert isinstance(its, Pricing)
    return search(its)


def test_every_price_is_that_of_the_fastest_plan_on_a_smaller_gpu() -> None:
    told = answer().given_back
    assert len(told) == len(SHARES)
    for one in told:
        plans = on_less(one.gib).ranked
        expected = plans[0].step_s if plans else None
        assert one.step_time_s == expected
        assert one.status == "optimal"


def test_the_amounts_reach_from_free_to_impossible() -> None:
    prices = [one.slower for one in answer().given_back]
    assert prices[0] == 0
    assert prices[-1] is None
    paid = [price for price in prices if price is not None]
    assert paid == sorted(paid)
    assert paid[-1] > 0


def with_plan() -> list[GivenBack]:
    return [one for one in answer().given_back if one.layout is not None]


def test_the_verifier_admits_a_plan_on_what_it_may_fill_and_no_other() -> None:
    """The fastest plan breaks the limit where a price is paid."""
    safe = crowded().at_risk_of_most(robust=True)
    fastest = min(answer().plans, key=lambda plan: plan.slower).layout
    for one in with_plan():
        assert one.layout is not None
        less = replace(safe, spare=one.gib * room.GIB)
        assert not broken(less, one.layout)
        assert bool(one.slower) == any("runs out" in x for x in broken(less, fastest))


def broken(job: Pricing, layout: Layout) -> list[str]:
    """Objections of the verifier to a plan under its own estimate."""
    told = estimate(job, layout)
    return violations(
        job,
        layout,
        step_s=told.step_time_s.value,
        device_gib=[stage.device for stage in told.memory.stages],
    )


def test_a_search_that_ends_early_claims_no_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(room, "PART", 0.0)
    gib = crowded().gpu.memory_capacity / room.GIB * 0.2
    monkeypatch.setattr(room, "AMOUNTS", (gib,))
    (one,) = optimize([crowded()], robust=True).given_back
    assert (one.status, one.slower) == ("unknown", None)


def test_without_a_limit_on_the_risk_no_amount_is_searched() -> None:
    assert optimize([crowded()]).given_back == ()
