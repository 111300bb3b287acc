"""Stage at which a box is cut in two: its cut raises the bounds of both parts most."""

import numpy as np

from planner.search.bounds.boxes import Box
from planner.search.solver.dual import WHOLE, Descent
from planner.search.solver.program import LayerProgram

TRIED = 4
"""Stages at which a box is cut for a try, ours. [1]"""
LEAST_GAIN = 1e-7
"""Share of a step that each side of a cut is taken to gain at least, ours. [1]"""


def parted(box: Box, end: int, at: int, limit: int) -> Box:
    """Limit the layers of one rank or stage."""
    column = box[end].copy()
    column[at] = limit
    return Box(*(column if place == end else each for place, each in enumerate(box)))


def halves(box: Box, ends: tuple[int, int], at: int, below: int) -> tuple[Box, Box]:
    """Cut a box in two."""
    fewest, most = ends
    return parted(box, most, at, below), parted(box, fewest, at, below + 1)


def stage_cut(descent: Descent, box: Box, enough: int | None) -> tuple[int, int] | None:
    """Try the stages whose layers are least whole, by the program's value in each half.

    The program keeps its paths, so a try takes a few pivots. The choice decides how
    many boxes there are; no bound rests on it.

    Args:
        descent: Program of a candidate whose stages decide, solved.
        box: Part of the descent's box that is left.
        enough: A bound above this rules a half out. [ns]

    Returns:
        Stage and most layers of the first half; None where nothing is to be chosen.
        [1]
    """
    solution = descent.solution
    if solution is None or not descent.loads_are_whole:
        return None
    layers = solution.counts.sum(axis=(1, 2))
    distance = np.abs(layers - np.rint(layers))
    share = np.where(box.fewest < box.most, distance, 0.0)
    tried = [s for s in np.argsort(-share, kind="stable") if share[s] >= WHOLE][:TRIED]
    best, chosen = -1.0, None
    for stage in map(int, tried if len(tried) > 1 else ()):
        if descent.cuts.stop.reached:
            break
        below = int(np.clip(layers[stage], box.fewest[stage], box.most[stage] - 1))
        parts = halves(box, (2, 3), stage, below)
        gain = _gain(descent.program, parts, solution.step, enough)
        if gain > best:
            best, chosen = gain, (stage, below)
    return chosen


def _gain(
    program: LayerProgram, parts: tuple[Box, Box], step: float, enough: int | None
) -> float:
    """Product of what the program gains in each half, up to enough. [ns2]."""
    gain, most = 1.0, float("inf") if enough is None else enough
    for part in parts:
        found = most
        if part.holds(program.costs):
            found = min(most, program.least_within(part))
        gain *= max(found - step, LEAST_GAIN * step)
    return gain
