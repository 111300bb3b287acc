"""Search equals brute force over the whole space of small jobs."""

from collections.abc import Callable
from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from against_every_plan import check_answer, check_flow, check_hurried, check_whole
from every_split import best_of_space
from examples import examples
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from strategies import framework, jobs, priced_space, small_job, tightened
from tiers import some
from tiny_models import HYBRID, hybrids, models, tiny
from whole_jobs import CAP, ONE_IN, whole_jobs

from planner.cost.pricing import Pricing
from planner.frameworks import FRAMEWORKS
from planner.models import Architecture
from planner.search import first_tier
from planner.search import warm_start as default_part
from planner.search.best_first import search
from planner.search.outcome import SearchOutcome
from planner.specs.search import SearchSpec

NAMES = [framework.name for framework in FRAMEWORKS]
PIPELINED = ("torchtitan", "deepspeed")
"""Two frameworks; the long test of parts has all. [text]"""
PARTS = 2
"""Pieces that each framework's jobs come in, so that cores can share them. [1]"""
EVERY_PART = [(name, part) for name in NAMES for part in range(PARTS)]
PER_PART = ceil(2000 / len(EVERY_PART))
"""Jobs of a piece of the long test: all pieces make 2,000, under `thorough`. [1]"""
SMALL = 100
"""Complete plans of such a job; some slow tests have more. [1]"""


def run(
    check: Callable[[Pricing], None], name: str, most: int, *, jobs: int, part: int
) -> None:
    """Check so many random jobs; another part draws others."""
    drawn = given(whole_jobs(name, most, ONE_IN))(check)
    seed(part)(settings(max_examples=jobs, print_blob=False)(drawn))()


@pytest.mark.parametrize("name", some(NAMES, 2))
def test_the_best_plan_is_the_best_of_all_plans(name: str) -> None:
    """Any small job, all axes open, memory from loose to none; else no plan."""
    run(check_whole, name, SMALL, jobs=2, part=0)


@pytest.mark.parametrize(("name", "degrees"), [("megatron", 2), ("accelerate", 4)])
def test_the_best_plan_of_a_hybrid_stack(name: str, degrees: int) -> None:
    """Scans among attention: tp and cp up to the scans' heads, pp over any split."""
    limits = SearchSpec(micro_batch=(1, 2), tp=(1, degrees), cp=(1, degrees))
    job = replace(small_job(limits, name=name), model=tiny("hybrid", HYBRID))
    check_whole(job)


def _check_hybrids(name: str, jobs: int) -> None:
    """Check the best plans of so many drawn hybrid stacks, each on a small cluster."""

    def check(model: Architecture) -> None:
        limits = SearchSpec(micro_batch=(1, 2), tp=(1, 2), cp=(1, 2))
        check_whole(replace(small_job(limits, name=name), model=model))

    drawn = given(hybrids())(check)
    seed(1)(settings(max_examples=jobs, print_blob=False, deadline=None)(drawn))()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["megatron", "torchtitan"])
def test_the_best_plan_of_a_drawn_hybrid(name: str) -> None:
    """Scans, compressed keys, layers' own inputs, experts: of any family drawn."""
    _check_hybrids(name, jobs=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_best_plans_of_many_hybrids(name: str) -> None:
    """The same on many more, and under every framework."""
    _check_hybrids(name, jobs=examples(60))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "part"), EVERY_PART)
def test_the_best_of_two_thousand_jobs(name: str, part: int) -> None:
    """The same on many more."""
    run(check_whole, name, SMALL, jobs=examples(PER_PART), part=PARTS + part)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "part"), EVERY_PART)
def test_the_best_of_thousands_of_plans(name: str, part: int) -> None:
    """A few that hardly any limit narrows."""
    run(check_whole, name, CAP, jobs=examples(8), part=2 * PARTS + part)


def in_parts(patch: pytest.MonkeyPatch) -> None:
    """Every full space is searched as a large one is: its default part first."""
    patch.setattr(default_part, "FROM_GPUS", 1)
    patch.setattr(first_tier, "PART", 3)
    patch.setattr(first_tier, "PARALLEL_FROM", 10**9)


@pytest.mark.slow
@pytest.mark.parametrize("name", PIPELINED)
def test_a_space_in_parts_has_the_same_best_plan(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the default part rules out is no better than its best plan."""
    in_parts(monkeypatch)
    run(check_answer, name, SMALL, jobs=1, part=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_many_more_spaces_in_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_parts(monkeypatch)
    run(check_answer, name, 2 * SMALL, jobs=examples(40), part=4)


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", NAMES)
def test_whenever_it_is_stopped_the_bound_is_true(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, or at any of its first visits; what it found by then is a plan."""

    @seed(0)
    @settings(max_examples=examples(25), print_blob=False)
    @given(whole_jobs(name, SMALL, ONE_IN), st.sampled_from([0, 0, 3, 10, 30, 60, 100]))
    def stopped(job: Pricing, ticks: int) -> None:
        check_hurried(job, ticks, monkeypatch)

    stopped()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_flow_returns_verified_plans_of_any_job(name: str) -> None:
    run(check_flow, name, SMALL, jobs=1, part=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_flow_of_many_more_jobs(name: str) -> None:
    run(check_flow, name, SMALL, jobs=examples(30), part=1)


def same_plans(one: SearchOutcome, other: SearchOutcome) -> bool:
    """Whether plans, splits and bound agree in every bit."""
    alike = one.ranked == other.ranked and one.bound_s == other.bound_s
    splits = zip(one.ranked, other.ranked, strict=True)
    return alike and all(np.array_equal(a.counts, b.counts) for a, b in splits)


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", NAMES)
def test_the_same_job_gives_the_same_answer(name: str) -> None:
    """Bit for bit: plans, splits, bound, and what every rule removed."""

    @settings(max_examples=examples(10))
    @given(jobs(framework(name), "llama"))
    def twice(pricing: Pricing) -> None:
        one, other = search(pricing), search(pricing)
        assert same_plans(one, other)
        assert (one.pruned, one.solved) == (other.pruned, other.solved)

    twice()


def fresh_and_after(pricing: Pricing, other: Pricing) -> list[SearchOutcome]:
    """The same search first in a process, and after another job."""
    fresh = search(pricing)
    search(other)
    return [fresh, search(pricing)]


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", NAMES)
def test_plans_do_not_depend_on_earlier_searches(name: str) -> None:
    """Bit for bit, first in a process or after another model on the same meshes."""

    @settings(max_examples=examples(15))
    @given(jobs(framework(name), "llama"), models("gpt2"))
    def after_another(pricing: Pricing, model: Architecture) -> None:
        fresh, later = fresh_and_after(pricing, replace(pricing, model=model))
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


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", NAMES)
def test_a_job_that_fits_nowhere_gets_no_plan(name: str) -> None:
    """With room for no block at all, neither finds a plan."""

    @settings(max_examples=examples(5))
    @given(jobs(framework(name), "mixtral"))
    def none_fits(pricing: Pricing) -> None:
        full = tightened(pricing, 0)
        found = search(full)
        assert not found.ranked
        assert best_of_space(*priced_space(found.pricing)) is None
        assert not found.proven

    none_fits()
