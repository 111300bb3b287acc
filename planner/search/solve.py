"""The exact answer for one mesh: solve, simulate, cut, until bound meets value."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from ortools.sat.python import cp_model as cp

from planner.cost.linear import Linear, path_linear
from planner.cost.pipeline import (
    Counts,
    durations,
    fits,
    graph_of,
    stage_vectors,
)
from planner.schedules.simulator import critical_path
from planner.search.bounds import even_counts
from planner.search.constraints import Constraints
from planner.search.variables import Variables
from planner.specs.table import StageCosts

ROUNDS = 60
"""Most solve-simulate-cut rounds for one mesh. [1]"""
WORK_PER_ROUND = 4.0
"""Deterministic time of one solver call, so that answers do not depend on load."""


class Outcome(StrEnum):
    """What is known of a mesh after solving it."""

    SOLVED = "solved"
    """Bound equals value."""
    CUT_OFF = "cut off"
    """Proven no better than the incumbent."""
    INFEASIBLE = "infeasible"
    """Proven to fit in no split."""
    OPEN = "open"
    """Work ran out: the bound is true, the value may not be the best."""


@dataclass(frozen=True)
class MeshAnswer:
    """Best split found for one mesh, and what is proven about all others."""

    outcome: Outcome
    bound: int
    """No split of this mesh is faster. [ns]"""
    value: int | None = None
    """Simulated step of the best split. [ns]"""
    counts: Counts | None = None
    rounds: int = 0


def simulate(costs: StageCosts, counts: Counts) -> tuple[int, Linear]:
    """Step of a split, and its critical path as a cut.

    Args:
        costs: The inner problem.
        counts: Layers by stage, kind and menu entry. [1]

    Returns:
        Makespan [ns] and a linear bound that equals it here.
    """
    x = durations(costs, stage_vectors(costs, counts))
    path = critical_path(graph_of(costs), x, costs.p2p)
    return path.value(x, costs.p2p), path_linear(costs, path)


class MeshSolver:
    """Solves one inner problem to the end.

    The operation graph is fixed, so the step is the maximum over its paths of
    linear functions of the counts. The model knows some paths; its optimum is a
    bound. The simulator finds the critical path of that optimum, which becomes
    one more cut, valid everywhere and tight there.
    """

    def __init__(
        self, costs: StageCosts, cuts: Iterable[Linear], cutoff: int | None
    ) -> None:
        self.costs = costs
        self.model = cp.CpModel()
        worst = self._worst_step()
        self.variables = Variables(self.model, costs, worst)
        self.constraints = Constraints(self.model, costs, self.variables)
        self.constraints.add_constraints()
        for cut in cuts:
            self.constraints.step_no_shorter_than(cut)
        if cutoff is not None:
            self.model.add(self.variables.T <= cutoff)
        self.cutoff = cutoff
        self.model.minimize(self.variables.T)
        self.best: tuple[int, Counts] | None = None

    def _worst_step(self) -> int:
        """Everything one after the other: no step is longer."""
        costs = self.costs
        layers = sum(
            max(f + b for f, b in zip(layer.forward, layer.backward, strict=True))
            + layer.gather + layer.scatter + layer.optimizer
            for layer in costs.layers
        )
        ends = sum(
            end.forward + end.backward + end.gather + end.scatter + end.optimizer
            for end in (costs.embedding, costs.head)
        )
        edges = 2 * costs.stages * (costs.p2p + costs.first_gather + costs.last_scatter)
        passes = costs.micro_batches + 1
        return passes * (layers * costs.layer_count + ends + edges) + 1

    def solve(self) -> MeshAnswer:
        """Run rounds until the bound meets the value.

        Returns:
            The answer; its bound is true whatever the outcome.
        """
        bound = 0
        for round_ in range(1, ROUNDS + 1):
            solver = self._solver()
            status = solver.solve(self.model)
            if status == cp.INFEASIBLE:
                return self._ruled_out(bound, round_)
            bound = max(bound, int(np.ceil(solver.best_objective_bound - 1e-6)))
            if status == cp.UNKNOWN:
                return self._open(bound, round_)
            counts = self.variables.extract(solver)
            value, cut = simulate(self.costs, counts)
            self._keep(value, counts)
            assert self.best is not None
            if self.best[0] <= bound:
                return MeshAnswer(Outcome.SOLVED, bound, *self.best, round_)
            self.constraints.step_no_shorter_than(cut)
            self.variables.hint(self.best[1])
        return self._open(bound, ROUNDS)

    def _solver(self) -> cp.CpSolver:
        """One worker, fixed seed, work counted instead of seconds."""
        solver = cp.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 0
        solver.parameters.max_deterministic_time = WORK_PER_ROUND
        return solver

    def _keep(self, value: int, counts: Counts) -> None:
        if self.best is None or value < self.best[0]:
            self.best = (value, counts)

    def _ruled_out(self, bound: int, rounds: int) -> MeshAnswer:
        """Without a cutoff nothing fits; with one, nothing is as fast."""
        if self.cutoff is None:
            return MeshAnswer(Outcome.INFEASIBLE, bound, rounds=rounds)
        bound = max(bound, self.cutoff + 1)
        if self.best is None:
            return MeshAnswer(Outcome.CUT_OFF, bound, rounds=rounds)
        return MeshAnswer(Outcome.CUT_OFF, bound, *self.best, rounds)

    def _open(self, bound: int, rounds: int) -> MeshAnswer:
        if self.best is None:
            return MeshAnswer(Outcome.OPEN, bound, rounds=rounds)
        return MeshAnswer(Outcome.OPEN, bound, *self.best, rounds)


def solve_mesh(
    costs: StageCosts,
    *,
    bound: int = 0,
    cuts: Iterable[Linear] = (),
    cutoff: int | None = None,
) -> MeshAnswer:
    """Best split of one mesh, with a proof.

    Tries the even splits first: when one meets the bound, no solver is called.

    Args:
        costs: The inner problem.
        bound: A lower bound on the step that is known already. [ns]
        cuts: Valid path inequalities that are known already. [ns]
        cutoff: Splits slower than this are of no interest. [ns]

    Returns:
        Value, bound and split.
    """
    best: tuple[int, Counts] | None = None
    found = []
    for entry in range(len(costs.menu)):
        counts = even_counts(costs, entry)
        if fits(costs, counts):
            value, cut = simulate(costs, counts)
            found.append(cut)
            if best is None or value < best[0]:
                best = (value, counts)
    if best is not None and best[0] <= bound:
        return MeshAnswer(Outcome.SOLVED, bound, *best)
    solver = MeshSolver(costs, [*cuts, *found], cutoff)
    if best is not None and (cutoff is None or best[0] <= cutoff):
        solver.best = best
        solver.variables.hint(best[1])
    return _at_least(solver.solve(), bound)


def _at_least(answer: MeshAnswer, bound: int) -> MeshAnswer:
    """Lift a solver's bound to one that was known before."""
    return MeshAnswer(
        answer.outcome,
        max(answer.bound, bound),
        answer.value,
        answer.counts,
        answer.rounds,
    )
