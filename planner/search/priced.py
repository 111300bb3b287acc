"""Inner problems of candidates, priced a block of candidates at a time."""

from dataclasses import dataclass

from planner.cost.meshes import Ints
from planner.cost.pricing import Pricing
from planner.cost.table.mixed import price_meshes
from planner.cost.table.table import CostTable
from planner.search.space.declared import Space
from planner.specs.table import StageCosts

BLOCK = 1024
"""Candidates whose meshes are priced at once. [1]"""


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
    """Candidates that are asked for in one order, and priced ahead in that order.

    The table of a whole space would hold a thousand times as much as is ever looked at.
    """

    workload: Pricing
    space: Space
    order: Ints
    """Candidates, the first to be asked for first. [1]"""
    _at: int = -1
    _table: CostTable | None = None
    _part: Space | None = None

    def costs(self, place: int) -> StageCosts:
        """Inner problem of the candidate at a place of the order.

        Args:
            place: Index into the order. [1]

        Returns:
            The integers that solver and simulator share.
        """
        if self._at != place // BLOCK:
            self._at = place // BLOCK
            some = self.order[self._at * BLOCK : (self._at + 1) * BLOCK]
            self._part = self.space.take(some).on_own_meshes()
            self._table = price_meshes(
                self.workload, self._part.meshes, self.space.recompute
            )
        assert self._part is not None
        return stage_costs(self.workload, self._part, place % BLOCK, self._table)
