"""Answer for one mesh: a bound, and the best split found; solver not needed."""

from dataclasses import dataclass
from enum import StrEnum

from planner.cost.pipeline.memory_rows import fits
from planner.cost.pipeline.splits import Counts, step_ns
from planner.search.space.blocks import block_counts
from planner.specs.table import StageCosts

ROUNDS = 400
"""Most solve-simulate-cut rounds for one mesh. [1]"""


class Outcome(StrEnum):
    """Result for a mesh after solving it."""

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
    """Best split found for one mesh, and a bound on all other splits."""

    outcome: Outcome
    bound: int
    """Lower bound on every split of the mesh. [ns]"""
    value: int | None = None
    """Simulated step of the best split. [ns]"""
    counts: Counts | None = None
    rounds: int = 0


def answered_exactly(costs: StageCosts) -> MeshAnswer:
    """Simulate the only split of a candidate with a block, where the split fits."""
    counts = block_counts(costs)
    if not fits(costs, counts):
        return MeshAnswer(Outcome.INFEASIBLE, 0)
    value = step_ns(costs, counts)
    return MeshAnswer(Outcome.SOLVED, value, value, counts)
