"""The solver alone on one inner problem."""

from planner.search.mesh_answer import ROUNDS, MeshAnswer, Outcome
from planner.search.solver.solve import MeshSolver
from planner.specs.table import StageCosts


def solve_mesh(costs: StageCosts) -> MeshAnswer:
    """Best split of one mesh, with a proof; OPEN only if the rounds ran out."""
    solver = MeshSolver(costs, ())
    answer = solver.advance(None)
    while answer.outcome is Outcome.OPEN and answer.rounds < ROUNDS:
        answer = solver.advance(None)
    return answer
