"""Bounds by cases and by what others of the shape have taught; splits by descent."""

from dataclasses import replace

import numpy as np
from against_brute_force import check_boxes, check_left, check_solver, check_whole
from every_split import cheapest_split, splits
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import inner_problems

from planner.cost.pipeline.linear import Lines, path_lines
from planner.cost.pipeline.memory_rows import fits
from planner.cost.pipeline.splits import stages_by_rank, step_ns
from planner.search.bounds import rank_load_bounds as loaded
from planner.search.bounds.bounds import relax
from planner.search.bounds.boxes import (
    Box,
    Sorted,
    least_in_boxes,
    stages_decide,
    trimmed,
)
from planner.search.bounds.paths import ShapePaths, even_counts, in_class
from planner.search.bounds.rank_load_bounds import cases_of, last_loaded, weighted_bound
from planner.search.candidate import CandidateWork
from planner.search.solver.branching import halves
from planner.search.solver.case_bounds import LoadTree
from planner.search.solver.dual import known_cuts, tighten
from planner.search.solver.local import Descender, rounded
from planner.search.solver.solve import Outcome
from planner.specs.table import StageCosts


def other_costs(costs: StageCosts, scale: int) -> StageCosts:
    """A problem of the same shape with other times."""
    layers = [
        replace(
            layer,
            forward=tuple(scale * time + 1 for time in layer.forward),
            backward=tuple(time + scale + layer.weight for time in layer.backward),
        )
        for layer in costs.layers
    ]
    return replace(costs, layers=tuple(layers), p2p=costs.p2p + scale)


@given(inner_problems(), st.integers(1, 9))
def test_what_one_problem_teaches_bounds_every_other_of_its_shape(
    costs: StageCosts, scale: int
) -> None:
    shapes, other = ShapePaths(), other_costs(costs, scale)
    tighten(costs, relax(costs), None, shapes)
    best = cheapest_split(other)
    if best is not None:
        assert weighted_bound(other, shapes) <= best[0]
        assert cases_of(other, shapes).bound <= best[0]
        assert relax(other, None, shapes).bound <= best[0]


@given(inner_problems())
def test_the_boxes_of_the_last_loaded_rank_hold_every_split(costs: StageCosts) -> None:
    by_rank = stages_by_rank(costs)
    whole = loaded.most_layers(costs)
    low = np.array(costs.fewest)[by_rank].sum(axis=1)
    _, fewest, most = last_loaded(costs, low, whole)
    for split in list(splits(costs))[:60]:
        if fits(costs, split):
            loads = split.sum(axis=(1, 2))[by_rank].sum(axis=1)
            inside = ((loads >= fewest) & (loads <= most)).all(axis=1)
            assert inside.sum() == 1


@given(inner_problems(), st.data())
def test_two_halves_of_a_box_hold_every_split_once(
    costs: StageCosts, data: st.DataObject
) -> None:
    """Cut at a rank or at a stage."""
    ends = data.draw(st.sampled_from([(0, 1), (2, 3)]))
    at = data.draw(st.integers(0, (costs.pp, costs.stages)[ends[0] // 2] - 1))
    parts = halves(Box.whole(costs), ends, at, data.draw(st.integers(0, 4)))
    for split in list(splits(costs))[:60]:
        stages = split.sum(axis=(1, 2))
        loads = stages[stages_by_rank(costs)].sum(axis=1)
        inside = [
            (loads >= low).all()
            and (loads <= high).all()
            and (stages >= fewest).all()
            and (stages <= most).all()
            for low, high, fewest, most in parts
        ]
        assert sum(inside) == 1


def check_tree(costs: StageCosts) -> None:
    """Cut boxes until none is left to cut: the least bound stays below the best."""
    shapes, best = ShapePaths(), cheapest_split(costs)
    found = tighten(costs, relax(costs), None, shapes)
    tree = LoadTree(found.pool, found.bound, shapes)
    for _ in range(30):
        assert best is None or tree.bound <= best[0]
        if tree.stuck:
            break
        tree.refine(None)
    assert best is None or tree.bound <= best[0]


@settings(max_examples=examples(60))
@given(inner_problems())
def test_no_bound_by_cases_exceeds_the_best_split(costs: StageCosts) -> None:
    check_tree(costs)


@settings(max_examples=examples(60))
@given(inner_problems())
def test_a_box_that_is_looked_at_is_bounded_by_every_known_path(
    costs: StageCosts,
) -> None:
    if not stages_decide(costs):
        return
    shapes = ShapePaths()
    tree = LoadTree(known_cuts(costs, shapes), 0, shapes)
    known = shapes.of(costs)
    for path in path_lines(costs, known.counts, known.p2p).each():
        tree.refine(None)
        for bound, _, node in tree.nodes:
            least = least_in_boxes(costs, Lines.of(path), node.kept.take(None))
            assert not node.learned or bound >= least[0]
        if tree.stuck:
            break


@given(inner_problems())
def test_a_descent_ends_in_a_split_that_fits_no_worse_than_its_starts(
    costs: StageCosts,
) -> None:
    pool = tighten(costs, relax(costs)).pool
    starts = [even_counts(costs, entry) for entry in range(len(costs.menu))]
    found = Descender(pool).run(starts)
    legal = [s for s in starts if in_class(costs, s) and fits(costs, s)]
    assert (found is None) == (not legal)
    if found is not None:
        assert in_class(costs, found.counts)
        assert fits(costs, found.counts)
        assert found.value == step_ns(costs, found.counts)
        assert found.value <= min(step_ns(costs, split) for split in legal)


@given(inner_problems(), st.integers(0, 20))
def test_rounding_keeps_whole_splits_and_the_layers_of_others(
    costs: StageCosts, pick: int
) -> None:
    listed = list(splits(costs))[:40]
    one, two = listed[pick % len(listed)], listed[-1]
    assert all(split.sum() == one.sum() for split in rounded(costs, (one + two) / 2))
    if fits(costs, one):
        assert any(np.array_equal(split, one) for split in rounded(costs, one * 1.0))


@settings(max_examples=examples(40))
@given(inner_problems())
def test_a_candidate_visited_to_its_end_has_the_answer_of_the_solver(
    costs: StageCosts,
) -> None:
    work = CandidateWork(costs, relax(costs), ShapePaths())
    best = cheapest_split(costs)
    while work.open:
        work.advance(None)
    if best is None:
        assert work.last.outcome is Outcome.INFEASIBLE
    else:
        assert work.last.outcome is Outcome.SOLVED
        assert work.last.value == work.last.bound == best[0]
    check_solver(costs, None if best is None else best[0])


@given(inner_problems(), st.integers(0, 5))
def test_no_split_in_a_box_is_below_the_least_value_in_it(
    costs: StageCosts, pick: int
) -> None:
    """And some split of the box, dealt out without regard to memory, has that value."""
    if not stages_decide(costs):
        return
    whole = Box.of(costs)
    listed = [split.sum(axis=(1, 2)) for split in list(splits(costs))[:60]]
    chosen = listed[pick % len(listed)]
    box = whole._replace(fewest=np.minimum(chosen, 1), high=whole.high * 0 + 99)
    kinds = np.arange(len(costs.layers))[:, None] * (pick - 2)
    prices = np.arange(costs.stages)[::-1].reshape(1, -1, 1, 1) * (kinds + 7) + pick
    least = least_in_boxes(costs, Lines(np.array([3]), prices), box.take(None))
    every = list(splits(costs))[:60]
    inside = [s for s in every if (s.sum(axis=(1, 2)) >= box.fewest).all()]
    values = [3 + int((s * prices[0]).sum()) for s in inside]
    assert int(least[0]) <= min(values)
    if len(listed) < 60 and len(costs.layers) == 1:
        assert int(least[0]) == min(values)


@settings(max_examples=examples(60))
@given(inner_problems(), st.integers(1, 9))
def test_the_boxes_of_one_candidate_bound_every_other_of_its_shape(
    costs: StageCosts, scale: int
) -> None:
    """With a cutoff at the best split, whose boxes lose what is slower."""
    best, shapes = cheapest_split(costs), ShapePaths()
    work = CandidateWork(costs, relax(costs, None, shapes), shapes)
    while work.open:
        work.advance(best and best[0], best and best[0])
    other = other_costs(costs, scale)
    least = cheapest_split(other)
    if least is not None:
        assert cases_of(other, shapes).bound <= least[0]
        again = CandidateWork(other, relax(other, None, shapes), shapes)
        while again.open:
            again.advance(None)
        assert again.last.value == again.last.bound == least[0]


@given(inner_problems(), st.integers(0, 40), st.integers(0, 5))
def test_a_trimmed_box_loses_no_split_faster_than_the_bound_on_what_it_lost(
    costs: StageCosts, pick: int, spare: int
) -> None:
    """Cutoffs are at the steps of splits; boxes are around a split, or around all."""
    if not stages_decide(costs):
        return
    by_rank = stages_by_rank(costs)
    listed = [s for s in list(splits(costs))[:60] if fits(costs, s)]
    steps = [step_ns(costs, split) for split in listed]
    loads = [split.sum(axis=(1, 2))[by_rank].sum(axis=1) for split in listed]
    box = Box.of(costs)
    if listed and spare:
        here = loads[pick % len(loads)]
        low, high = np.maximum(box.low, here - spare), np.minimum(box.high, here)
        box = box._replace(low=low, high=high + spare // 2)
    known = ShapePaths().of(costs)
    lines = path_lines(costs, known.counts, known.p2p)
    enough = steps[pick % len(steps)] if steps else pick
    prices = Sorted.of(costs, lines)
    kept, least = trimmed(costs, box, lines, known.rank, enough, prices)
    holds = bool(kept.holds(costs))
    for load, step in zip(loads, steps, strict=True):
        if ((box.low <= load) & (load <= box.high)).all():
            left = holds and bool(((kept.low <= load) & (load <= kept.high)).all())
            assert left or step >= least > enough


@settings(max_examples=examples(60))
@given(inner_problems())
def test_boxes_cut_off_at_the_best_split_keep_it(costs: StageCosts) -> None:
    check_boxes(costs)


@settings(max_examples=examples(60))
@given(inner_problems())
def test_whole_splits_of_a_box_are_found_or_ruled_out(costs: StageCosts) -> None:
    check_whole(costs)


@settings(max_examples=examples(200))
@given(inner_problems(), st.integers(0, 3))
def test_the_boxes_that_a_candidate_leaves_hold_every_split_of_the_class(
    costs: StageCosts, pick: int
) -> None:
    """Those too that fit the memory of another candidate alone."""
    if not stages_decide(costs):
        return
    listed, shapes = list(splits(costs))[:60], ShapePaths()
    tight = replace(costs, budget=costs.budget * (pick + 1) // 4)
    for each in (tight, costs, tight):
        work = CandidateWork(each, relax(each, None, shapes), shapes)
        goal = step_ns(each, listed[pick % len(listed)])
        while work.open and not work.needs_solver:
            work.advance(goal, goal)
        check_left(each, shapes)
