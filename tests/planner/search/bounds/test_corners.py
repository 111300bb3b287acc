"""No corner of a box is slower than a split in the box, whatever the costs."""

from dataclasses import replace

import numpy as np
import pytest
from against_brute_force import check_boxes, check_corners
from every_split import cheapest_split, splits
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import inner_problems, small_problem
from test_group_bounds import group_of, others_of

from planner.cost.meshes import Ints
from planner.cost.pipeline.corners import Corners, corner_durations, kinds_within
from planner.cost.pipeline.duration_lines import DurationLines
from planner.cost.pipeline.splits import durations, stage_vectors
from planner.search.bounds.boxes import Box, stages_decide
from planner.search.bounds.paths import ShapePaths
from planner.search.corners import tree
from planner.search.corners.lessons import Cut, note_in_vain, were_in_vain
from planner.search.corners.tree import CornerTree
from planner.specs.table import StageCosts


def random_cut(costs: StageCosts, seed: int) -> Cut:
    """Limits on the layers of every stage, which some split may keep to."""
    whole, rng = Box.whole(costs), np.random.default_rng(seed)
    ends = rng.integers(whole.fewest, whole.most, (2, costs.stages), endpoint=True)
    return Cut(ends.min(axis=0)[None], ends.max(axis=0)[None])


def inside(costs: StageCosts, box: Cut) -> list[Ints]:
    """Splits of the class that lie in a box."""
    every = [split for split in splits(costs) if not costs.block]
    layers = np.array([split.sum(axis=(1, 2)) for split in every]).reshape(
        -1, costs.stages
    )
    there = ((box.fewest <= layers) & (layers <= box.most)).all(axis=1)
    return [every[at] for at in np.flatnonzero(there)]


@settings(max_examples=examples(200))
@given(inner_problems(), st.integers(0, 99))
def test_no_duration_at_a_corner_exceeds_that_of_a_split_in_the_box(
    costs: StageCosts, seed: int
) -> None:
    box = random_cut(costs, seed)
    for split in inside(costs, box):
        least = corner_durations(DurationLines.of(costs), Corners.of(costs, *box))
        x = np.array(durations(costs, stage_vectors(costs, split)))
        assert (least[:, 0] <= x).all()


@settings(max_examples=examples(200))
@given(inner_problems(), st.integers(0, 99))
def test_kinds_of_a_split_are_within_those_of_its_box(
    costs: StageCosts, seed: int
) -> None:
    box = random_cut(costs, seed)
    for split in inside(costs, box):
        kinds = split.sum(axis=2)
        all_kinds = range(len(costs.layers))
        low, _ = kinds_within(costs, all_kinds, *box, box.fewest)
        _, high = kinds_within(costs, all_kinds, *box, box.most)
        assert (low[0] <= kinds).all()
        assert (kinds <= high[0]).all()


@settings(max_examples=examples(200))
@given(inner_problems(), st.integers(0, 99))
def test_the_only_split_of_a_box_is_its_corner(costs: StageCosts, seed: int) -> None:
    every = list(splits(costs))
    split = every[seed % len(every)]
    if costs.block or len(costs.menu) > 1:
        return
    layers = split.sum(axis=(1, 2))[None]
    corner = Corners.of(costs, layers, layers)
    x = corner_durations(DurationLines.of(costs), corner)[:, 0]
    assert x.tolist() == durations(costs, stage_vectors(costs, split))


@settings(max_examples=examples(200))
@given(inner_problems())
def test_boxes_by_their_corners_hold_the_best_split(costs: StageCosts) -> None:
    check_corners(costs)


@settings(max_examples=examples(50))
@given(inner_problems())
def test_candidates_find_the_best_split_where_corners_come_first(
    costs: StageCosts,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, "FEW", 10.0)
        check_boxes(costs)


def test_what_was_in_vain_is_not_tried_again_unless_it_has_taught() -> None:
    costs, shapes = small_problem(), ShapePaths()
    assert not were_in_vain(costs, shapes)
    note_in_vain(costs, shapes)
    assert were_in_vain(costs, shapes)
    CornerTree(costs, 0, shapes).teach()
    note_in_vain(costs, shapes)
    assert not were_in_vain(costs, shapes)


def lifted(costs: StageCosts, scale: int) -> list[tuple[float, StageCosts]]:
    """Bounds of a group by the corners of one, and the problems of the group."""
    every, shapes = others_of(costs, scale), ShapePaths()
    best = cheapest_split(costs)
    own = CornerTree(costs, 0, shapes)
    while not own.stuck:
        own.refine(None if best is None else best[0])
    own.teach()
    group = group_of(every)
    group.lift(shapes, np.inf)
    return list(zip(group.keys * 1e9, every, strict=True))


@settings(max_examples=examples(100))
@given(inner_problems(), st.integers(1, 9))
def test_no_group_is_bounded_above_a_split_by_the_corners_of_one(
    costs: StageCosts, scale: int
) -> None:
    if not stages_decide(costs) or costs.hosts or costs.block:
        return
    for bound, other in lifted(costs, scale):
        best = cheapest_split(other)
        assert best is None or bound <= best[0] + 1e-3


def test_corners_see_that_some_stage_has_two_layers() -> None:
    """Seven layers on six stages: means of paths deal sixths of a layer out."""
    costs = small_problem(
        pp=3, vpp=2, schedule="interleaved", micro_batches=3, runs=((0, 7),)
    )
    costs = replace(costs, extra_layers=1)
    best, taught = cheapest_split(costs), ShapePaths()
    assert best is not None
    group = group_of([costs])
    group.lift(taught, np.inf)
    by_means = group.keys[0] * 1e9
    bounds = lifted(costs, 1)
    assert by_means < bounds[0][0] == pytest.approx(best[0])
