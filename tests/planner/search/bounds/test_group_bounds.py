"""Bounds of many candidates at once are those of each, and below the best split."""

from dataclasses import replace

import numpy as np
from every_split import cheapest_split
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from one_row import one_row_table
from strategies import inner_problems, small_problem
from test_by_cases import other_costs

from planner.cost.pipeline.linear import LayerTimes, StepTimes, lines_at, path_lines
from planner.search.bounds.bounds import relax
from planner.search.bounds.group_bounds import Group, longest, taken, times_of
from planner.search.bounds.least import least_values
from planner.search.bounds.paths import ShapePaths
from planner.search.bounds.worst import worst_step
from planner.search.solver.dual import tighten
from planner.specs.table import StageCosts


def times_from_table(costs: StageCosts) -> StepTimes:
    """The times of one problem as a search takes them from its table."""
    table, space = one_row_table(costs)
    entries = np.array([space.choices(0)])
    return times_of(costs, table, np.array([0]), entries)


def together(every: list[StageCosts]) -> StepTimes:
    """The times of several problems of one shape."""
    each = [times_from_table(costs) for costs in every]
    columns = zip(*(times.layers for times in each), strict=True)
    return StepTimes(
        layers=LayerTimes(*map(np.concatenate, columns)),
        embedding=np.concatenate([times.embedding for times in each]),
        head=np.concatenate([times.head for times in each]),
        edges=tuple(np.concatenate([t.edges[way] for t in each]) for way in (0, 1)),
        p2p=np.concatenate([times.p2p for times in each]),
        overhead=each[0].overhead,
    )


def others_of(costs: StageCosts, scale: int) -> list[StageCosts]:
    """Problems of one shape: other times, other memory, and back."""
    small = replace(costs, budget=costs.budget // 2, first_gather=costs.p2p + scale)
    return [costs, other_costs(costs, scale), small]


@given(inner_problems(), st.integers(1, 9))
def test_a_path_in_each_of_several_problems_is_the_path_in_that_problem(
    costs: StageCosts, scale: int
) -> None:
    every = others_of(costs, scale)
    paths = ShapePaths().of(costs)
    for counts, p2p in zip(paths.counts, paths.p2p, strict=True):
        found = lines_at(costs, together(every), counts[None], p2p[None]).each()
        for one, line in zip(every, found, strict=True):
            (alone,) = path_lines(one, counts[None], p2p[None]).each()
            if costs.copies == 1:
                assert line.constant == alone.constant
                assert np.array_equal(line.factors, alone.factors)


def group_of(every: list[StageCosts]) -> Group:
    """A group of problems; the keys are steps in seconds."""
    ones = np.ones(len(every))
    return Group(every[0], together(every), ones, 0 * ones, 0 * ones)


@settings(max_examples=examples(100))
@given(inner_problems(), st.integers(1, 9), st.integers(0, 2))
def test_no_bound_of_a_group_exceeds_the_best_split_of_any(
    costs: StageCosts, scale: int, teacher: int
) -> None:
    """Before the shape has taught, when its graph is known, and after lessons."""
    if costs.copies > 1:
        return
    every, shapes = others_of(costs, scale), ShapePaths()
    best, group = list(map(cheapest_split, every)), group_of(every)
    for _ in range(3):
        group.lift(shapes, float("inf"))
        assert not group.lift(shapes, float("inf"))
        for bound, split in zip(group.keys.tolist(), best, strict=True):
            assert split is None or round(bound * 1e9) <= split[0]
        tighten(every[teacher], relax(every[teacher], None, shapes), None, shapes)


@given(inner_problems(), st.integers(1, 9))
def test_a_group_is_bounded_by_all_that_bounds_one_whose_memory_is_ample(
    costs: StageCosts, scale: int
) -> None:
    if costs.copies > 1:
        return
    every, shapes = others_of(replace(costs, budget=1 << 40), scale), ShapePaths()
    tighten(every[0], relax(every[0], None, shapes), None, shapes)
    group = group_of(every[:2])
    group.lift(shapes, float("inf"))
    known = shapes.of(costs)
    for one, bound in zip(every, group.keys.tolist(), strict=False):
        sums = known.sums()
        lines = path_lines(one, sums.counts, sums.p2p)
        caps = np.full((1, one.pp), one.vpp * one.most_layers)
        steps = -(-least_values(one, lines, caps=caps) // costs.pp)
        assert round(bound * 1e9) >= steps.max()


@given(inner_problems(), st.integers(1, 9))
def test_no_path_is_longer_than_the_longest_of_a_group(
    costs: StageCosts, scale: int
) -> None:
    every = others_of(costs, scale)
    times = together(every)
    firsts, lasts = (edge.max(axis=1).tolist() for edge in times.edges)
    found = zip(every, firsts, lasts, longest(costs, times).tolist(), strict=True)
    for one, first, last, most in found:
        same = replace(one, first_gather=first, last_scatter=last)
        assert costs.copies > 1 or most >= worst_step(same)


def test_a_group_leaves_alone_what_is_slow_enough_and_sums_that_overflow() -> None:
    costs, shapes = small_problem(), ShapePaths()
    slow = group_of([costs, costs])
    slow.keys[:] = 5.0, 0.0
    assert slow.lift(shapes, 1.0)
    assert slow.keys[0] == 5.0
    assert slow.keys[1] > 0
    layer = replace(costs.layers[0], forward=(1 << 59,))
    vast = group_of([replace(costs, layers=(layer,))])
    assert vast.lift(ShapePaths(), float("inf"))
    assert vast.keys.tolist() == [0.0]
    assert taken(slow.times, np.array([1])).p2p.shape == (1,)
