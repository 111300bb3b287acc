"""Bounds never exceed, and the solver equals, the best of all splits of a mesh."""

from dataclasses import replace

import pytest
from against_brute_force import check_first_tier, check_inner, space_bound
from every_split import cheapest_split, splits
from examples import examples
from hypothesis import assume, given, seed, settings
from solved import solve_mesh
from strategies import inner_problems, small_problem

from planner.cost.pipeline.splits import step_ns
from planner.search.bounds.bounds import relax
from planner.search.bounds.memory_bounds import most_layers
from planner.search.solver.dual import LayerProgram, tighten
from planner.search.solver.solve import MeshSolver, Outcome, simulate
from planner.specs.table import IdleMoment, LayerCosts, StageCosts


@settings(max_examples=examples(300))
@given(inner_problems())
def test_the_solver_equals_brute_force_and_no_bound_exceeds_it(
    costs: StageCosts,
) -> None:
    check_inner(costs)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_five_thousand_inner_problems(part: int) -> None:
    """The same on many more problems, in pieces that cores can share."""
    drawn = given(inner_problems())(check_inner)
    seed(part)(settings(max_examples=examples(5_000 // 4), print_blob=False)(drawn))()


@settings(max_examples=examples(300))
@given(inner_problems())
def test_the_first_tier_never_exceeds_nor_rules_out_the_best(costs: StageCosts) -> None:
    # several kinds under a free menu are the subject of the next test
    assume(len(costs.menu) == 1 or len(costs.layers) == 1)
    check_first_tier(costs)


def test_a_free_menu_is_bounded_by_the_cheapest_entry_of_each_kind() -> None:
    """One kind is cheapest under the first entry, the other under the second.

    (forward + backward) by entry: 2 or 6 ns, and 6 or 2 ns. On one rank one
    micro-batch takes 2 + 2 = 4 ns, while one common entry takes 8 ns.
    """
    sides = ((1, 3), (1, 3)), ((3, 1), (3, 1))
    layers = tuple(LayerCosts(*s, (0, 0), (0, 0), 1, 0, 0, 0, 0) for s in sides)
    costs = small_problem(
        pp=1,
        micro_batches=1,
        scatter_every=1,
        runs=((0, 1), (1, 1)),
        menu=("none", "full"),
        layers=layers,
    )
    best = cheapest_split(costs)
    assert best is not None
    assert best[0] == 4
    assert space_bound(costs)[0] <= best[0] / 1e9


@given(inner_problems())
def test_every_path_is_a_bound_everywhere_and_tight_where_it_is_from(
    costs: StageCosts,
) -> None:
    listed = list(splits(costs))[:40]
    steps = [step_ns(costs, split) for split in listed]
    for split, step in list(zip(listed, steps, strict=True))[:8]:
        value, cut = simulate(costs, split)
        assert value == step == cut.value(split)
        pairs = zip(listed, steps, strict=True)
        assert all(cut.value(other) <= its for other, its in pairs)


@given(inner_problems())
def test_the_cuts_of_both_bounds_hold_at_every_split(costs: StageCosts) -> None:
    cuts = tighten(costs, relax(costs)).cuts
    for split in list(splits(costs))[:40]:
        step = step_ns(costs, split)
        assert max(cut.value(split) for cut in cuts) <= step


@given(inner_problems())
def test_a_cutoff_below_the_best_is_proven_to_be_below(costs: StageCosts) -> None:
    """With a cutoff one short of the best, no split is left and the bound says so."""
    best = cheapest_split(costs)
    if best is None or best[0] == 0:
        return
    solver = MeshSolver(costs, ())
    answer = solver.advance(best[0] - 1)
    while answer.outcome is Outcome.OPEN:
        answer = solver.advance(best[0] - 1)
    assert answer.outcome in (Outcome.CUT_OFF, Outcome.SOLVED)
    assert answer.bound == best[0]


@pytest.mark.slow
@given(inner_problems())
def test_more_memory_never_makes_the_best_slower(costs: StageCosts) -> None:
    here, loose = solve_mesh(costs), solve_mesh(replace(costs, budget=1 << 40))
    assert loose.value is not None
    assert here.value is None or loose.value <= here.value


def test_a_step_of_hours_does_not_overflow_the_dual_bound() -> None:
    """Five hours in ns times the multipliers' grain has to stay within 64 bits."""
    layer = LayerCosts((5 * 10**10,), (10**11,), (1,), (0,), 1, 0, 0, 0, 0)
    costs = small_problem(layers=(layer,), micro_batches=64, scatter_every=64)
    value = solve_mesh(costs).value
    program = LayerProgram(costs)
    for cut in relax(costs).cuts:
        program.add(cut)
    program.solve()

    assert value is not None
    assert 0 <= program.exact_bound() <= value


@pytest.mark.parametrize(("budget", "most"), [(97, 3), (96, 2), (31, 0), (30, -1)])
def test_an_idle_moment_bounds_what_a_rank_can_hold(budget: int, most: int) -> None:
    """The first rank needs 30 + 1 blocks of the embedding, and 7 + 15 a layer."""
    moment = IdleMoment("step", ((15,),), ((1,),), embedding=30, embedding_beside=1)
    costs = small_problem(idle=(moment,), budget=budget, extra_layers=1)
    assert most_layers(replace(costs, budget=1000))[0] == 3
    assert most_layers(costs)[0] == most
