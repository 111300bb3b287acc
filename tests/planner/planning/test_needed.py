"""The answer names axes only where a search of the smaller space proves them needed."""

from dataclasses import replace

import pytest
from strategies import small_job, with_profile

from planner.cost.pricing import Pricing
from planner.planning import simpler as fewer
from planner.planning.optimize import optimize
from planner.planning.ties import MOST_SLOWER, needed_words, split_axes
from planner.search.best_first import search
from planner.search.outcome import Enough
from planner.specs.answer.result import Result
from planner.specs.answer.uncertainty import Band
from planner.specs.search import SearchSpec

HUGE = {"vocab_size": 256_000, "hidden_size": 512}
"""A model whose head is most of its memory, so that ranks have to share it. [1]"""


def job(**limits: object) -> Pricing:
    """A job that fits no GPU alone by far."""
    search = SearchSpec(cp=1, zero_stage=0).model_copy(update=limits)
    taken = 0.52 * small_job(search).gpu.memory_capacity / 1e9
    plain = small_job(search, config=HUGE)
    its = with_profile(plain, context_gb=taken, communicator_gb=0.0)
    bands = its.uncertainty.model_copy(update={"memory": Band(low=0.6, high=1.8)})
    return replace(its, uncertainty=bands)


def answer() -> Result:
    return optimize([job()], robust=True)


def best_without(axis: str, used: list[str]) -> float:
    """Step of the best plan along the other axes of a plan alone. [s]."""
    others = {"tp": 1, "pp": 1, "vpp": 1, "ep": 1, "etp": 1}
    kept = {name for name in used if name != axis}
    limits = {name: 1 for name in others if name not in kept}
    its = job(**limits).at_risk_of_most(robust=True)
    assert isinstance(its, Pricing)
    plans = search(its).ranked
    return plans[0].step_s if plans else float("inf")


def test_every_named_axis_is_needed_and_every_other_is_not() -> None:
    result = answer()
    least = min(plan.slower for plan in result.plans)
    assert least == 0
    fastest = min(plan.estimate.step_time_s.value for plan in result.plans)
    used = split_axes(result.plans[0].layout)
    assert used
    said = result.explanation.needed
    for axis in used:
        slower = best_without(axis, used) / fastest - 1
        assert (axis.upper() in said) == (slower > MOST_SLOWER)


def test_a_search_that_ends_early_names_no_axis(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fewer, "QUICK", Enough(work=-1.0))
    assert not answer().explanation.needed


def test_axes_are_named_in_words() -> None:
    assert needed_words(()) == ""
    assert needed_words(("tp",)).startswith("Without TP, and")
    assert needed_words(("tp", "pp", "cp")).startswith("Without TP, PP or CP, and")
