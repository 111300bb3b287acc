"""The program of one box: a pure function of its question."""

from dataclasses import dataclass

import numpy as np

from planner.cost.meshes import Ints
from planner.cost.pipeline.duration_lines import Points
from planner.cost.pipeline.linear import Linear, Lines
from planner.schedules.simulator import Path
from planner.search.bounds.boxes import (
    Box,
    is_near_whole,
    least_in_boxes,
    stages_decide,
)
from planner.search.solver.branching import stage_cut
from planner.search.solver.dual import Cuts, Descent
from planner.search.solver.program import Solution
from planner.search.stop import Stop
from planner.specs.table import StageCosts


@dataclass(frozen=True, eq=False)
class Asked:
    """A box, and all on which its answer depends."""

    costs: StageCosts
    """The inner problem."""
    paths: tuple[Path, ...]
    """Paths that the program begins with."""
    box: Box
    """The splits that count."""
    bound: int
    """A bound on them that is known already. [ns]"""
    enough: int | None
    """A bound above this is high enough. [ns]"""


@dataclass(frozen=True, eq=False)
class Solved:
    """Optimum of a box's program, and how to go on."""

    bound: int
    """Lower bound on every split of the box. [ns]"""
    solution: Solution | None
    """Optimum of the last program; None where the solver gave up at once."""
    centre: Points | None
    """Best point met, of fractional layers. [1], shape (stages, kinds, menu)"""
    least: float
    """Step of that point; inf without any. [ns]"""
    multipliers: tuple[list[Path], list[float]]
    """Paths that the bound rests on, and the weight of each. [1]"""
    kept: Box
    """Part of the box that may hold a split as fast as asked for."""
    rest: float
    """Bound on the rest of the box; inf without any. [ns]"""
    at: tuple[int, int] | None
    """Stage at which that part is cut best, and most layers of its first half. [1]"""
    paths: tuple[Path, ...]
    """Paths that the parts of the box begin with."""


def solve_box(asked: Asked, stop: Stop | None = None) -> Solved:
    """Solve the program of a box, and put aside what is slower than asked for."""
    costs, enough = asked.costs, asked.enough
    cuts = Cuts(costs, stop)
    cuts.add(list(asked.paths))
    descent = Descent(cuts, asked.box, price=asked.bound, patient=True)
    bound = max(asked.bound, descent.run(enough, known=asked.bound))
    kept, rest, at = asked.box, float("inf"), None
    if enough is not None and stages_decide(costs) and not descent.gave_up:
        kept, rest = shaved(costs, descent.proof, asked.box, enough)
        if kept.holds(costs) and not is_near_whole(costs, kept):
            at = stage_cut(descent, kept, enough)
    return Solved(
        bound=bound,
        solution=descent.solution,
        centre=descent.centre,
        least=descent.least,
        multipliers=descent.multipliers,
        kept=kept,
        rest=rest,
        at=at,
        paths=cuts.latest(),
    )


def unsolved(asked: Asked) -> Solved:
    """The answer to a question that was given up: it claims nothing new."""
    return Solved(
        bound=asked.bound,
        solution=None,
        centre=None,
        least=float("inf"),
        multipliers=([], []),
        kept=asked.box,
        rest=float("inf"),
        at=None,
        paths=asked.paths,
    )


def shaved(
    costs: StageCosts, found: tuple[Linear, int] | None, box: Box, enough: int
) -> tuple[Box, float]:
    """The box without the ends of its limits at which the bound is above enough.

    Args:
        costs: An inner problem whose stages decide.
        found: A line that is at most the weight times the step of any split of
            the box, and the weight; None without any.
        box: The box.
        enough: A bound above this rules a part out. [ns]

    Returns:
        What is left, and the least bound of the rest; inf where all is left. [ns]
    """
    least = float("inf")
    while found is not None:
        ends = _ends(box)
        there = ends.holds(costs)
        bounds = np.full(len(there), np.iinfo(np.int64).max)
        at = np.flatnonzero(there)
        bounds[at] = bounds_in(costs, found, ends.take(at))
        gone = bounds > enough
        least = min([least, *bounds[gone & there].tolist()])
        smaller = _without_ends(box, gone)
        if not smaller.holds(costs):
            return smaller, least
        if all(np.array_equal(a, b) for a, b in zip(box, smaller, strict=True)):
            break
        box = smaller
    return box, least


def bounds_in(costs: StageCosts, found: tuple[Linear, int], boxes: Box) -> Ints:
    """Bounds of several boxes by one line.

    Returns:
        Bounds. [ns], shape (boxes,)
    """
    line, whole = found
    lines = Lines.of(line)
    values = least_in_boxes(costs, lines, boxes)
    bounds: Ints = -(-values // whole)
    return bounds


def _ends(box: Box) -> Box:
    """Parts of a box with one rank or stage at its fewest, or at its most, layers.

    Fewest of each rank, most of each rank, then of each stage.
    """
    low, high, fewest, most = box
    ranks, stages = np.eye(len(low), dtype=bool), np.eye(len(fewest), dtype=bool)
    counts = 2 * len(ranks) + 2 * len(stages)
    parts = Box(*(np.tile(each, (counts, 1)) for each in box))
    start = 0
    for eye, a, b, least, largest in (
        (ranks, parts.low, parts.high, low, high),
        (stages, parts.fewest, parts.most, fewest, most),
    ):
        here = slice(start, start + len(eye))
        there = slice(here.stop, here.stop + len(eye))
        b[here] = np.where(eye, least, b[here])
        a[there] = np.where(eye, largest, a[there])
        start = there.stop
    return parts


def _without_ends(box: Box, gone: np.ndarray) -> Box:
    """A box without those of its ends that are gone, in the order of ``_ends``."""
    ranks, stages = len(box.low), len(box.fewest)
    cuts = np.cumsum([ranks, ranks, stages])
    low, high, fewest, most = np.split(gone.astype(np.int64), cuts)
    return Box(box.low + low, box.high - high, box.fewest + fewest, box.most - most)
