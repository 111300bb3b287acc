"""The answer for one mesh whose class holds a single split: nothing is left to solve.

The solver's library takes half a second to import. So a large job whose layers fill
the stages exactly, as 126 layers and two ends fill 128, does without.
"""

from planner.cost.pipeline.layer_kinds import kinds_per_stage
from planner.cost.pipeline.memory_rows import fits
from planner.cost.pipeline.splits import Counts, step_ns
from planner.search.mesh_answer import MeshAnswer, Outcome
from planner.specs.table import StageCosts


def only_split(costs: StageCosts) -> Counts | None:
    """The split of a class that holds one alone.

    There is a single stage, or every stage has its fewest layers, or its most.

    Returns:
        Layers by stage, kind and menu entry; None where there is a choice. [1]
    """
    total, stages = costs.layer_count, costs.stages
    ways = costs.fewest, (costs.most_layers,) * stages, (total,)
    forced = [way for way in ways if (len(way), sum(way)) == (stages, total)]
    if len(costs.menu) > 1 or not forced:
        return None
    return kinds_per_stage(costs.runs, len(costs.layers), forced[0])[:, :, None]


class OnlySplit:
    """Stands in for the solver's rounds, with the same answers."""

    spent = 0.0
    """Deterministic time of solver calls. [1]"""

    def __init__(self, costs: StageCosts, counts: Counts) -> None:
        self.costs, self.counts = costs, counts

    def advance(self, cutoff: int | None) -> MeshAnswer:
        """Simulate the split.

        Args:
            cutoff: Splits slower than this are of no interest. [ns]
        """
        if not fits(self.costs, self.counts):
            return MeshAnswer(Outcome.INFEASIBLE, 0)
        value = step_ns(self.costs, self.counts)
        late = cutoff is not None and value > cutoff
        outcome = Outcome.CUT_OFF if late else Outcome.SOLVED
        return MeshAnswer(outcome, value, value, self.counts)
