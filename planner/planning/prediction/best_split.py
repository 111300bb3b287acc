"""The best stages of one layout, whatever it leaves open, within a limit of work."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.search.bounds.bounds import relax
from planner.search.bounds.paths import ShapePaths
from planner.search.candidate import CandidateWork
from planner.search.mesh_answer import Outcome
from planner.search.solver.local import Split
from planner.search.stop import Stop
from planner.specs.table import StageCosts

WORK = 8.0
"""Most work on the problems of one layout. [1]

Work is counted, not timed, so that answers do not depend on the load. A unit is about
a second of a core.
"""
SOLVER, STEP = 4.0, 4e-5
"""Work of a unit of the solver's deterministic time, and of another step of a problem
by the square of its stages, ours. [1]"""


@dataclass(frozen=True)
class BestSplits:
    """Fastest split found of each problem, and what is known of all others."""

    found: tuple[Split | None, ...]
    """Split by problem; none where none fits, or was found. [-]"""
    bound: float
    """Lower bound on the step of every split of every problem, straggler factor
    included; inf where no split fits. [ns]"""


class _Problem:
    """One inner problem, closed by the search's own steps or by rounds of the solver.

    Either closes problems at once that the other takes minutes for. So both get equal
    work.
    """

    def __init__(self, costs: StageCosts, shapes: ShapePaths, stop: Stop) -> None:
        self.costs, self.stop = costs, stop
        self.work = CandidateWork(costs, relax(costs, None, shapes), shapes, stop)
        self.by_solver, self.by_steps = 0.0, 0.0

    @property
    def split(self) -> Split | None:
        return self.work.split

    @property
    def step(self) -> float:
        """Step of the best split; inf without any. [ns]."""
        split = self.split
        return float("inf") if split is None else split.value * self.costs.slowdown

    @property
    def bound(self) -> float:
        """Lower bound on every split; inf where none fits. [ns]."""
        outcome = self.work.last.outcome
        none = outcome is Outcome.INFEASIBLE and self.split is None
        return float("inf") if none else self.work.bound * self.costs.slowdown

    def may_beat(self, step: float) -> bool:
        """Tell if splits are left that may be faster than a step [ns]."""
        return self.work.open and self.bound < step

    def advance(self, step: float) -> float:
        """Do one step; splits slower than *step* [ns] are of no interest. [1]."""
        slowdown, before = self.costs.slowdown, self.work.spent
        most = None if step == float("inf") else int(step / slowdown) + 1
        if self.work.needs_solver or self.by_solver < self.by_steps:
            self.work.solve(most)
            spent = SOLVER * (self.work.spent - before) + STEP
            self.by_solver += spent
        else:
            self.work.advance(most, most)
            spent = STEP * self.costs.stages**2
            self.by_steps += spent
        return spent


def best_splits(
    problems: Sequence[StageCosts], stop: Stop, work: float = WORK
) -> BestSplits:
    """Find the fastest split over several problems, until it is proven or work is done.

    The problem with the least bound comes next. Splits slower than the best of any
    problem are of no interest, so only the fastest of the splits is sure to be best.
    """
    shapes = ShapePaths()
    made = {costs: _Problem(costs, shapes, stop) for costs in dict.fromkeys(problems)}
    best, left = min((its.step for its in made.values()), default=float("inf")), work
    while left > 0 and not stop.reached:
        open_ = [its for its in made.values() if its.may_beat(best)]
        if not open_:
            break
        first = min(open_, key=lambda its: its.bound)
        left -= first.advance(best)
        best = min(best, first.step)
    bound = min((min(its.bound, its.step) for its in made.values()), default=best)
    found = tuple(made[costs].split for costs in problems)
    return BestSplits(found, min(bound, best))
