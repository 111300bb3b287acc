"""Inner problems of candidates, priced a block of candidates at a time."""

from dataclasses import dataclass, field, replace

from planner.cost.meshes import Ints
from planner.cost.pricing import Pricing
from planner.cost.table.mixed import MixedTable, price_meshes
from planner.cost.table.table import CostTable
from planner.search.space.declared import Space
from planner.specs.table import StageCosts

BLOCK = 1024
"""Candidates whose meshes are priced at once. [1]"""
MOST_BLOCKS = 100
"""Blocks that are kept priced. [1]"""
MOST_SHARED = 4096
"""Meshes that are priced at once for all orders of the same pools, ours. [1]"""


def stage_costs(
    pricing: Pricing, space: Space, candidate: int, table: CostTable | None = None
) -> StageCosts:
    """Inner problem of one candidate."""
    mesh = int(space.mesh[candidate])
    if table is None:
        table = price_meshes(pricing, space.mesh_of(candidate), space.recompute)
        mesh = 0
    return table.stage_costs(
        mesh,
        schedule=space.schedule(candidate),
        vpp=int(space.vpp[candidate]),
        menu=space.choices(candidate),
        hosting=space.hosting(candidate),
        block=space.block(candidate),
    )


class FamilyPrices:
    """Prices of the candidates of the same pools, which all orders of the pools share.

    Where all pools have the degrees of the first, no price depends on the order.
    """

    def __init__(self, pricing: Pricing, space: Space) -> None:
        """Price nothing yet."""
        self.pricing, self.space = pricing, space
        self._table: CostTable | None = None

    @property
    def few(self) -> bool:
        """True where the meshes are few enough to stay priced."""
        return len(self.space.meshes) <= MOST_SHARED

    def turn(self, pricing: Pricing) -> list[int]:
        """Place of every pool of an order among the pools of the first.

        Returns:
            Places. [1], shape (pools,)
        """
        return list(map(self.pricing.stage_pools.index, pricing.stage_pools))

    def turned(self, pricing: Pricing) -> MixedTable:
        """The table with the pools in another order."""
        if self._table is None:
            space = self.space
            self._table = price_meshes(self.pricing, space.meshes, space.recompute)
        assert isinstance(self._table, MixedTable)
        tables = tuple(self._table.tables[at] for at in self.turn(pricing))
        return replace(self._table, pricing=pricing, tables=tables)

    def forget(self) -> None:
        """Drop the prices; they come again when asked for."""
        self._table = None


@dataclass
class PricedInOrder:
    """Candidates that are asked for about in one order, priced ahead in that order.

    The table of a whole space would hold a thousand times as much as is ever looked at.
    """

    pricing: Pricing
    space: Space
    order: Ints
    """Candidates, the first to be asked for first. [1]"""
    size: int = BLOCK
    """Candidates whose meshes are priced at once. [1]"""
    shared: FamilyPrices | None = None
    """Prices of all meshes, where other orders of the pools share them."""
    known: dict[int, tuple[Space, CostTable]] = field(default_factory=dict)
    """Blocks priced, the latest last."""

    def end(self, place: int) -> int:
        """Place behind the block of a place. [1]."""
        return (place // self.size + 1) * self.size

    def block(self, place: int) -> tuple[Space, CostTable]:
        """The candidates that are priced with that at a place."""
        at = place // self.size
        found = self.known.pop(at, None) or self._price(at)
        self.known[at] = found
        if len(self.known) > MOST_BLOCKS:
            del self.known[next(iter(self.known))]
        return found

    def _price(self, at: int) -> tuple[Space, CostTable]:
        part = self.space.take(self.order[at * self.size : (at + 1) * self.size])
        if self.shared is not None and self.shared.few:
            return part, self.shared.turned(self.pricing)
        part = part.on_own_meshes()
        return part, price_meshes(self.pricing, part.meshes, self.space.recompute)

    def costs(self, place: int) -> StageCosts:
        """Inner problem of the candidate at a place of the order."""
        part, table = self.block(place)
        return stage_costs(self.pricing, part, place % self.size, table)
