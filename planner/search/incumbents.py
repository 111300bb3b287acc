"""The best plans found so far: one per set of degrees, best first."""

import heapq
from dataclasses import dataclass, field

from planner.cost.meshes import Meshes
from planner.cost.pipeline.splits import Counts
from planner.search.space.space import Space

SLACK = 0.02
"""Share above the last listed plan of a part, up to which plans are sought. [1]

The whole space may list plans that the part does not have.
"""
SPREAD = 0.1
"""Share above the best plan of a part that gave fewer plans than asked for. [1]"""


@dataclass(frozen=True, order=True)
class Found:
    """A solved candidate; the sort order is the order of preference.

    Step time comes first, then device memory, then the layout's fields in order. The
    variant comes next: fewer offloads, then the order that the user listed.
    """

    step_s: float
    device_bytes: float
    fields: tuple[int, ...]
    variant: int
    """Index of the workload that the plan is for. [1]"""
    candidate: int
    counts: Counts = field(compare=False)


def degrees(meshes: Meshes, row: int, menu: int) -> tuple[int, ...]:
    """Key that tells plans apart in a list of the best.

    Rank order, shard group, second copy and chunk count are variants of a plan.

    Returns:
        tp, pp, cp, ep, etp, ZeRO stage, micro-batch and recompute. [1]
    """
    axes = ("tp", "pp", "cp", "ep", "etp", "zero", "micro_batch")
    return (*(int(getattr(meshes, axis)[row]) for axis in axes), menu)


def layout_fields(space: Space, candidate: int) -> tuple[int, ...]:
    """Fields of a candidate's layout in their order, for the last tie-break."""
    m, row = space.meshes, space.mesh[candidate]
    widths = (m.tp, m.sp, m.pp, m.cp, m.cp_kind, m.ep, m.etp, m.dp)
    columns = (*widths, m.dp_shard, m.zero, m.hpz, m.micro_batch, m.order)
    inner = space.vpp, space.schedules, space.menu
    chosen = (int(column[candidate]) for column in inner)
    return (*(int(column[row]) for column in columns), *chosen)


class Incumbents:
    """The best candidate of each set of degrees, and what still matters."""

    def __init__(
        self,
        top: int,
        known_s: float = float("inf"),
        before: "Incumbents | None" = None,
    ) -> None:
        """Begin without plans.

        Args:
            top: Plans to list. [1]
            known_s: A step that is reachable; slower plans are not sought. [s]
            before: Plans found in a part of the space. [-]
        """
        self.top, self.known_s = top, known_s
        self.ceiling_s = before.worth_s if before else float("inf")
        self.before_s = before.best_s if before else float("inf")
        self.best_of: dict[tuple[int, ...], Found] = {}
        self.listed: list[Found] = []

    def add(self, key: tuple[int, ...], found: Found) -> None:
        """Record a solved candidate."""
        known = self.best_of.get(key)
        if known is None or found < known:
            self.best_of[key] = found
            self.listed = heapq.nsmallest(self.top, self.best_of.values())

    def ranked(self) -> list[Found]:
        """Listed plans, one for each set of degrees, in order of preference."""
        return list(self.listed)

    def within(self, slower: float) -> list[Found]:
        """Everything found that is at most so much slower than the best.

        A plan that was found while others were proven may not be the best of its
        degrees.
        """
        if self.best is None:
            return []
        most = self.best.step_s * (1 + slower)
        return sorted(found for found in self.best_of.values() if found.step_s <= most)

    @property
    def best_s(self) -> float:
        """The best step, here or in the part that was searched before. [s]."""
        found = self.best.step_s if self.best is not None else float("inf")
        return min(found, self.before_s)

    @property
    def worth_s(self) -> float:
        """Step above which a plan of a larger space would not be listed. [s]."""
        if self.best is None:
            return float("inf")
        least = self.best.step_s * (1 + (0.0 if self.is_full else SPREAD))
        return max(least, self.listed[-1].step_s * (1 + SLACK))

    @property
    def most_s(self) -> float:
        """Step above which no plan is wanted, from the start. [s]."""
        return min(self.known_s, self.ceiling_s)

    @property
    def is_full(self) -> bool:
        """True where as many plans are listed as were asked for."""
        return len(self.listed) == self.top

    @property
    def best(self) -> Found | None:
        """Best plan of all, or None."""
        return self.listed[0] if self.listed else None

    def threshold(self, key: tuple[int, ...] | None = None) -> float:
        """Step above which a candidate changes nothing in the list.

        Returns:
            Least of the last listed step, the best step of the candidate's degrees,
            and the step known from the start. [s]
        """
        last = self.listed[-1].step_s if self.is_full else self.most_s
        last = min(last, self.known_s)
        own = self.best_of.get(key) if key is not None else None
        return min(last, own.step_s) if own is not None else last
