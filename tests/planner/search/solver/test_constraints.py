"""Each constraint of the inner model alone: what it admits, what it forbids."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from ortools.sat.python import cp_model as cp
from strategies import small_problem

from planner.cost.pipeline.linear import Linear
from planner.cost.pipeline.memory_rows import idle_rows
from planner.search.solver.constraints import Constraints
from planner.search.solver.variables import Variables
from planner.specs.table import EndCosts, IdleMoment, LayerCosts, StageCosts

Choice = Callable[[Constraints], None]
"""Which constraint to add."""


def admits(
    costs: StageCosts,
    add: Choice,
    layers: Sequence[int],
    counts: dict[tuple[int, int, int], int] | None = None,
    step: int | None = None,
) -> bool:
    """Whether the model with one constraint admits these values."""
    model = cp.CpModel()
    variables = Variables(model, costs, 1_000_000)
    add(Constraints(model, costs, variables))
    for variable, value in zip(variables.n, layers, strict=True):
        model.add(variable == value)
    for key, value in (counts or {}).items():
        model.add(variables.y[key] == value)
    if step is not None:
        model.add(variables.T == step)
    return cp.CpSolver().solve(model) in (cp.OPTIMAL, cp.FEASIBLE)


@pytest.mark.parametrize(
    ("layers", "legal"), [([1, 2], True), ([1, 1], False), ([2, 2], False)]
)
def test_every_layer_lies_on_one_stage(layers: list[int], legal: bool) -> None:  # noqa: FBT001
    """Three layers: 1 + 2 places them, 1 + 1 loses one, 2 + 2 doubles one."""
    add = Constraints._every_layer_on_one_stage
    assert admits(small_problem(), add, layers) is legal


def two_entries() -> StageCosts:
    layer = LayerCosts((10, 15), (20, 25), (5, 1), (1, 2), 7, 0, 0, 0, 0)
    return small_problem(menu=("none", "full"), layers=(layer,))


@pytest.mark.parametrize(("full", "legal"), [(0, True), (1, False)])
def test_layers_are_counted_by_menu_entry(full: int, legal: bool) -> None:  # noqa: FBT001
    """A stage of 2 layers: 2 + 0 by entry add up, 2 + 1 do not."""
    counts = {(1, 0, 0): 2, (1, 0, 1): full}
    add = Constraints._layers_counted_by_kind
    assert admits(two_entries(), add, [1, 2], counts) is legal


@pytest.mark.parametrize(("first", "legal"), [(1, True), (0, False), (2, False)])
def test_layers_stay_in_order(first: int, legal: bool) -> None:  # noqa: FBT001
    """One layer of kind 0, then two of kind 1: a first stage of 2 has one of each."""
    kind = small_problem().layers[0]
    costs = small_problem(runs=((0, 1), (1, 2)), layers=(kind, kind))
    add = Constraints._layers_stay_in_order
    assert admits(costs, add, [2, 1], {(0, 0, 0): first}) is legal


def test_a_kind_may_come_in_two_runs() -> None:
    """Kinds 0, 1, 0 on stages of 2 and 1: kind 0 has one layer on each."""
    kind = small_problem().layers[0]
    costs = small_problem(runs=((0, 1), (1, 1), (0, 1)), layers=(kind, kind))
    add = Constraints._layers_stay_in_order
    assert admits(costs, add, [2, 1], {(0, 0, 0): 1, (1, 0, 0): 1})
    assert not admits(costs, add, [2, 1], {(1, 0, 0): 0})


@pytest.mark.parametrize(("budget", "legal"), [(35, True), (34, False)])
def test_every_rank_fits(budget: int, legal: bool) -> None:  # noqa: FBT001
    """Two layers on rank 0, two micro-batches in flight: 2 (7 + 2 * 5) + 1 = 35."""
    add = Constraints._every_rank_fits
    assert admits(small_problem(budget=budget), add, [2, 1]) is legal


@pytest.mark.parametrize(("budget", "legal"), [(36, True), (35, False)])
def test_the_largest_transient_of_a_stage_counts(budget: int, legal: bool) -> None:  # noqa: FBT001
    """One layer under each entry: 2 * 7 + 2 (5 + 1) + max(1, 10) = 36, not 37."""
    layer = LayerCosts((10, 15), (20, 25), (5, 1), (1, 10), 7, 0, 0, 0, 0)
    costs = small_problem(menu=("none", "full"), layers=(layer,), budget=budget)
    counts = {(0, 0, 0): 1, (0, 0, 1): 1, (1, 0, 0): 1, (1, 0, 1): 0}
    assert admits(costs, Constraints._every_rank_fits, [2, 1], counts) is legal


@pytest.mark.parametrize(("budget", "legal"), [(44, True), (43, False)])
def test_the_transient_of_an_end_counts_in_place_of_a_smaller(
    budget: int,
    legal: bool,  # noqa: FBT001
) -> None:
    """The embedding's 10 stand for the layer's 1: 2 (7 + 2 * 5) + 10 = 44."""
    costs = small_problem(embedding=EndCosts(transient=10), budget=budget)
    assert admits(costs, Constraints._every_rank_fits, [2, 1]) is legal


@pytest.mark.parametrize(("budget", "legal"), [(4, True), (3, False)])
def test_an_empty_end_stage_has_no_transient_of_layers(
    budget: int,
    legal: bool,  # noqa: FBT001
) -> None:
    """Two layers on the middle two of four stages; the ends hold 4 of the head."""
    small = LayerCosts((10,), (20,), (0,), (2,), 1, 0, 0, 0, 0)
    costs = small_problem(
        pp=4,
        micro_batches=1,
        scatter_every=1,
        runs=((0, 2),),
        layers=(small,),
        head=EndCosts(static=4),
        budget=budget,
    )
    assert admits(costs, Constraints._every_rank_fits, [0, 1, 1, 0]) is legal


IDLE = {
    "layers": (IdleMoment("step", ((20,),), ((0,),)), 54),
    "largest layer": (IdleMoment("save", ((0,),), ((50,),)), 64),
    "embedding": (IdleMoment("end", ((0,),), ((0,),), embedding=60), 74),
    "beside the embedding": (
        IdleMoment("end", ((0,),), ((3,),), embedding_beside=60),
        74,
    ),
    "layers and embedding": (IdleMoment("end", ((9,),), ((0,),), embedding=40), 72),
}
"""Rank 0 has two layers of 7 blocks: 14 + 2 * 20, 14 + 50, 14 + 60, 14 + 18 + 40."""


@pytest.mark.parametrize("spare", [0, -1])
@pytest.mark.parametrize("name", IDLE)
def test_every_rank_fits_at_every_idle_moment(name: str, spare: int) -> None:
    """One moment decides at a time; a block less than it needs is too little."""
    moment, peak = IDLE[name]
    costs = small_problem(idle=(moment,), budget=peak + spare)
    add = Constraints._every_rank_fits_when_idle
    assert admits(costs, add, [2, 1]) is (spare == 0)


@pytest.mark.parametrize(("budget", "legal"), [(57, True), (56, False)])
def test_the_head_is_the_last_ranks(budget: int, legal: bool) -> None:  # noqa: FBT001
    """Rank 1 has one layer: 7 + 30 + max(5, 20) = 57; rank 0 has 2 (7) + 5."""
    moment = IdleMoment("step", ((0,),), ((5,),), head=30, head_beside=20)
    costs = small_problem(idle=(moment,), budget=budget)
    assert admits(costs, Constraints._every_rank_fits_when_idle, [2, 1]) is legal


@pytest.mark.parametrize(("full", "budget"), [(0, 36), (2, 24)])
def test_an_idle_moment_depends_on_the_recompute_of_each_layer(
    full: int, budget: int
) -> None:
    """Two layers of 7, all alike: 2 (7 + 9) + 4 = 36, or 2 (7 + 1) + 8 = 24."""
    layer = LayerCosts((10, 15), (20, 25), (5, 1), (1, 2), 7, 0, 0, 0, 0)
    moment = IdleMoment("end", ((9, 1),), ((4, 8),))
    counts = {(0, 0, 0): 2 - full, (0, 0, 1): full}
    for spare, legal in ((0, True), (-1, False)):
        costs = small_problem(
            menu=("none", "full"),
            layers=(layer,),
            idle=(moment,),
            budget=budget + spare,
        )
        add = Constraints._every_rank_fits_when_idle
        assert admits(costs, add, [2, 1], counts) is legal


def test_a_moment_below_the_states_decides_nothing() -> None:
    """Before the optimizer has states a rank holds less than in any backward."""
    moment = IdleMoment("start-up", ((-4,),), ((0,),), embedding=-1)
    costs = small_problem(idle=(moment,), budget=0)
    assert idle_rows(costs) == ()
    assert admits(costs, Constraints._every_rank_fits_when_idle, [2, 1])


@pytest.mark.parametrize(("step", "legal"), [(130, True), (129, False)])
def test_the_step_is_no_shorter_than_a_path(step: int, legal: bool) -> None:  # noqa: FBT001
    """The path 10 + 60 n_0 of the split (2, 1) is 130 ns long."""
    path = Linear(10, np.array([[[60]], [[0]]]))

    def add(constraints: Constraints) -> None:
        constraints.step_no_shorter_than(path)

    assert admits(small_problem(), add, [2, 1], step=step) is legal


def test_all_constraints_together_admit_a_legal_split_alone() -> None:
    """With room for 25 blocks, (1, 2) is the one split left of the two."""
    costs = replace(small_problem(), budget=25)
    assert admits(costs, Constraints.add_constraints, [1, 2])
    assert not admits(costs, Constraints.add_constraints, [2, 1])
    assert not admits(costs, Constraints.add_constraints, [0, 2])
