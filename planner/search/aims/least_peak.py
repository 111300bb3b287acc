"""The least device memory that any plan needs of its fullest GPU, with a proof."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.cost.memory.buffers import buffer_bytes, context_bytes, within_bytes
from planner.cost.memory.communicators import communication_bytes
from planner.cost.meshes import Floats, Ints, Meshes
from planner.cost.pricing import Pricing
from planner.cost.table.mixed import price_meshes
from planner.cost.table.table import CostTable
from planner.search.aims.held import Held, least_blocks
from planner.search.bounds.bounds import may_fit
from planner.search.bounds.columns import columns_of
from planner.search.first_tier import PART
from planner.search.priced import PricedInOrder, stage_costs
from planner.search.space.declared import Space, joined
from planner.search.space.space import Enumerator
from planner.search.stop import Stop, StoppedError
from planner.specs.table import BLOCK, StageCosts


@dataclass(frozen=True)
class LeastPeak:
    """Device memory of the fullest GPU. [B]."""

    found: float = float("inf")
    """Least of the plans that were found; inf without any."""
    bound: float = 0.0
    """No plan needs less."""
    visited: int = 0
    """Candidates whose splits were looked at. [1]"""

    @property
    def is_proven(self) -> bool:
        """True where no plan needs less, or none fits."""
        return self.bound >= self.found or self.bound == float("inf")


def least_peak(variants: Sequence[Pricing], stop: Stop) -> LeastPeak:
    """Find the least peak over the spaces of all variants."""
    search = _Search(stop)
    try:
        for variant in variants:
            search.look_at(variant)
    except StoppedError:
        return LeastPeak(search.best, 0.0, search.visited)
    return search.answer()


class _Search:
    """Candidates of all variants, visited by their lower bound."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        self.best = float("inf")
        self.visited = 0
        self.open = float("inf")
        self.queues: list[_Queue] = []
        self.settled: dict[StageCosts, int] = {}

    def look_at(self, variant: Pricing) -> None:
        """List a variant's space and bound every candidate."""
        self.stop.check()
        listing = Enumerator(variant).listing(stop=self.stop)
        found = []
        for some in listing.slices(PART):
            self.stop.check()
            space = listing.part(some, Counter())
            table = price_meshes(variant, space.meshes, space.recompute)
            low = least_budgets(table, space)
            bounds = device_columns(variant, space.meshes.take(space.mesh), low)
            self._first_of(variant, table, space, low, bounds)
            kept = np.flatnonzero(np.isfinite(low) & (bounds <= self.best))
            part = space.take(kept).on_own_meshes()
            found.append((part, bounds[kept], low[kept]))
        self.queues.append(_Queue.of(variant, found))

    def _first_of(
        self,
        variant: Pricing,
        table: CostTable,
        space: Space,
        low: Floats,
        bounds: Floats,
    ) -> None:
        """Settle the most promising candidate of a part, to keep fewer others."""
        at = int(np.argmin(bounds)) if len(space) else -1
        if at >= 0 and bounds[at] < self.best and np.isfinite(low[at]):
            costs = stage_costs(variant, space, at, table)
            self._settle(variant, space.mesh_of(at), costs, int(low[at]))

    def answer(self) -> LeastPeak:
        """Visit candidates until no other can need less."""
        while (queue := min(self.queues, key=lambda q: q.bound)).bound < self.best:
            try:
                self._visit(queue)
            except StoppedError:
                self.open = min(self.open, queue.bound)
                break
        return LeastPeak(self.best, min(self.best, self.open), self.visited)

    def _visit(self, queue: "_Queue") -> None:
        self.stop.check()
        self._settle(queue.variant, queue.mesh, queue.costs(), queue.low)
        queue.at += 1

    def _settle(
        self, variant: Pricing, mesh: Meshes, costs: StageCosts, low: int
    ) -> None:
        """Find the least memory of a candidate, if that is below the least so far."""

        def device(blocks: int) -> float:
            return float(device_columns(variant, mesh, np.array([float(blocks)]))[0])

        high, key = costs.budget, costs.timeless
        if self.best < float("inf"):
            room = within_bytes(variant, mesh, np.nextafter(self.best, 0.0))
            high = int(min(room[0] // BLOCK, high))
            high -= device(high) >= self.best
        low = max(low, self.settled.get(key, 0))
        self.visited += 1
        held = least_blocks(costs, low, high, self.stop) if low <= high else Held(low)
        self.settled[key] = max(low, held.low)
        if held.blocks is not None:
            self.best = device(held.blocks)
        if held.is_open:
            self.open = min(self.open, device(held.low))


@dataclass
class _Queue:
    """Candidates of one variant by their bound."""

    variant: Pricing
    space: Space
    bounds: Floats
    lows: Floats
    order: Ints
    priced: PricedInOrder
    at: int = 0

    @classmethod
    def of(
        cls, variant: Pricing, found: Sequence[tuple[Space, Floats, Floats]]
    ) -> "_Queue":
        spaces, bounds, lows = zip(*found, strict=True)
        space = replace(joined(spaces), removed={})
        every = np.concatenate(bounds)
        order = np.argsort(every, kind="stable")
        priced = PricedInOrder(variant, space, order)
        return cls(variant, space, every, np.concatenate(lows), order, priced)

    @property
    def bound(self) -> float:
        """Least bound of the candidates still to be visited. [B]."""
        if self.at == len(self.order):
            return float("inf")
        return float(self.bounds[self.order[self.at]])

    @property
    def mesh(self) -> Meshes:
        """Mesh of the next candidate."""
        return self.space.mesh_of(int(self.order[self.at]))

    @property
    def low(self) -> int:
        """Memory that every split of the next candidate needs. [block]."""
        return int(self.lows[self.order[self.at]])

    def costs(self) -> StageCosts:
        """Inner problem of the next candidate."""
        return self.priced.costs(self.at)


def least_budgets(table: CostTable, space: Space) -> Floats:
    """Least budget with which arithmetic does not rule a candidate out.

    Whether a candidate may fit is monotone in the budget, so that halving finds it.

    Returns:
        Budget; inf where not even the job's own may do. [block], shape (candidates,)
    """
    columns = columns_of(table, space)
    high = np.floor(columns.budget)
    low = np.zeros(len(space))
    never = may_fit(space, columns) == 0
    while (low < high).any():
        middle = np.floor((low + high) / 2)
        fits = may_fit(space, replace(columns, budget=middle)) > 0
        high = np.where(fits, middle, high)
        low = np.where(fits, low, np.minimum(middle + 1, high))
    return np.where(never, np.inf, high)


def device_columns(pricing: Pricing, meshes: Meshes, held: Floats) -> Floats:
    """Memory that the driver reports of ranks that hold so many blocks.

    Args:
        pricing: The job.
        meshes: A mesh for each rank.
        held: States and activations. [block], shape (meshes,)

    Returns:
        Memory, as :func:`planner.cost.memory.buffers.device_bytes`. [B]
    """
    profile = pricing.profile
    own = (held * BLOCK + buffer_bytes(pricing, meshes)) * profile.memory_factor
    fixed = communication_bytes(pricing, meshes) + context_bytes(pricing)
    roomy = own / profile.fragmentation + fixed
    packed = np.minimum(own / profile.packing + fixed, roomy)
    return np.maximum(packed, np.minimum(roomy, pricing.gpu.memory_capacity))
