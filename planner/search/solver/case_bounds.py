"""Bounds by cases of the ranks' loads, which are whole numbers of layers."""

import heapq
from dataclasses import dataclass

import numpy as np

from planner.pipeline.splits import stages_by_rank
from planner.search.bounds.paths import ShapePaths
from planner.search.bounds.rank_load_bounds import cases_of
from planner.search.solver.dual import Cuts, Descent
from planner.search.solver.program import Loads, Solution

WHOLE = 0.02
"""Distance from a whole number below which a load is not split any more. [1]"""


@dataclass(frozen=True)
class _Box:
    """A box of loads, and the program's optimum in it once it is solved."""

    loads: Loads
    solution: Solution | None = None


class LoadTree:
    """The splits of one candidate in boxes of loads, each with its own bound.

    The boxes hold every split, so the least bound over boxes is a bound on all splits.
    The first boxes come from ``last_loaded``. The last loaded rank decides most. Its
    own work counts in full, and before it come the first chunks of all ranks ahead.
    After that a box is cut in two at a rank whose load is not whole.
    """

    def __init__(self, cuts: Cuts, bound: int, shapes: ShapePaths) -> None:
        self.cuts, self.shapes = cuts, shapes
        self.boxes: list[tuple[int, int, _Box]] = []
        self.settled = float("inf")
        self.made = 0
        cases = cases_of(cuts.costs, shapes)
        for low, high, its in zip(*cases, strict=True):
            self._push(max(bound, int(its)), _Box(Loads(low, high)))

    @property
    def bound(self) -> float:
        """Lower bound on every split; inf where no box is left. [ns]."""
        least = self.boxes[0][0] if self.boxes else float("inf")
        return min(least, self.settled)

    @property
    def stuck(self) -> bool:
        """True where no box is left, or the least bound's box is not cut any more."""
        return not self.boxes or self.settled <= self.boxes[0][0]

    def refine(self, enough: int | None) -> Solution | None:
        """Solve the box with the least bound, or cut it where it is solved.

        Args:
            enough: A bound above this rules a box out. [ns]

        Returns:
            The optimum of the box that was solved, if any.
        """
        bound, _, box = heapq.heappop(self.boxes)
        if box.solution is not None:
            self._cut(bound, box, box.solution)
            return None
        descent = Descent(self.cuts, box.loads, price=bound)
        better = max(bound, descent.run(enough, known=bound))
        if descent.solution is None:
            self.settled = min(self.settled, better)
            return None
        self.shapes.teach(self.cuts.costs, *descent.multipliers())
        self._push(better, _Box(box.loads, descent.solution))
        return descent.solution

    def _push(self, bound: int, box: _Box) -> None:
        """Keep a box, unless its loads cannot add up to the model."""
        if box.loads.holds(self.cuts.costs.held_layers):
            self.made += 1
            heapq.heappush(self.boxes, (bound, self.made, box))

    def _cut(self, bound: int, box: _Box, solution: Solution) -> None:
        """Cut a box at the rank whose load is farthest from a whole number."""
        loads = rank_loads(self.cuts, solution)
        share = np.abs(loads - np.rint(loads))
        rank = int(share.argmax())
        if share[rank] < WHOLE:
            self.settled = min(self.settled, bound)
            return
        here = np.arange(len(loads)) == rank
        below = int(np.floor(loads[rank]))
        low, high = box.loads.low, box.loads.high
        self._push(bound, _Box(Loads(low, np.where(here, below, high))))
        self._push(bound, _Box(Loads(np.where(here, below + 1, low), high)))


def rank_loads(cuts: Cuts, solution: Solution) -> np.ndarray:
    """Layers of every rank at an optimum that need not be whole.

    Args:
        cuts: The candidate.
        solution: An optimum of the candidate's program.

    Returns:
        Layers. [1], shape (pp,)
    """
    by_stage = solution.counts.sum(axis=(1, 2))
    loads: np.ndarray = by_stage[stages_by_rank(cuts.costs)].sum(axis=1)
    return loads
