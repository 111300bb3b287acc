"""The least memory that any split of one candidate needs."""

from dataclasses import dataclass, replace

import numpy as np

from planner.cost.pipeline.layer_kinds import kinds_per_stage
from planner.cost.pipeline.memory_rows import fits, rank_blocks
from planner.cost.pipeline.splits import Counts
from planner.search.bounds.memory_bounds import cannot_fit, most_layers
from planner.search.bounds.paths import even_counts, in_class
from planner.search.solver.only import only_split
from planner.search.space.blocks import block_counts
from planner.search.stop import Stop, StoppedError
from planner.specs.table import StageCosts


@dataclass(frozen=True)
class Held:
    """Least memory of the fullest rank over the splits of a candidate. [block]."""

    low: int
    """No split needs less."""
    blocks: int | None = None
    """Memory of the best split; none where no split needs as little as was asked."""

    @property
    def is_open(self) -> bool:
        """True where the work ended before the answer."""
        return self.blocks is not None and self.low < self.blocks


def least_blocks(costs: StageCosts, low: int, high: int, stop: Stop) -> Held:
    """Least memory of the fullest rank, where that is at most so much.

    Halves the range between a budget that nothing fits and the memory of a split. Each
    budget is settled by arithmetic, by a split that is known, or by the solver.

    Args:
        costs: The inner problem, on GPUs of one kind.
        low: Memory that every split is known to need. [block]
        high: Most memory that is of interest. [block]
        stop: Ends the work early. [-]

    Returns:
        Memory of the best split, and what no split is below. [block]

    Raises:
        StoppedError: A limit is reached before the first budget is settled.
    """
    only = block_counts(costs) if costs.block else only_split(costs)
    if only is not None:
        peak = int(rank_blocks(costs, only).max())
        return Held(peak, peak if peak <= high else None)
    best: int | None = None
    known = _known(costs)
    while low <= high:
        budget = high if best is None else (low + high) // 2
        try:
            split = _within(replace(costs, budget=budget), known, stop)
        except StoppedError:
            if best is None:
                raise
            break
        if split is None:
            low = budget + 1
            if best is None:
                break
        else:
            best = int(rank_blocks(costs, split).max())
            high = best - 1
    return Held(low, best)


def _known(costs: StageCosts) -> list[Counts]:
    """Splits that come to mind: even ones."""
    even = [even_counts(costs, entry) for entry in range(len(costs.menu))]
    return [split for split in even if in_class(costs, split)]


def _within(costs: StageCosts, known: list[Counts], stop: Stop) -> Counts | None:
    """Any split within the budget; None where there is none."""
    if costs.budget < 0 or cannot_fit(costs):
        return None
    for split in (*known, *_filled(costs)):
        if fits(costs, split):
            return split
    # Few candidates need the solver, which takes long to import.
    from planner.search.solver.within import split_within  # noqa: PLC0415

    return split_within(costs, stop)


def _filled(costs: StageCosts) -> list[Counts]:
    """The split that fills every rank as far as arithmetic says it can be."""
    if costs.vpp > 1 or costs.copies > 1 or len(costs.menu) > 1:
        return []
    least = np.array(costs.fewest)
    room = np.minimum(most_layers(costs), costs.most_layers) - least
    left = costs.layer_count - int(least.sum())
    taken = np.diff(np.minimum(np.cumsum(room), left), prepend=0)
    layers = (least + taken).tolist()
    return [kinds_per_stage(costs.runs, len(costs.layers), layers)[:, :, None]]
