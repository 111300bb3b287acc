"""One candidate between two visits of the search."""

from planner.search.bounds import Relaxation
from planner.search.dual import tighten
from planner.search.solve import MeshAnswer, MeshSolver
from planner.specs.table import StageCosts

TIGHT = 3
"""Empty places in the balanced class up to which the solver closes at once. [1]"""


class CandidateWork:
    """What is known of one candidate between two visits."""

    def __init__(self, costs: StageCosts, relaxed: Relaxation) -> None:
        self.costs = costs
        self.relaxed = relaxed
        self.tightened = False
        self.solver: MeshSolver | None = None

    @property
    def bound(self) -> int:
        """Best lower bound so far. [ns]."""
        return self.relaxed.bound

    def tightens(self) -> bool:
        """Whether choosing path weights is still to be done, and worth it.

        Where nearly every place is taken, the loaded ranks already say it all.
        """
        costs = self.costs
        empty = costs.stages * costs.most_layers - costs.layer_count
        return not self.tightened and (empty > TIGHT or len(costs.menu) > 1)

    def tighten(self) -> int:
        """Choose the best path weights.

        Returns:
            The better bound. [ns]
        """
        self.tightened = True
        self.relaxed = tighten(self.costs, self.relaxed)
        return self.relaxed.bound

    def advance(self, cutoff: int | None) -> MeshAnswer:
        """Run one round of the solver.

        Args:
            cutoff: Splits slower than this are of no interest. [ns]

        Returns:
            What is known now.
        """
        if self.solver is None:
            cuts, bound = self.relaxed.cuts, self.relaxed.bound
            self.solver = MeshSolver(self.costs, cuts, bound=bound)
        return self.solver.advance(cutoff)
