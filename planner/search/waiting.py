"""Candidates that were not looked at one by one, with bounds for many at once."""

import heapq

import numpy as np

from planner.cost.meshes import Ints
from planner.cost.pricing import Pricing
from planner.search.bounds.group_bounds import Group, times_of, widest
from planner.search.bounds.paths import ShapePaths
from planner.search.bounds.pool_bounds import most_on_ranks
from planner.search.first_tier import FirstTier
from planner.search.priced import PricedInOrder
from planner.search.space.blocks import CHOSEN
from planner.search.space.schedules import COPIES
from planner.specs.table import StageCosts


class Waiting:
    """Candidates in the order of their bounds, which whole groups have raised."""

    def __init__(self, pricing: Pricing, tier: FirstTier, paths: ShapePaths) -> None:
        self.space, self.order, self.bounds = tier.space, tier.order, tier.bounds
        self.slowdown, self.paths = tier.slowdown, paths
        self.offset = np.broadcast_to(tier.offset, self.bounds.shape)
        self.priced = PricedInOrder(pricing, self.space, self.order, shared=tier.prices)
        self.at = 0
        self.heap: list[tuple[float, int]] = []
        self.groups: dict[int, tuple[Group, Ints]] = {}

    def __len__(self) -> int:
        return len(self.order) - self.at + len(self.heap)

    def bound(self) -> float:
        """Lower bound on all that wait; inf without any. [s]."""
        while self.heap and self.heap[0][0] < (bound := self._bound(self.heap[0][1])):
            heapq.heapreplace(self.heap, (bound, self.heap[0][1]))
        return min(self.heap[0][0] if self.heap else float("inf"), self._unmet())

    def _unmet(self) -> float:
        """Lower bound on the candidates that no group has. [s]."""
        if self.at >= len(self.order):
            return float("inf")
        return self._bound(self.at)

    def _bound(self, place: int) -> float:
        return float(self.bounds[self.order[place]])

    def next(self, most: float) -> int | None:
        """Raise bounds, or take the candidate with the least.

        Args:
            most: Bound above which a candidate needs no better one. [s]

        Returns:
            Place of the candidate in the order; None where bounds were raised. [1]
        """
        if self._unmet() <= self.bound():
            self._meet(most)
            return None
        place = self.heap[0][1]
        if place in self.groups and self._lift(*self.groups[place], most):
            return None
        heapq.heappop(self.heap)
        self.groups.pop(place, None)
        return place

    def costs(self, place: int) -> StageCosts:
        """Inner problem of a candidate."""
        return self.priced.costs(place)

    def _lift(self, group: Group, candidates: Ints, most: float) -> bool:
        """Raise the bounds of a group; False where nothing is new."""
        new = group.lift(self.paths, most)
        self.bounds[candidates] = np.maximum(self.bounds[candidates], group.keys)
        return new

    def _meet(self, most: float) -> None:
        """Deal the next block of candidates into groups, and bound each."""
        first, end = self.at, min(self.priced.end(self.at), len(self.order))
        self.at = end
        places = np.arange(first, end)
        for some in self._alike(places):
            self._group(places[some], most)
        for place in places.tolist():
            heapq.heappush(self.heap, (self._bound(place), place))

    def _alike(self, places: Ints) -> list[Ints]:
        """Indices of places whose candidates have one shape, menu and hosting."""
        part, table = self.priced.block(int(places[0]))
        rows = places - places[0] + places[0] % self.priced.size
        mesh, menu = part.mesh[rows], part.menu[rows]
        first = table.each[0]
        gathers, scatters = first.overlaps
        columns = (
            part.schedules[rows],
            part.vpp[rows],
            table.meshes.pp[mesh],
            table.meshes.micro_batches[mesh],
            first.scatter_every[mesh],
            gathers[mesh],
            scatters[mesh],
            np.where(menu < CHOSEN, -2, np.minimum(menu, 0)),
            *(part.take(rows).hosted().T if part.hostings else ()),
        )
        keys = np.array(columns, dtype=np.int64).T
        _, which = np.unique(keys, axis=0, return_inverse=True)
        groups = (np.flatnonzero(which == one) for one in range(which.max() + 1))
        return [some for some in groups if COPIES[part.schedules[rows[some[0]]]] == 1]

    def _group(self, places: Ints, most: float) -> None:
        """Price a group and bound it."""
        part, table = self.priced.block(int(places[0]))
        rows = places % self.priced.size
        like = self.costs(int(places[0]))
        entries = np.array([part.choices(row) for row in rows.tolist()])
        candidates = self.order[places]
        group = Group(
            widest(like),
            times_of(like, table, part.mesh[rows], entries),
            self.slowdown[candidates],
            self.offset[candidates],
            self.bounds[candidates],
            most_on_ranks(table, part.take(rows), like.pool_of_rank),
        )
        self._lift(group, candidates, most)
        self.groups |= dict.fromkeys(places.tolist(), (group, candidates))
