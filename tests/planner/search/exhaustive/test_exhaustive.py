"""Brute force lists every split once, and counts them without listing."""

import pytest
from every_split import (
    TooManyPlansError,
    best_of_space,
    candidate_costs,
    cheapest_split,
    count_plans,
    splits,
)
from hypothesis import given
from one_row import one_row_table
from strategies import inner_problems, small_job, small_problem

from planner.cost.pipeline.splits import step_ns
from planner.cost.table.table import fill_table
from planner.search.bounds.columns import columns_of
from planner.search.bounds.paths import in_class
from planner.search.space.space import enumerate_space
from planner.specs.search import SearchSpec
from planner.specs.table import LayerCosts, StageCosts


def test_three_layers_on_two_stages_split_two_ways() -> None:
    """At most 2 a stage: 1 + 2 and 2 + 1."""
    layers = [split.ravel().tolist() for split in splits(small_problem())]
    assert layers == [[1, 2], [2, 1]]
    assert count_plans(small_problem()) == 2


def test_an_end_stage_may_be_empty_and_a_middle_one_not() -> None:
    """Two layers on four stages: only the ends may hold none."""
    costs = small_problem(pp=4, runs=((0, 2),), micro_batches=4)
    assert [split.ravel().tolist() for split in splits(costs)] == [[0, 1, 1, 0]]


def test_the_full_class_has_one_more_layer_a_stage() -> None:
    """At most 3 a stage: also 0 + 3 and 3 + 0."""
    assert count_plans(small_problem(extra_layers=1)) == 4


def test_the_default_class_has_one_more_layer_on_single_long_stages() -> None:
    """Eight layers: two ranks may hold 4 + 4 or 5 + 3, four ranks two layers each."""
    job = small_job(SearchSpec(tp=1, cp=1), config={"num_hidden_layers": 8})
    space = enumerate_space(job)
    table = fill_table(job, space.meshes, space.recompute)
    problems = [candidate_costs(table, space, at) for at in range(len(space))]
    most = {(costs.pp, costs.vpp): costs.most_layers for costs in problems}
    assert (most[2, 1], most[2, 2], most[4, 1]) == (5, 2, 2)
    assert most[1, 1] == 8
    told = columns_of(table, space).most.tolist()
    assert told == [costs.most_layers for costs in problems]


def test_a_menu_multiplies_the_splits() -> None:
    """N alike layers under two kinds: n + 1 ways; (1, 2) and (2, 1) give 6 each."""
    layer = LayerCosts((1, 2), (1, 2), (3, 1), (0, 0), 1, 0, 0, 0, 0)
    assert count_plans(small_problem(menu=("none", "full"), layers=(layer,))) == 12


def test_the_cheapest_of_three_layers_is_worked_out_by_hand() -> None:
    """Rank 0 with 2 layers is never idle but for 10 ns: 2 * 60 + 10 = 130 ns.

    With 1 layer it waits for rank 1 at both ends: 10 + 2 * 60 + 20 = 150 ns.
    """
    found = cheapest_split(small_problem())
    assert found is not None
    assert (found[0], found[1].ravel().tolist()) == (130, [2, 1])


def test_memory_may_leave_only_the_slower_split() -> None:
    """Rank 0 holds two micro-batches: 2 layers need 2 (7 + 2 * 5) + 1 = 35 blocks.

    Rank 1 holds one: 2 layers need 2 (7 + 5) + 1 = 25, so 25 admits (1, 2) alone,
    and 24 nothing.
    """
    found = cheapest_split(small_problem(budget=25))
    assert found is not None
    assert (found[0], found[1].ravel().tolist()) == (150, [1, 2])
    assert cheapest_split(small_problem(budget=24)) is None


@given(inner_problems())
def test_splits_are_counted_legal_and_different(costs: StageCosts) -> None:
    listed = list(splits(costs))
    assert len(listed) == count_plans(costs)
    assert len({split.tobytes() for split in listed}) == len(listed)
    assert all(in_class(costs, split) for split in listed)
    assert all(split.sum() == costs.layer_count for split in listed)


@given(inner_problems())
def test_a_space_of_one_candidate_is_its_inner_problem(costs: StageCosts) -> None:
    found, alone = best_of_space(*one_row_table(costs)), cheapest_split(costs)
    assert (found is None) == (alone is None)
    if found is not None and alone is not None:
        assert found.step_s == alone[0] * costs.slowdown / 1e9
        assert step_ns(costs, found.counts) == alone[0]


def test_a_large_space_is_refused_with_both_numbers() -> None:
    workload = small_job(SearchSpec(cp=1, tp=1))
    space = enumerate_space(workload)
    table = fill_table(workload, space.meshes, space.recompute)
    with pytest.raises(TooManyPlansError, match=r"[\d,]+ complete plans .* at most 10"):
        best_of_space(table, space, cap=10)
