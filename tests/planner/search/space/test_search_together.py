"""Several variants searched together give the best of brute force over all."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from every_split import best_of_space
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import framework, jobs, priced_space, small_job, tightened

from planner.cost.pricing import Pricing
from planner.frameworks import FRAMEWORKS
from planner.job.variants import variants
from planner.search.best_first import search, search_all
from planner.search.incumbents import Found
from planner.search.outcome import SearchOutcome
from planner.search.variant import BY_BOUND, NO_FIT
from planner.specs.search import SearchSpec

NAMES = [framework.name for framework in FRAMEWORKS]
OFFLOADS: dict[str, list[Any]] = {
    "megatron": [None, True, ["none", "optimizer"], "activations"],
    "torchtitan": [None, True],
}
FEW_PLANS = 300
"""Complete plans of one variant, so that brute force can price all. [1]"""


@st.composite
def open_jobs(draw: st.DrawFn, name: str) -> Pricing:
    """A small job whose method, optimizer and offload are for the search to choose."""
    workload = draw(jobs(framework(name), "llama", FEW_PLANS))
    widened = {
        "offload": draw(st.sampled_from(OFFLOADS.get(name, [None, True]))),
        "method": draw(st.sampled_from([None, ("full", "lora")])),
        "optimizer": draw(st.sampled_from([None, ("adamw", "adamw-8bit")])),
    }
    block = workload.search.model_copy(update={**widened, "space": "default"})
    return replace(workload, search=block)


def found(outcomes: list[SearchOutcome]) -> list[Found]:
    """The listed plans of all variants, best first."""
    return sorted(plan for outcome in outcomes for plan in outcome.ranked)


def check_variants(pricing: Pricing) -> None:
    """The best step over all variants, its bound, or no plan where none fits."""
    outcomes = search_all(variants([pricing]), top=2)
    brute = [best_of_space(*priced_space(outcome.pricing)) for outcome in outcomes]
    steps = [best.step_s for best in brute if best is not None]
    bound = min(outcome.bound_s for outcome in outcomes)
    if not steps:
        assert not found(outcomes)
        assert bound == float("inf")
        return
    plans = found(outcomes)
    assert plans
    assert plans[0].step_s == bound == min(steps)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES[1:])
def test_the_best_over_variants_is_that_of_brute_force(name: str) -> None:
    """Any small job, memory from loose to none."""
    settings(max_examples=examples(25))(given(open_jobs(name))(check_variants))()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_best_over_the_variants_of_many_jobs(name: str) -> None:
    """The same on four times as many."""
    settings(max_examples=examples(100))(given(open_jobs(name))(check_variants))()


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", NAMES)
def test_a_shared_incumbent_removes_no_plan_of_the_list(name: str) -> None:
    """Apart or together: the same three best steps."""

    @settings(max_examples=examples(15))
    @given(open_jobs(name))
    def both_ways(pricing: Pricing) -> None:
        its = variants([pricing])
        apart = [plan for each in its for plan in search(each, top=3).ranked]
        together = found(search_all(its, top=3))
        assert [p.step_s for p in together] == sorted(p.step_s for p in apart)[:3]

    both_ways()


def two_frameworks() -> list[Pricing]:
    few = SearchSpec(tp=(1, 2), pp=1, cp=1, micro_batch=1)
    return [small_job(few, name=name) for name in ("megatron", "torchtitan")]


def test_a_hopeless_variant_is_never_refined() -> None:
    """All candidates of one framework are bounded above the best of the other."""
    outcomes = search_all(two_frameworks(), top=1)
    (hopeless,) = (at for at, outcome in enumerate(outcomes) if not outcome.ranked)
    assert outcomes[1 - hopeless].proven
    assert outcomes[hopeless].solved == 0
    assert outcomes[hopeless].pruned[BY_BOUND] == len(outcomes[hopeless].space)
    assert search(two_frameworks()[hopeless], top=1).ranked


def test_the_order_of_the_variants_does_not_change_the_plans() -> None:
    """Where no two plans tie, the list is the same either way round."""
    one = found(search_all(two_frameworks(), top=3))
    other = found(search_all(two_frameworks()[::-1], top=3))
    assert [plan.step_s for plan in one] == [plan.step_s for plan in other]


def test_equal_plans_of_two_variants_go_to_the_first() -> None:
    """The same job twice: every plan ties, and the first of the list wins."""
    twice = [two_frameworks()[0]] * 2
    first, second = search_all(twice, top=1)
    assert first.ranked
    assert not second.ranked


def test_a_list_holds_plans_of_several_variants() -> None:
    twice = [two_frameworks()[0]] * 2
    outcomes = search_all(twice, top=4)
    assert {plan.variant for plan in found(outcomes)} == {0, 1}
    assert len(found(outcomes)) == 4


def test_without_time_every_variant_is_open_and_none_infeasible() -> None:
    for outcome in search_all(two_frameworks(), time_limit=0.0):
        assert outcome.timed_out
        assert outcome.bound_s < float("inf")
        assert not outcome.ranked


def test_a_variant_that_fits_nowhere_leaves_the_others_to_win() -> None:
    """Room for no block under one of the two: all its candidates are ruled out."""
    megatron, torchtitan = two_frameworks()
    full, open_one = search_all([tightened(megatron, 0), torchtitan])
    assert full.pruned[NO_FIT] == full.candidates
    assert open_one.proven


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", NAMES)
def test_the_same_variants_give_the_same_answer(name: str) -> None:
    """Bit for bit, counts of every rule included."""

    @settings(max_examples=examples(5))
    @given(open_jobs(name))
    def twice(pricing: Pricing) -> None:
        one, other = (search_all(variants([pricing])) for _ in range(2))
        for a, b in zip(one, other, strict=True):
            assert (a.ranked, a.bound_s, a.pruned) == (b.ranked, b.bound_s, b.pruned)
            splits = zip(a.ranked, b.ranked, strict=True)
            assert all(np.array_equal(x.counts, y.counts) for x, y in splits)

    twice()
