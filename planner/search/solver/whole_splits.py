"""Whole splits of one box: CP-SAT proposes them, the simulator cuts them off."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from ortools.sat.python import cp_model as cp

from planner.cost.pipeline.linear import Linear, path_lines
from planner.cost.pipeline.memory_rows import fits
from planner.cost.pipeline.splits import Counts, graph_of, stages_by_rank
from planner.schedules.simulator import Path, critical_paths
from planner.search.bounds.boxes import Box
from planner.search.solver.constraints import Constraints
from planner.search.solver.dual import Cuts
from planner.search.solver.engine import answered, engine
from planner.search.solver.local import Split
from planner.search.solver.variables import Variables

NEAR = 100
"""Splits simulated beside one that the solver proposes. [1]"""
VISIT, CALL = 4.0, 16.0
"""Deterministic time after which a visit of a box makes no further call of the solver,
and of one call. [1]"""


@dataclass
class WholeSplits:
    """Splits of one box that are at most as slow as asked for, or the proof of none.

    The model has the layers of every stage, memory as the solver has it everywhere, and
    the paths that are known, none of them above the step asked for. Its splits are
    simulated. One that is too slow has a critical path that is too long: the path joins
    the others and rules the split out. Paths bound every split, so a model without a
    solution proves that the box has no such split.
    """

    cuts: Cuts
    """Paths of the candidate."""
    box: Box
    """The splits that count."""
    most: int
    """Step above which no split is wanted; less, once one is found. [ns]"""
    best: Split | None = None
    """Fastest split found that is wanted."""
    spent: float = 0.0
    """Deterministic time of the solver. [1]"""
    paths: list[Path] = field(default_factory=list)
    """Paths that ruled splits out."""
    lines: list[Linear] = field(default_factory=list)
    """All paths of the model. [ns]"""
    seen: set[tuple[int, bytes]] = field(default_factory=set)

    def run(self, known: list[Path]) -> bool:
        """Look for ever faster splits until there is none, or the work is done.

        Args:
            known: Paths of the graph that the search knows beside those of the
                candidate.

        Returns:
            True where no split of the box is faster than ``most + 1``.
        """
        costs, model = self.cuts.costs, cp.CpModel()
        variables = Variables(model, costs, self.most)
        self.constraints = Constraints(model, costs, variables)
        self.constraints.add_constraints()
        self._keep_to_the_box(model, variables)
        self._limit(self.cuts.lines)
        self._add(known)
        while self.spent < VISIT and not self.cuts.stop.reached:
            solver = engine(CALL)
            # what the layers of the stages leave open is decided by propagation alone
            solver.parameters.linearization_level = 0
            status = answered(solver, model, self.cuts.stop)
            self.spent += solver.response_proto.deterministic_time
            if status == cp.INFEASIBLE:
                return True
            if status not in (cp.OPTIMAL, cp.FEASIBLE):
                return False
            self._simulate(model, variables, variables.extract(solver))
        return False

    def _keep_to_the_box(self, model: cp.CpModel, variables: Variables) -> None:
        ends = zip(self.box.fewest.tolist(), self.box.most.tolist(), strict=True)
        for layers, (low, high) in zip(variables.n, ends, strict=True):
            model.add_linear_constraint(layers, low, high)
        loads = zip(self.box.low.tolist(), self.box.high.tolist(), strict=True)
        for own, (low, high) in zip(
            stages_by_rank(self.cuts.costs), loads, strict=True
        ):
            total = cp.LinearExpr.sum([variables.n[stage] for stage in own.tolist()])
            model.add_linear_constraint(total, low, high)

    def _simulate(
        self, model: cp.CpModel, variables: Variables, counts: Counts
    ) -> None:
        """Rule a split out by its critical path, or ask for faster ones than it.

        Splits near it that no known path rules out are ruled out in the same round.
        """
        costs, cuts = self.cuts.costs, self.cuts
        splits = [counts, *self._near(counts)]
        x = cuts.durations.at(np.array(splits))
        steps, paths = critical_paths(graph_of(costs), x, costs.p2p)
        self.paths += paths
        self._add(paths)
        for step, split in zip(steps.tolist(), splits, strict=True):
            if step <= self.most and fits(costs, split):
                self.best = Split(step, split)
                self.most = step - 1
        model.add(variables.T <= self.most)

    def _near(self, counts: Counts) -> list[Counts]:
        """Splits with a layer moved within a rank, none of them known as too slow."""
        layers, moves = counts[:, 0, 0], []
        for own in stages_by_rank(self.cuts.costs):
            leave = own[layers[own] > self.box.fewest[own]]
            reach = own[layers[own] < self.box.most[own]]
            moves += [(a, b) for a in leave.tolist() for b in reach.tolist()]
        if not moves:
            return []
        splits = np.repeat(counts[None], len(moves), axis=0)
        at = np.arange(len(moves))
        splits[at, [a for a, _ in moves]] -= 1
        splits[at, [b for _, b in moves]] += 1
        factors = np.array([line.factors.ravel() for line in self.lines])
        constants = np.array([line.constant for line in self.lines])
        longest = (splits.reshape(len(moves), -1) @ factors.T + constants).max(axis=1)
        order = np.argsort(longest, kind="stable")[:NEAR]
        return [splits[row] for row in order.tolist() if longest[row] <= self.most]

    def _add(self, paths: list[Path]) -> None:
        """Let no split be faster than some paths."""
        if paths:
            counts = np.array([path.counts for path in paths])
            p2p = np.array([path.p2p for path in paths])
            self._limit(path_lines(self.cuts.costs, counts, p2p).each())

    def _limit(self, lines: Iterable[Linear]) -> None:
        for line in lines:
            key = line.constant, line.factors.tobytes()
            if key not in self.seen:
                self.seen.add(key)
                self.lines.append(line)
                self.constraints.step_no_shorter_than(line)
