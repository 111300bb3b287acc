"""Search equals brute force over the whole space of small jobs."""

from dataclasses import replace

import numpy as np
import pytest
from against_brute_force import check_job
from hypothesis import given, settings
from strategies import FAMILIES, framework, jobs, models, small_job, tightened

from planner.cost.workload import Workload
from planner.frameworks import FRAMEWORKS
from planner.models import Architecture
from planner.search.best_first import SearchOutcome, search
from planner.search.bounds import space_bounds
from planner.search.exhaustive import best_of_space
from planner.specs.search import SearchSpec

NAMES = [framework.name for framework in FRAMEWORKS]
PER_TEST = 25
"""Jobs of each test below: 8 tests make 200. [1]"""
ALSO_SLOW = 125
"""The same in the slow tests: 1,000. [1]"""
EVERY_JOB = [(name, family) for name in NAMES for family in FAMILIES]


@pytest.mark.parametrize(("name", "family"), EVERY_JOB)
def test_the_best_plan_is_the_best_of_all_plans(name: str, family: str) -> None:
    """Any small job, memory from loose to none; no plan where none fits."""
    settings(max_examples=PER_TEST)(given(jobs(framework(name), family))(check_job))()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "family"), EVERY_JOB)
def test_the_best_of_a_thousand_small_jobs(name: str, family: str) -> None:
    """The same on many more jobs."""
    settings(max_examples=ALSO_SLOW)(given(jobs(framework(name), family))(check_job))()


def same_plans(one: SearchOutcome, other: SearchOutcome) -> bool:
    """Whether plans, splits and bound agree in every bit."""
    alike = one.ranked == other.ranked and one.bound_s == other.bound_s
    splits = zip(one.ranked, other.ranked, strict=True)
    return alike and all(np.array_equal(a.counts, b.counts) for a, b in splits)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_job_gives_the_same_answer(name: str) -> None:
    """Bit for bit: plans, splits, bound, and what every rule removed."""

    @settings(max_examples=10)
    @given(jobs(framework(name), "llama"))
    def twice(workload: Workload) -> None:
        one, other = search(workload), search(workload)
        assert same_plans(one, other)
        assert (one.pruned, one.solved) == (other.pruned, other.solved)

    twice()


def fresh_and_after(workload: Workload, other: Workload) -> list[SearchOutcome]:
    """The same search first in a process, and after another job."""
    fresh = search(workload)
    search(other)
    return [fresh, search(workload)]


@pytest.mark.parametrize("name", NAMES)
def test_plans_do_not_depend_on_earlier_searches(name: str) -> None:
    """Bit for bit, first in a process or after another model on the same meshes."""

    @settings(max_examples=15)
    @given(jobs(framework(name), "llama"), models("gpt2"))
    def after_another(workload: Workload, model: Architecture) -> None:
        fresh, later = fresh_and_after(workload, replace(workload, model=model))
        assert same_plans(fresh, later)

    after_another()


def test_what_each_rule_removed_does_not_depend_on_earlier_searches() -> None:
    """Five layers with a heavy head, first alone, then after a wide model."""
    limits = SearchSpec(tp=(1, 2), pp=(2, 3, 4), cp=1, micro_batch=1)
    heads_and_tails = ({"vocab_size": 128_000}, {"hidden_size": 1024})
    one, other = (
        small_job(limits, sequences=8, config={"num_hidden_layers": 5, **fields})
        for fields in heads_and_tails
    )
    fresh, later = fresh_and_after(one, other)
    assert (fresh.pruned, fresh.solved) == (later.pruned, later.solved)


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
            np.any(space_bounds(found.table, found.space).fits)
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
