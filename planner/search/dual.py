"""Path bounds with the best weights: a linear program, made exact again.

The program lets layers be split. Its multipliers are then rounded to integers
and the Lagrangian is minimised over whole layers, so that the bound does not
rest on floating point.
"""

import numpy as np
from ortools.linear_solver import pywraplp

from planner.cost.linear import Linear, Lines, end_transient, path_linear, peak_linear
from planner.cost.pipeline import (
    Counts,
    durations,
    graph_of,
    peak_vectors,
    stage_vectors,
    stages_of,
)
from planner.cost.reach import reach_of
from planner.schedules.simulator import critical_path
from planner.search.bounds import Relaxation, least_values
from planner.specs.table import StageCosts

ROUNDS = 12
"""Most programs solved for one candidate. [1]"""
GRAIN = 1 << 14
"""Multipliers are rounded to this fraction of one. [1]"""
SAFE = 2.0**62
"""Largest sum that 64-bit integers hold with room to spare. [1]"""
CLOSE = 1e-5
"""Relative gap between program and simulator at which rounds end. [1]"""


class LayerProgram:
    """min T over fractional counts: paths, memory, and the balanced class."""

    def __init__(self, costs: StageCosts) -> None:
        self.costs = costs
        self.solver = pywraplp.Solver.CreateSolver("GLOP")
        inf = self.solver.infinity()
        self.step = self.solver.NumVar(0, inf, "T")
        shape = (costs.stages, len(costs.layers), len(costs.menu))
        self.keys = list(np.ndindex(*shape))
        reach = reach_of(costs).mask
        self.counts = [
            self.solver.NumVar(
                0, float(costs.most_layers * reach[i, k]), f"{i},{k},{r}"
            )
            for i, k, r in self.keys
        ]
        self.cuts: list[tuple[Linear, pywraplp.Constraint]] = []
        self.rooms: list[tuple[Linear, pywraplp.Constraint]] = []
        self._totals()
        self._rooms()
        self.solver.Minimize(self.step)

    def _totals(self) -> None:
        """Every kind's layers are placed; stages stay within the class."""
        costs = self.costs
        for kind in range(len(costs.layers)):
            total = sum(count for owner, count in costs.runs if owner == kind)
            row = self.solver.Constraint(total, total)
            for key, count in zip(self.keys, self.counts, strict=True):
                if key[1] == kind:
                    row.SetCoefficient(count, 1.0)
        for stage in range(costs.stages):
            row = self.solver.Constraint(costs.fewest_layers(stage), costs.most_layers)
            each = len(self.counts) // costs.stages
            for count in self.counts[stage * each : (stage + 1) * each]:
                row.SetCoefficient(count, 1.0)

    def _rooms(self) -> None:
        """Memory of every moment, less the transients that are always there."""
        costs = self.costs
        table = peak_vectors(costs.schedule, costs.pp, costs.vpp, costs.micro_batches)
        for rank, moments in enumerate(table):
            for moment in moments:
                line = peak_linear(costs, rank, moment)
                end = end_transient(costs, stages_of(costs, rank)[moment.chunk])
                spare = costs.budget - line.constant - end
                row = self.solver.Constraint(-self.solver.infinity(), spare / 1e6)
                self._fill(row, line, 1e-6)
                self.rooms.append((Linear(-spare, line.factors), row))

    def _fill(self, row: pywraplp.Constraint, line: Linear, unit: float) -> None:
        """Set what is not zero: a row of memory knows the chunks of one rank."""
        flat = line.factors.ravel()
        for at in np.flatnonzero(flat).tolist():
            row.SetCoefficient(self.counts[at], float(flat[at]) * unit)

    def add(self, cut: Linear) -> None:
        """T >= cut.

        Args:
            cut: Length of a path. [ns]
        """
        row = self.solver.Constraint(-self.solver.infinity(), -cut.constant * 1e-6)
        self._fill(row, cut, 1e-6)
        row.SetCoefficient(self.step, -1e-3)
        self.cuts.append((cut, row))

    def solve(self) -> tuple[float, Counts] | None:
        """Solve the program.

        Returns:
            T [ns] and fractional counts, or none where it has no solution.
        """
        if self.solver.Solve() != pywraplp.Solver.OPTIMAL:
            return None
        shape = (self.costs.stages, len(self.costs.layers), len(self.costs.menu))
        values = [count.solution_value() for count in self.counts]
        return self.step.solution_value() * 1e3, np.array(values).reshape(shape)

    def exact_bound(self) -> int:
        """The Lagrangian at the rounded multipliers, minimised over whole layers.

        For weights w >= 0 of the paths and m >= 0 of the memory rows
        (``used - budget <= 0``), ``sum w path + sum m (used - budget)`` is at
        most ``sum w`` times the step at every split that fits. Zero, which
        claims nothing, where the sums would leave 64 bits.

        Returns:
            A bound on the step. [ns]
        """
        weights = [round(-row.dual_value() * 1e-3 * GRAIN) for _, row in self.cuts]
        prices = [round(-row.dual_value() * 1e-3 * GRAIN) for _, row in self.rooms]
        rows = zip([*weights, *prices], [*self.cuts, *self.rooms], strict=True)
        pairs = [(w, line) for w, (line, _) in rows if w > 0]
        whole: int = sum(w for w in weights if w > 0)
        if not whole or self._largest(pairs) > SAFE:
            return 0
        total = Linear(
            sum(w * line.constant for w, line in pairs),
            np.sum([w * line.factors for w, line in pairs], axis=0),
        )
        (least,) = least_values(self.costs, Lines.of(total)).tolist()
        return -(-int(least) // whole)

    def _largest(self, pairs: list[tuple[int, Linear]]) -> float:
        """No sum over the Lagrangian's terms is larger; in floating point. [1]."""
        layers = self.costs.layer_count
        return sum(
            w * (abs(line.constant) + layers * float(np.abs(line.factors).max()))
            for w, line in pairs
        )


def tighten(costs: StageCosts, relaxed: Relaxation) -> Relaxation:
    """Improve a path bound by choosing the weights and finding more paths.

    Args:
        costs: The inner problem.
        relaxed: The bound and cuts known so far.

    Returns:
        A bound at least as large, and the cuts that matter.
    """
    program = LayerProgram(costs)
    for cut in relaxed.cuts:
        program.add(cut)
    found: list[Linear] = []
    bound = relaxed.bound
    for _ in range(ROUNDS):
        solved = program.solve()
        if solved is None:
            break
        bound = max(bound, program.exact_bound())
        step, counts = solved
        cut = _critical(costs, counts)
        value = cut.constant + float((cut.factors * counts).sum())
        if value <= step * (1 + CLOSE):
            break
        program.add(cut)
        found.append(cut)
    return Relaxation(bound, (*found, *relaxed.cuts))


def _critical(costs: StageCosts, counts: Counts) -> Linear:
    """Critical path at fractional counts, as a cut."""
    vectors = stage_vectors(costs, counts)
    x = durations(costs, vectors)
    return path_linear(costs, critical_path(graph_of(costs), x, costs.p2p))
