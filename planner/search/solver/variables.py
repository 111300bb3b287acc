"""The decision variables of one mesh's inner problem."""

from ortools.sat.python import cp_model as cp

from planner.cost.pipeline.layer_kinds import kinds_per_stage
from planner.cost.pipeline.splits import Counts
from planner.cost.reach import reach_of
from planner.specs.table import StageCosts


class Variables:
    """Layers per virtual stage, and of them each kind under each menu entry.

    ``n[i]``         layers on virtual stage i
    ``y[i, k, r]``   layers of kind k on it under menu entry r
    ``T``            the step before the straggler factor [ns]
    """

    def __init__(self, model: cp.CpModel, costs: StageCosts, horizon: int) -> None:
        self.costs = costs
        self.model = model
        self.reach = reach_of(costs).mask
        self.n = [
            model.new_int_var(costs.fewest_layers(i), costs.most_layers, f"n[{i}]")
            for i in range(costs.stages)
        ]
        self.y: dict[tuple[int, int, int], cp.LinearExprT] = {
            (i, k, r): self._count(i, k, r)
            for i in range(costs.stages)
            for k in range(len(costs.layers))
            for r in range(len(costs.menu))
        }
        self.T = model.new_int_var(0, horizon, "T")

    def _count(self, stage: int, kind: int, entry: int) -> cp.LinearExprT:
        """With one kind and one menu entry the count is the stage's own."""
        if len(self.costs.layers) == 1 and len(self.costs.menu) == 1:
            return self.n[stage]
        most = self.costs.most_layers if self.reach[stage, kind] else 0
        return self.model.new_int_var(0, most, f"y[{stage},{kind},{entry}]")

    def of_kind(self, stage: int, kind: int) -> cp.LinearExpr:
        """Layers of one kind on a stage, over the menu."""
        entries = range(len(self.costs.menu))
        return cp.LinearExpr.sum([self.y[stage, kind, r] for r in entries])

    def hint(self, counts: Counts) -> None:
        """Start the solver at a split."""
        self.model.clear_hints()  # type: ignore[no-untyped-call]
        for stage, variable in enumerate(self.n):
            self.model.add_hint(variable, int(counts[stage].sum()))
        for (i, k, r), count in self.y.items():
            if isinstance(count, cp.IntVar) and count is not self.n[i]:
                self.model.add_hint(count, int(counts[i, k, r]))

    def extract(self, solver: cp.CpSolver) -> Counts:
        """Read the split off a solver."""
        costs = self.costs
        layers = [solver.value(n) for n in self.n]
        counts = kinds_per_stage(costs.runs, len(costs.layers), layers)[:, :, None]
        counts = counts.repeat(len(costs.menu), axis=2)
        for (i, k, r), count in self.y.items():
            counts[i, k, r] = solver.value(count)
        return counts
