"""The linear program of a candidate: fractional layers, paths, memory and loads.

The program's multipliers are rounded to integers, and the Lagrangian is minimised over
whole layers. So no bound rests on floating point.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from planner.cost.pipeline.linear import Linear, Lines
from planner.cost.pipeline.splits import Counts, stages_by_rank
from planner.cost.reach import reach_of
from planner.search.bounds.boxes import Box, least_in_boxes, stages_decide
from planner.search.bounds.least import least_values
from planner.search.bounds.memory_rows import memory_lines
from planner.search.bounds.worst import worst_step
from planner.specs.table import StageCosts

GRAINS = (1 << 20, 1 << 14)
"""Multipliers are rounded to one of these fractions of one. [1]"""
PARAMETERS = "use_dual_simplex:1 use_preprocessing:0 use_scaling:0"
"""A row more leaves the last basis dual feasible: start from there. The rows have units
of their own, so that scaling them again would only take time. [text]"""
SAFE = 2.0**62
"""Largest sum that 64-bit integers hold with room to spare. [1]"""
PENALTY = 8.0
"""Penalty, in steps, to exceed the memory by its size, or a load by a layer. [1]"""


INF = float("inf")
COUNTS = 3
"""Variables before the counts: the step, and what exceeds memory and loads. [1]"""
NOTHING: Mapping[int, float] = {}
"""No other columns."""


class Solution(NamedTuple):
    """Optimum of the program."""

    step: float
    """The least step, penalties included. [ns]"""
    counts: npt.NDArray[np.float64]
    """Fractional layers. [1], shape (stages, kinds, menu)"""


class _Row(NamedTuple):
    """A row of the program, which the solver has as ``unit * line``."""

    line: Linear
    at: int
    unit: float


class LayerProgram:
    """min T over fractional counts: paths, memory, loads and the balanced class.

    Memory and loads may be exceeded at a penalty, which no split that fits pays. So
    the program always has a solution, and the multipliers are bounded.
    """

    def __init__(self, costs: StageCosts, cuts: Sequence[Linear] = ()) -> None:
        """Hand the whole program to the solver at once.

        Args:
            costs: The inner problem.
            cuts: Lengths of the paths that are known. [ns]
        """
        # Few jobs need the solver, which takes long to import.
        from ortools.linear_solver import linear_solver_pb2, pywraplp  # noqa: PLC0415

        self.costs, self.box = costs, Box.of(costs)
        # T is about the layers of a rank, and a layer adds about one to a path
        self.unit = costs.layer_count / worst_step(costs)
        self.shape = (costs.stages, len(costs.layers), len(costs.menu))
        # of one kind under one entry a stage's limits are the variable's own
        self.alone = self.shape[1:] == (1, 1)
        self.model = linear_solver_pb2.MPModelProto()
        self._variables()
        self._totals()
        self.rooms = [self._room(line, 1e-6, 0) for line in memory_lines(costs)]
        self.loads = [self._load(stages) for stages in stages_by_rank(costs)]
        self.cuts = [_Row(cut, self._row(*self._cut(cut)), self.unit) for cut in cuts]
        self.solver = pywraplp.Solver.CreateSolver("GLOP")
        self.solver.SetSolverSpecificParametersAsString(PARAMETERS)
        self.solver.LoadModelFromProto(self.model)
        self.model.Clear()
        self.variables, self.rows = self.solver.variables(), self.solver.constraints()
        self.counts = self.variables[COUNTS:]
        limited = self.rows[len(self.costs.layers) :]
        self.stages = self.counts if self.alone else limited[: costs.stages]
        self._weights: list[float] = []
        self._found: tuple[Linear, int] | None = None
        self.within(self.box)

    def _variables(self) -> None:
        """The step, what exceeds memory and loads, and the counts."""
        costs, add = self.costs, self.model.variable.add
        add(lower_bound=0.0, upper_bound=INF, objective_coefficient=1.0)
        for _ in range(COUNTS - 1):
            add(lower_bound=0.0, upper_bound=INF)
        least = np.array([fewest * self.alone for fewest in costs.fewest])
        most = costs.most_layers * reach_of(costs).mask[:, :, None]
        pair = np.broadcast_arrays(least[:, None, None], most, np.empty(self.shape))
        lows, highs = (each.ravel().tolist() for each in pair[:2])
        for low, high in zip(lows, highs, strict=True):
            add(lower_bound=low, upper_bound=high)

    def _totals(self) -> None:
        """Every kind's layers are placed; stages stay within the class."""
        costs = self.costs
        for kind, total in enumerate(reach_of(costs).totals.tolist()):
            chosen = np.zeros(self.shape)
            chosen[:, kind] = 1.0
            self._row(chosen, float(total), float(total))
        for stage in range(0 if self.alone else costs.stages):
            chosen = np.zeros(self.shape)
            chosen[stage] = 1.0
            self._row(chosen, costs.fewest_layers(stage), costs.most_layers)

    def _row(
        self,
        factors: npt.NDArray[Any],
        low: float,
        high: float,
        others: Mapping[int, float] = NOTHING,
    ) -> int:
        """Describe a row of the program; returns its place. [1]."""
        at, values = _entries(factors, others)
        self.model.constraint.add(
            lower_bound=low, upper_bound=high, var_index=at, coefficient=values
        )
        return len(self.model.constraint) - 1

    def _cut(
        self, cut: Linear
    ) -> tuple[npt.NDArray[Any], float, float, Mapping[int, float]]:
        """Factors, limits and other columns of ``cut - T <= 0``."""
        return cut.factors * self.unit, -INF, -cut.constant * self.unit, {0: -1.0}

    def _load(self, stages: Counts) -> tuple[_Row, _Row]:
        """Rows of a rank's load from above and below, without their limits."""
        chosen = np.zeros(self.shape, dtype=np.int64)
        chosen[stages] = 1
        above = self._room(Linear(0, chosen), 1.0, 1)
        return above, self._room(Linear(0, -chosen), 1.0, 1)

    def _room(self, line: Linear, unit: float, over: int) -> _Row:
        """Row of ``line <= 0``, which may be exceeded at a penalty."""
        whole = max(self.costs.budget * unit, 1.0) if over == 0 else 1.0
        limit, others = -line.constant * unit, {1 + over: -whole}
        return _Row(line, self._row(line.factors * unit, -INF, limit, others), unit)

    def within(self, box: Box) -> None:
        """Keep to a box from now on."""
        self.box, rows = box, self.rows
        limits = zip(self.loads, box.low.tolist(), box.high.tolist(), strict=True)
        for (above, below), low, high in limits:
            rows[above.at].SetBounds(-INF, float(high))
            rows[below.at].SetBounds(-INF, float(-low))
        if stages_decide(self.costs):
            ends = box.fewest.tolist(), box.most.tolist()
            for stage, low, high in zip(self.stages, *ends, strict=True):
                stage.SetBounds(float(low), float(high))

    def price(self, step: int) -> None:
        """Set the penalty for exceeding memory and loads.

        Args:
            step: About the step of a good split. [ns]
        """
        for over in self.variables[1:COUNTS]:
            self.solver.Objective().SetCoefficient(over, PENALTY * step * self.unit)

    def add(self, cut: Linear) -> None:
        """Add T >= cut.

        Args:
            cut: Length of a path. [ns]
        """
        factors, low, high, others = self._cut(cut)
        row = self.solver.Constraint(low, high)
        for at, value in zip(*_entries(factors, others), strict=True):
            row.SetCoefficient(self.variables[at], value)
        self.cuts.append(_Row(cut, len(self.rows), self.unit))
        self.rows.append(row)

    def solve(self) -> Solution | None:
        """Solve the program.

        Returns:
            Optimum, or None where the solver gave up.
        """
        self._found = None
        if self.solver.Solve() != self.solver.OPTIMAL:
            return None
        self._weights = [-self.rows[cut.at].dual_value() for cut in self.cuts]
        some = (self._lagrangian(grain) for grain in GRAINS)
        self._found = next((found for found in some if found), None)
        values = np.array([count.solution_value() for count in self.counts])
        whole = self.solver.Objective().Value() / self.unit
        return Solution(whole, np.maximum(values, 0.0).reshape(self.shape))

    def least_within(self, box: Box) -> float:
        """Solve the program in another box, for its value alone.

        Returns:
            The least step, no bound to rest on; 0 where the solver gave up. [ns]
        """
        self.within(box)
        if self.solver.Solve() != self.solver.OPTIMAL:
            return 0.0
        return float(self.solver.Objective().Value() / self.unit)

    def weights(self) -> list[float]:
        """Multipliers of the cuts, after ``solve``; they add up to about one. [1]."""
        return [max(0.0, weight) for weight in self._weights]

    def exact_bound(self) -> int:
        """The Lagrangian at the rounded multipliers, minimised over whole layers.

        Take weights w >= 0 of the paths and m >= 0 of the other rows. The other rows
        have ``line <= 0`` at every split that fits and lies in the box. At such a split
        ``sum w path + sum m line`` is at most ``sum w`` times the step. The result is
        0, which claims nothing, where the sums would overflow 64 bits.

        Returns:
            A bound on the step. [ns]
        """
        proof = self.lagrangian()
        if proof is None:
            return 0
        total, whole = proof
        costs, line, found = self.costs, Lines.of(total), list[int]()
        if stages_decide(costs):
            found += least_in_boxes(costs, line, self.box.take(None)).tolist()
        if not found or len(costs.layers) > 1:
            found += least_values(costs, line).tolist()
        return -(-max(found) // whole)

    def lagrangian(self) -> tuple[Linear, int] | None:
        """Sum of all rows at the multipliers of ``solve``, and the weight of the paths.

        Returns:
            A line that is at most the weight times the step, at every split that fits
            and lies in the box; None where no multipliers are fine enough.
        """
        return self._found

    def _lagrangian(self, grain: int) -> tuple[Linear, int] | None:
        """The sum with multipliers rounded to 1 / grain; None where it overflows."""
        paths = zip(self._weights, (cut.line for cut in self.cuts), strict=True)
        others = (
            (-self.rows[at].dual_value() * (unit / self.unit), line)
            for line, at, unit in (*self.rooms, *self._limits())
        )
        pairs = [(round(weight * grain), line) for weight, line in (*paths, *others)]
        whole: int = sum(w for w, _ in pairs[: len(self.cuts)] if w > 0)
        pairs = [(w, line) for w, line in pairs if w > 0]
        if not whole or self._largest(pairs) > SAFE:
            return None
        constant = sum(w * line.constant for w, line in pairs)
        return Linear(
            constant, np.sum([w * x.factors for w, x in pairs], axis=0)
        ), whole

    def _limits(self) -> Iterator[_Row]:
        """Rows of the loads with the box's limits; none where the box has them."""
        if stages_decide(self.costs):
            return
        ends = self.box.high.tolist(), self.box.low.tolist()
        for (above, below), high, low in zip(self.loads, *ends, strict=True):
            yield above._replace(line=Linear(-high, above.line.factors))
            yield below._replace(line=Linear(low, below.line.factors))

    def _largest(self, pairs: list[tuple[int, Linear]]) -> float:
        """Upper bound on sums of the Lagrangian's terms, in floating point. [1]."""
        layers = self.costs.layer_count
        return sum(
            w * (abs(line.constant) + layers * float(np.abs(line.factors).max()))
            for w, line in pairs
        )


def _entries(
    factors: npt.NDArray[Any], others: Mapping[int, float]
) -> tuple[list[int], list[float]]:
    """Variables of a row and their factors, those of the counts that are not zero."""
    flat = factors.ravel()
    at = np.flatnonzero(flat)
    return [*others, *(at + COUNTS).tolist()], [*others.values(), *flat[at].tolist()]
