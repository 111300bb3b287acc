"""The limit on the risk, broken in one place each: brute force or verify sees it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from brute_force import best_plans
from strategies import small_job, with_profile

from planner.cost.memory import buffers
from planner.cost.pricing import Pricing
from planner.cost.table import units
from planner.job.variants import variants
from planner.planning.optimize import optimize
from planner.search.best_first import search_all
from planner.specs.answer.uncertainty import Band
from planner.specs.search import SearchSpec

RISK = 0.05


def tight() -> Pricing:
    """A job whose states are most of the memory, and whose rest fits 1.6 times."""
    limits = SearchSpec(tp=(1, 2), pp=1, cp=1, micro_batch=(1, 4), memory_risk=RISK)
    job = with_profile(small_job(limits), context_gb=0.0, communicator_gb=0.0)
    bands = job.uncertainty.model_copy(update={"memory": Band(low=0.6, high=2.0)})
    cluster = job.topology.cluster
    gpu = cluster.gpu.model_copy(update={"memory_capacity": CAPACITY})
    topology = type(job.topology)(replace(cluster, gpu=gpu))
    return replace(job, uncertainty=bands, topology=topology)


CAPACITY = 0.4e9
"""Memory of a GPU: some layouts are within the risk, others fit but are not. [B]"""


def answer(job: Pricing) -> float | None:
    """Step of the best plan that the search finds. [s]."""
    outcomes = search_all(variants([job]), top=1)
    steps = [plan.step_s for each in outcomes for plan in each.ranked]
    return min(steps, default=None)


def truth(job: Pricing) -> float | None:
    best = best_plans(variants([job]))
    return best[0].step_s if best else None


def test_the_limit_costs_speed_here_and_is_met() -> None:
    job = tight()
    limited = job.at_risk_of_most(robust=True)
    step, plain = answer(limited), answer(job)
    assert step is not None
    assert plain is not None
    assert step == truth(limited) > plain == truth(job)


BROKEN: dict[str, tuple[Any, str, Callable[..., float]]] = {
    "no multiple of the rest": (buffers, "multiple", lambda _job: 1.0),
    "states scaled, too": (units, "spared_share", lambda _job: 0.0),
    "states spared twice": (units, "spared_share", lambda _job: 0.9),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_limit_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = tight().at_risk_of_most(robust=True)
    expected = truth(limited)
    place, attribute, broken = BROKEN[name]
    monkeypatch.setattr(place, attribute, broken)
    assert answer(limited) != expected


def test_the_verifier_sees_a_plan_beyond_the_risk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(buffers, "multiple", lambda _job: 1.0)
    monkeypatch.setattr(units, "spared_share", lambda _job: 0.0)
    with pytest.raises(AssertionError, match="runs out of memory in"):
        optimize([tight()], robust=True, beside=False)
