"""A split within a budget of memory, whatever its step, or the proof of none."""

from ortools.sat.python import cp_model as cp

from planner.cost.pipeline.splits import Counts
from planner.search.solver.constraints import Constraints
from planner.search.solver.engine import engine
from planner.search.solver.solve import EXACT, WORK
from planner.search.solver.variables import Variables
from planner.search.stop import Stop, StoppedError
from planner.specs.table import StageCosts


def split_within(costs: StageCosts, stop: Stop) -> Counts | None:
    """Find any split that fits the budget.

    Returns:
        Layers by stage, kind and menu entry; None where the solver proves that no
        split fits. [1]

    Raises:
        StoppedError: A limit is reached before the answer.
    """
    model = cp.CpModel()
    variables = Variables(model, costs, int(EXACT))
    Constraints(model, costs, variables).add_constraints()
    work = WORK[0]
    while True:
        solver = engine(work)
        status = solver.solve(model)
        if status in (cp.OPTIMAL, cp.FEASIBLE):
            return variables.extract(solver)
        if status == cp.INFEASIBLE:
            return None
        if status == cp.MODEL_INVALID:
            raise StoppedError("the solver has no numbers of this size")
        work *= 2
        stop.check()
