"""What has to hold between the search and brute force, for any problem."""

from dataclasses import replace
from itertools import islice

import numpy as np
from every_split import best_of_space, cheapest_split, splits
from one_row import one_row_table
from solved import solve_mesh
from strategies import priced_space

from planner.cost.pipeline.memory_rows import fits
from planner.cost.pipeline.splits import stages_by_rank, step_ns
from planner.cost.pricing import Pricing
from planner.search.best_first import search
from planner.search.bounds.bounds import relax, space_bounds
from planner.search.bounds.boxes import Box, stages_decide
from planner.search.bounds.deal_bounds import dealt_bound
from planner.search.bounds.memory_bounds import cannot_fit
from planner.search.bounds.paths import ShapePaths, in_class
from planner.search.bounds.rank_load_bounds import cases_of
from planner.search.candidate import CandidateWork
from planner.search.corners.lessons import corners_like
from planner.search.corners.tree import NEVER, CornerTree
from planner.search.solver.dual import known_cuts, tighten
from planner.search.solver.solve import MeshSolver, Outcome
from planner.search.solver.whole_splits import WholeSplits
from planner.specs.table import StageCosts


def space_bound(costs: StageCosts) -> tuple[float, bool]:
    """The first tier's answer for a space of this one candidate."""
    bounds = space_bounds(*one_row_table(costs))
    return float(bounds.step[0]), bool(bounds.fits[0])


def dealt(costs: StageCosts) -> float:
    """The first tier's closer look at this one candidate. [s]."""
    return float(dealt_bound(*one_row_table(costs))[0])


def check_first_tier(costs: StageCosts) -> None:
    """The first tier never exceeds the best split, nor rules it out."""
    best = cheapest_split(costs)
    bound, may_fit = space_bound(costs)
    if best is not None:
        assert may_fit
        assert max(bound, dealt(costs)) <= best[0] * costs.slowdown / 1e9


def check_inner(costs: StageCosts) -> None:
    """No tier's bound exceeds the best split, and the solver finds it."""
    best, relaxed = cheapest_split(costs), relax(costs)
    tight = tighten(costs, relaxed)
    if best is not None:
        assert relaxed.bound <= tight.bound <= best[0]
        assert not cannot_fit(costs)
    check_solver(costs, None if best is None else best[0])


def check_boxes(costs: StageCosts) -> None:
    """Boxes with a cutoff at the best split, of a problem and of others of its shape.

    What is slower than the cutoff leaves the boxes; the best split does not. The others
    have longer transfers, more memory, and larger stages.
    """
    shapes = ShapePaths()
    others = (
        replace(costs, p2p=costs.p2p + 1),
        replace(costs, budget=costs.budget * 2),
        replace(costs, extra_layers=costs.extra_layers + 1),
    )
    for each in (costs, *others, costs):
        best = cheapest_split(each)
        if best is None:
            continue
        work = CandidateWork(each, relax(each, None, shapes), shapes)
        while work.open:
            work.advance(best[0], best[0])
            assert work.bound <= best[0]
            assert work.tree is None or work.tree.bound <= best[0]
        assert work.last.outcome is Outcome.SOLVED
        assert work.last.value == best[0]
        check_left(each, shapes)


def check_whole(costs: StageCosts) -> None:
    """Whole splits of boxes of fixed loads, asked for at the steps of all of them.

    A box that is done with has no split as fast as it was asked for but those found.
    """
    by_rank = stages_by_rank(costs)
    listed = list(islice(splits(costs), 60))
    fitting = [split for split in listed if fits(costs, split)]
    if not (stages_decide(costs) and len(costs.layers) == 1) or not fitting:
        return
    loads = [split.sum(axis=(1, 2))[by_rank].sum(axis=1) for split in fitting]
    steps = np.array([step_ns(costs, split) for split in fitting])
    for load in np.unique(loads, axis=0)[:4]:
        box = Box.of(costs)._replace(low=load, high=load)
        least = steps[(np.array(loads) == load).all(axis=1)].min()
        for most in sorted({max(least - 1, 0), least, int(steps.max())}):
            cuts = known_cuts(costs, ShapePaths())
            asked = WholeSplits(cuts, box, int(most))
            assert asked.run([])
            if len(listed) < 60:
                assert asked.most + 1 == min(least, most + 1)
            if most >= least:
                assert asked.best is not None
                assert fits(costs, asked.best.counts)
                assert in_class(costs, asked.best.counts)
                held = asked.best.counts.sum(axis=(1, 2))[by_rank].sum(axis=1)
                assert (held == load).all()
                assert asked.best.value == step_ns(costs, asked.best.counts) <= least


def check_left(costs: StageCosts, shapes: ShapePaths) -> None:
    """Boxes for others of the shape hold each split once, whatever fitted before."""
    boxes = cases_of(costs, shapes).boxes
    for split in list(splits(costs))[:60] if stages_decide(costs) else []:
        stages = split.sum(axis=(1, 2))
        loads = stages[stages_by_rank(costs)].sum(axis=1)
        inside = ((boxes.low <= loads) & (loads <= boxes.high)).all(axis=1)
        inside &= ((boxes.fewest <= stages) & (stages <= boxes.most)).all(axis=1)
        assert inside.sum() == 1


def check_corners(costs: StageCosts) -> None:
    """Boxes by their corners, of a problem and of others that begin with its boxes.

    No bound exceeds the best split, which is found; and every split is in some box.
    """
    if not stages_decide(costs) or costs.hosts or costs.block:
        return
    shapes, first = ShapePaths(), costs.layers[0]
    slower = replace(first, forward=(2 * first.forward[0] + 1,))
    for each in (
        costs,
        replace(costs, p2p=2 * costs.p2p + 1),
        replace(costs, budget=costs.budget * 2),
        replace(costs, layers=(slower, *costs.layers[1:])),
    ):
        best = cheapest_split(each)
        most = None if best is None else best[0]
        tree = CornerTree(each, 0, shapes)
        while not tree.stuck:
            tree.refine(most)
            assert most is None or tree.bound <= most
        assert tree.bound == (NEVER if most is None else most)
        assert (None if tree.best is None else tree.best.value) == most
        tree.teach()
        boxes = corners_like(each, shapes)
        assert boxes is not None
        for split in islice(splits(each), 50):
            layers = split.sum(axis=(1, 2))
            inside = (boxes.fewest <= layers) & (layers <= boxes.most)
            assert inside.all(axis=1).any()


def check_solver(costs: StageCosts, value: int | None) -> None:
    """The solver proves this value [ns], or that nothing fits."""
    answer = solve_mesh(costs)
    if value is None:
        assert answer.outcome is Outcome.INFEASIBLE
        return
    assert answer.outcome is Outcome.SOLVED
    assert answer.value == answer.bound == value
    assert answer.counts is not None
    assert in_class(costs, answer.counts)
    assert step_ns(costs, answer.counts) == value
    check_cutoff(costs, value)


def check_cutoff(costs: StageCosts, value: int) -> None:
    """Splits as fast as the cutoff are still found, for they may win a tie."""
    solver = MeshSolver(costs, ())
    answer = solver.advance(value)
    while answer.outcome is Outcome.OPEN:
        answer = solver.advance(value)
    assert answer.outcome is Outcome.SOLVED
    assert answer.value == value


def check_job(pricing: Pricing) -> None:
    """The proven answer is the best of all plans, to the last bit."""
    found = search(pricing)
    best = best_of_space(*priced_space(found.pricing))
    if best is None:
        assert not found.ranked
        return
    assert found.proven
    assert found.ranked[0].step_s == best.step_s
    assert found.bound_s == best.step_s
