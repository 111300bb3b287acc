"""The constraints of one mesh's inner problem, one method each."""

from collections.abc import Sequence

import numpy as np
from ortools.sat.python import cp_model as cp

from planner.cost.pipeline.linear import Linear
from planner.cost.pipeline.memory_rows import (
    MemoryRow,
    MemoryRows,
    idle_rows,
    passing_rows,
)
from planner.search.solver.variables import Variables
from planner.specs.table import StageCosts


class Constraints:
    """Constraints that make a split legal.

    ::

    sum_i n_i = L                                  every layer on one stage
    sum_{k,r} y_{i,k,r} = n_i                      counted by kind and menu
    sum_r y_{i,k,r} = overlap of run k with stage  layers stay in order
    static_r + in flight + transient <= budget     every rank fits in its passes
    static_r + held + beside         <= budget     and at every idle moment
    T >= path_j(y)                                 every path found so far
    """

    def __init__(
        self, model: cp.CpModel, costs: StageCosts, variables: Variables
    ) -> None:
        self.model, self.costs, self.variables = model, costs, variables

    def add_constraints(self) -> None:
        """Add all but the path cuts, which come as the simulator finds them."""
        self._every_layer_on_one_stage()
        self._layers_counted_by_kind()
        self._layers_stay_in_order()
        self._every_rank_fits()
        self._every_rank_fits_when_idle()

    def step_no_shorter_than(self, path: Linear) -> None:
        """Add T >= path: valid at every split, tight at the split it came from.

        Args:
            path: Length of a path of the operation graph. [ns]
        """
        self.model.add(self.variables.T >= self._expression(path))

    def _every_layer_on_one_stage(self) -> None:
        total = cp.LinearExpr.sum(self.variables.n)
        self.model.add(total == self.costs.layer_count)

    def _layers_counted_by_kind(self) -> None:
        if len(self.costs.layers) == 1 and len(self.costs.menu) == 1:
            return
        for stage, layers in enumerate(self.variables.n):
            kinds = range(len(self.costs.layers))
            parts = [self.variables.of_kind(stage, kind) for kind in kinds]
            self.model.add(cp.LinearExpr.sum(parts) == layers)

    def _layers_stay_in_order(self) -> None:
        """Layers of run [e, e + c) up to stage i number clip(C_i - e, 0, c)."""
        if len(self.costs.layers) == 1:
            return
        for kind in range(len(self.costs.layers)):
            before = cp.LinearExpr.sum([])
            for stage in range(self.costs.stages):
                seen = cp.LinearExpr.sum(self.variables.n[: stage + 1])
                upto = self._of_kind_within(kind, stage, seen)
                here = self.variables.of_kind(stage, kind)
                self.model.add(here + before == upto)
                before = upto

    def _of_kind_within(
        self, kind: int, stage: int, seen: cp.LinearExpr
    ) -> cp.LinearExpr:
        """Layers of a kind among the first *seen*, summed over its runs."""
        parts: list[cp.IntVar] = []
        start = 0
        for index, (owner, count) in enumerate(self.costs.runs):
            if owner == kind:
                name = f"run[{index},{stage}]"
                low = self.model.new_int_var(-start, count, f"low {name}")
                self.model.add_min_equality(low, [seen - start, count])
                part = self.model.new_int_var(0, count, name)
                self.model.add_max_equality(part, [low, 0])
                parts.append(part)
            start += count
        return cp.LinearExpr.sum(parts)

    def _every_rank_fits(self) -> None:
        self._add_memory(passing_rows(self.costs))

    def _every_rank_fits_when_idle(self) -> None:
        self._add_memory(idle_rows(self.costs))

    def _add_memory(self, found: Sequence[MemoryRows]) -> None:
        each = [row for rows in found for row in rows.each()]
        for row in sorted(each, key=lambda row: row.rank):
            self._fits(row)

    def _fits(self, row: MemoryRow) -> None:
        """Memory of a row, with the largest unit of any stage at work."""
        held = self._expression(row.line)
        self.model.add(held + row.end_at_work <= row.budget)
        for (kind, entry), at_work in np.ndenumerate(row.layers_at_work):
            for stage in row.working if at_work > row.end_at_work else ():
                some = self._present(stage, kind, entry)
                excess = cp.LinearExpr.term(some, int(at_work))
                self.model.add(held + excess <= row.budget)

    def _present(self, stage: int, kind: int, entry: int) -> cp.IntVar:
        """1 if the stage holds such a layer; constant where it always does."""
        count = self.variables.y[stage, kind, entry]
        alone = len(self.costs.layers) == 1 and len(self.costs.menu) == 1
        if alone and self.costs.fewest_layers(stage) > 0:
            return self.model.new_constant(1)
        some = self.model.new_bool_var(f"some[{stage},{kind},{entry}]")
        self.model.add(count <= self.costs.most_layers * some)
        return some

    def _expression(self, line: Linear) -> cp.LinearExpr:
        counts, factors = list(self.variables.y.values()), line.factors.ravel().tolist()
        return cp.LinearExpr.weighted_sum(counts, factors) + line.constant
