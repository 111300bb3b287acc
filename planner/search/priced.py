"""Inner problems of candidates, priced a block of candidates at a time."""

from dataclasses import dataclass, field

from planner.cost.meshes import Ints
from planner.cost.pricing import Pricing
from planner.cost.table.mixed import price_meshes
from planner.cost.table.table import CostTable
from planner.search.space.declared import Space
from planner.specs.table import StageCosts

BLOCK = 1024
"""Candidates whose meshes are priced at once. [1]"""
MOST_BLOCKS = 100
"""Blocks that are kept priced. [1]"""


def stage_costs(
    workload: Pricing, space: Space, candidate: int, table: CostTable | None = None
) -> StageCosts:
    """Inner problem of one candidate.

    Args:
        workload: A variant of the job.
        space: Candidates.
        candidate: Index into the space. [1]
        table: All meshes of the space, priced; if absent, the candidate's is priced.

    Returns:
        The integers that solver, simulator and brute force share.
    """
    mesh = int(space.mesh[candidate])
    if table is None:
        table = price_meshes(workload, space.mesh_of(candidate), space.recompute)
        mesh = 0
    return table.stage_costs(
        mesh,
        schedule=space.schedule(candidate),
        vpp=int(space.vpp[candidate]),
        menu=space.choices(candidate),
        hosting=space.hosting(candidate),
        block=space.block(candidate),
    )


@dataclass
class PricedInOrder:
    """Candidates that are asked for about in one order, priced ahead in that order.

    The table of a whole space would hold a thousand times as much as is ever looked at.
    """

    workload: Pricing
    space: Space
    order: Ints
    """Candidates, the first to be asked for first. [1]"""
    size: int = BLOCK
    """Candidates whose meshes are priced at once. [1]"""
    known: dict[int, tuple[Space, CostTable]] = field(default_factory=dict)
    """Blocks priced, the latest last."""

    def end(self, place: int) -> int:
        """Place behind the block of a place. [1]."""
        return (place // self.size + 1) * self.size

    def block(self, place: int) -> tuple[Space, CostTable]:
        """The candidates that are priced with that at a place.

        Args:
            place: Index into the order. [1]

        Returns:
            The candidates of the block in order, and the table of their meshes.
        """
        at = place // self.size
        found = self.known.pop(at, None) or self._price(at)
        self.known[at] = found
        if len(self.known) > MOST_BLOCKS:
            del self.known[next(iter(self.known))]
        return found

    def _price(self, at: int) -> tuple[Space, CostTable]:
        some = self.order[at * self.size : (at + 1) * self.size]
        part = self.space.take(some).on_own_meshes()
        return part, price_meshes(self.workload, part.meshes, self.space.recompute)

    def costs(self, place: int) -> StageCosts:
        """Inner problem of the candidate at a place of the order.

        Args:
            place: Index into the order. [1]

        Returns:
            The integers that solver and simulator share.
        """
        part, table = self.block(place)
        return stage_costs(self.workload, part, place % self.size, table)
