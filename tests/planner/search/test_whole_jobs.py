"""Search equals brute force over the whole space of small jobs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import FAMILIES, framework, jobs, models, tightened

from planner.cost.workload import Workload
from planner.frameworks import FRAMEWORKS
from planner.models import Architecture
from planner.search import bounds
from planner.search.best_first import SearchOutcome, search
from planner.search.exhaustive import best_of_space

NAMES = [framework.name for framework in FRAMEWORKS]
PER_TEST = 25
"""Jobs of each test below: 8 tests make 200. [1]"""
ALSO_SLOW = 125
"""The same in the slow tests: 1,000. [1]"""
EVERY_JOB = [(name, family) for name in NAMES for family in FAMILIES]


def check(workload: Workload) -> None:
    """Compare the proven answer with the best of all plans, to the last bit."""
    found = search(workload)
    best = best_of_space(found.table, found.space)
    if best is None:
        assert not found.ranked
        return
    assert found.proven
    assert found.ranked[0].step_s == best.step_s
    assert found.bound_s == best.step_s


@pytest.mark.parametrize(("name", "family"), EVERY_JOB)
def test_the_best_plan_is_the_best_of_all_plans(name: str, family: str) -> None:
    """Any small job, memory from loose to none; no plan where none fits."""
    settings(max_examples=PER_TEST)(given(jobs(framework(name), family))(check))()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "family"), EVERY_JOB)
def test_the_best_of_a_thousand_small_jobs(name: str, family: str) -> None:
    """The same on many more jobs."""
    settings(max_examples=ALSO_SLOW)(given(jobs(framework(name), family))(check))()


def same(one: SearchOutcome, other: SearchOutcome) -> bool:
    """Whether two outcomes agree in every bit but the wall time."""
    alike = one.ranked == other.ranked and one.bound_s == other.bound_s
    splits = zip(one.ranked, other.ranked, strict=True)
    return (
        alike
        and all(np.array_equal(a.counts, b.counts) for a, b in splits)
        and (one.pruned, one.solved) == (other.pruned, other.solved)
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_same_job_gives_the_same_answer(name: str) -> None:
    """Bit for bit: plans, splits, bound, and what every rule removed."""

    @settings(max_examples=10)
    @given(jobs(framework(name), "llama"))
    def twice(workload: Workload) -> None:
        assert same(search(workload), search(workload))

    twice()


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_does_not_depend_on_earlier_searches(name: str) -> None:
    """Bit for bit, first in a process or after another model on the same meshes."""

    @settings(max_examples=40)
    @given(jobs(framework(name), "llama"), models("gpt2"))
    def after_another(workload: Workload, other: Architecture) -> None:
        bounds._PATHS.clear()
        fresh = search(workload)
        bounds._PATHS.clear()
        search(replace(workload, model=other))
        assert same(fresh, search(workload))

    after_another()


@pytest.mark.parametrize("name", NAMES)
def test_without_time_the_bound_is_still_true(name: str) -> None:
    """No wall time at all: no proof is claimed, and no plan beats the bound."""

    @settings(max_examples=15)
    @given(jobs(framework(name), "llama"))
    def hurried(workload: Workload) -> None:
        found = search(workload, time_limit=0.0)
        best = best_of_space(found.table, found.space)
        assert best is None or found.bound_s <= best.step_s
        assert found.timed_out == bool(
            np.any(bounds.space_bounds(found.table, found.space).fits)
        )
        assert not found.ranked

    hurried()


@pytest.mark.parametrize("name", NAMES)
def test_a_job_that_fits_nowhere_gets_no_plan(name: str) -> None:
    """With room for no block at all, neither finds a plan."""

    @settings(max_examples=5)
    @given(jobs(framework(name), "mixtral"))
    def none_fits(workload: Workload) -> None:
        full = tightened(workload, 0)
        found = search(full)
        assert not found.ranked
        assert best_of_space(found.table, found.space) is None
        assert not found.proven

    none_fits()
