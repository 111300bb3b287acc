"""The exact answer for one mesh: solve, simulate, cut, until bound meets value."""

from collections.abc import Iterable

import numpy as np
from ortools.sat.python import cp_model as cp

from planner.cost.pipeline.linear import Linear, path_linear
from planner.cost.pipeline.memory_rows import fits
from planner.cost.pipeline.splits import (
    Counts,
    durations,
    graph_of,
    stage_vectors,
)
from planner.schedules.simulator import critical_path
from planner.search.bounds.paths import even_counts, in_class
from planner.search.bounds.worst import worst_step
from planner.search.mesh_answer import ROUNDS, MeshAnswer, Outcome
from planner.search.solver.constraints import Constraints
from planner.search.solver.engine import answered, engine
from planner.search.solver.variables import Variables
from planner.search.stop import Stop
from planner.specs.table import StageCosts

WORK = (0.3, 8.0)
"""Deterministic time of a solver call, from the first to the longest. [1]

Counted in work, not seconds, so that answers do not depend on the load.
"""
MOST, EXACT = 2**61, 2**53
"""Longest step that the solver has numbers for: 73 years. Longest step up to which the
solver's floating-point bound is exact: 104 days. [ns]"""


def simulate(costs: StageCosts, counts: Counts) -> tuple[int, Linear]:
    """Step of a split, and its critical path as a cut.

    Returns:
        Makespan [ns], and a linear bound that equals the makespan at the split.
    """
    x = durations(costs, stage_vectors(costs, counts))
    path = critical_path(graph_of(costs), x, costs.p2p)
    return path.value(x, costs.p2p), path_linear(costs, path)


class MeshSolver:
    """Closes one inner problem, a round at a time.

    The operation graph is fixed, so the step is the maximum over its paths of
    linear functions of the counts. The model knows some paths; its optimum is a
    bound. The simulator finds the critical path of that optimum. The path becomes
    another cut, valid everywhere and tight at the optimum.
    """

    def __init__(
        self,
        costs: StageCosts,
        cuts: Iterable[Linear],
        *,
        bound: int = 0,
        stop: Stop | None = None,
    ) -> None:
        self.costs, self.stop = costs, stop or Stop()
        self.bound = bound
        self.rounds = 0
        self.work = WORK[0]
        self.spent = 0.0
        self.cutoff: int | None = None
        self.best: tuple[int, Counts] | None = None
        self.model = cp.CpModel()
        self.variables = Variables(self.model, costs, min(worst_step(costs), MOST))
        self.constraints = Constraints(self.model, costs, self.variables)
        self.constraints.add_constraints()
        for cut in cuts:
            self.constraints.step_no_shorter_than(cut)
        self.model.minimize(self.variables.T)
        self._try_even_splits()

    def _try_even_splits(self) -> None:
        """Start from the even split of every menu entry that fits."""
        for entry in range(len(self.costs.menu)):
            counts = even_counts(self.costs, entry)
            if in_class(self.costs, counts) and fits(self.costs, counts):
                self.learn(counts)

    def learn(self, counts: Counts) -> None:
        """Simulate a split: keep it if best, and cut at its critical path.

        Args:
            counts: Layers by stage, kind and menu entry; they fit. [1]
        """
        value, cut = simulate(self.costs, counts)
        if self.best is None or value < self.best[0]:
            self.best = (value, counts)
        self.constraints.step_no_shorter_than(cut)

    def advance(self, cutoff: int | None) -> MeshAnswer:
        """Run one round.

        Args:
            cutoff: Splits slower than this are of no interest; never grows from
                one call to the next. [ns]

        Returns:
            Bound and best split so far; OPEN while rounds may still help.
        """
        if self.best is not None and self.best[0] <= self.bound:
            return self._answer(Outcome.SOLVED)
        self._cut_off(cutoff)
        self.rounds += 1
        solver = engine(self.work)
        if self.best is not None:
            self.variables.hint(self.best[1])
        status = answered(solver, self.model, self.stop)
        self.spent += solver.response_proto.deterministic_time
        if status == cp.INFEASIBLE:
            return self._ruled_out()
        if status == cp.MODEL_INVALID:
            # The model's sums would overflow 64 bits: no round can add anything.
            self.rounds = ROUNDS
            return self._answer(Outcome.OPEN)
        self.bound = max(self.bound, _whole_bound(solver.best_objective_bound))
        if status != cp.OPTIMAL:
            self.work = min(2 * self.work, WORK[1])
        if status != cp.UNKNOWN:
            self.learn(self.variables.extract(solver))
        solved = self.best is not None and self.best[0] <= self.bound
        return self._answer(Outcome.SOLVED if solved else Outcome.OPEN)

    def _cut_off(self, cutoff: int | None) -> None:
        if cutoff is not None and (self.cutoff is None or cutoff < self.cutoff):
            self.cutoff = cutoff
            self.model.add(self.variables.T <= cutoff)

    def _ruled_out(self) -> MeshAnswer:
        """Without a cutoff nothing fits; with one, nothing is as fast."""
        if self.cutoff is None:
            return self._answer(Outcome.INFEASIBLE)
        self.bound = max(self.bound, self.cutoff + 1)
        return self._answer(Outcome.CUT_OFF)

    def _answer(self, outcome: Outcome) -> MeshAnswer:
        value, counts = self.best if self.best is not None else (None, None)
        return MeshAnswer(outcome, self.bound, value, counts, self.rounds)


def _whole_bound(bound: float) -> int:
    """Round a bound on a whole number up, where it is fine enough for that. [ns]."""
    if bound < EXACT:
        return int(np.ceil(bound - 1e-6))
    return int(np.nextafter(bound, 0.0))
