"""A class of one split is answered by simulating it, as the solver would answer."""

from dataclasses import replace

import pytest
from every_split import cheapest_split, splits
from hypothesis import given
from strategies import inner_problems, small_problem

from planner.search.mesh_answer import Outcome
from planner.search.solver.only import OnlySplit, only_split
from planner.search.solver.solve import MeshSolver
from planner.specs.table import StageCosts


@given(inner_problems())
def test_it_is_found_where_the_class_holds_no_other(costs: StageCosts) -> None:
    listed = [split.tolist() for split in splits(replace(costs, block=0))]
    only = only_split(costs)
    assert ([] if only is None else [only.tolist()]) == listed * (len(listed) == 1)


def tight(budget: int = 1 << 40) -> StageCosts:
    """Six layers and two ends on eight stages of one unit."""
    return small_problem(pp=8, runs=((0, 6),), budget=budget)


@pytest.mark.parametrize("late", [-1, 0, 1])
def test_the_answer_is_the_solvers(late: int) -> None:
    costs, best = tight(), cheapest_split(tight())
    only = only_split(costs)
    assert best is not None
    assert only is not None
    here = OnlySplit(costs, only).advance(best[0] - late)
    solver = MeshSolver(costs, ()).advance(best[0] - late)
    assert here.outcome is solver.outcome
    assert here.outcome is (Outcome.CUT_OFF if late > 0 else Outcome.SOLVED)
    assert here.value == here.bound == solver.bound == best[0]


def test_nothing_fits_where_the_split_does_not() -> None:
    only = only_split(tight(budget=0))
    assert only is not None
    assert OnlySplit(tight(budget=0), only).advance(None).outcome is Outcome.INFEASIBLE
