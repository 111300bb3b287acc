"""What a search reports on its way, and what it hands over at its end."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from planner.cost.table import CostTable
from planner.search.incumbents import Found
from planner.search.space import Space

PROGRESS_PERIOD = 0.1
"""Shortest time between two reports of progress. [s]"""


@dataclass(frozen=True)
class Patience:
    """When a search has looked enough, besides its time limit.

    Attributes:
        tolerance: No plan can be faster than the best by more; 0 asks for a proof.
            [1]
        visits: Candidates that are refined or solved at most, once there is a plan.
            [1]
    """

    tolerance: float = 0.0
    visits: float = float("inf")

    def is_over(self, best: Found | None, bound: float, visits: int) -> bool:
        """Whether the search may stop.

        Args:
            best: The best plan so far.
            bound: No candidate that is left is faster. [s]
            visits: So far. [1]

        Returns:
            False without a plan, and where nothing limits the search.
        """
        if best is None:
            return False
        close = best.step_s * (1 - self.tolerance) <= bound
        return visits >= self.visits or (self.tolerance > 0 and close)


PROOF = Patience()
"""A search that ends when its best plan is proven. [-]"""


@dataclass(frozen=True)
class Progress:
    """Where a search stands."""

    candidates_left: int
    candidates: int
    incumbent_s: float | None
    bound_s: float | None

    @property
    def gap(self) -> float | None:
        """Share by which the incumbent may still be beaten. [1]."""
        if self.incumbent_s is None or self.bound_s is None:
            return None
        return max(0.0, 1.0 - self.bound_s / self.incumbent_s)


class Reporter:
    """Tells of a search, but not more often than anybody can read."""

    def __init__(self, progress: Callable[[Progress], None] | None) -> None:
        self.progress, self.reported = progress, 0.0

    def __call__(
        self, left: int, candidates: int, best: Found | None, bound: float
    ) -> None:
        """Report where the search stands, where the last report is old enough.

        Args:
            left: Candidates that are not settled. [1]
            candidates: In the space. [1]
            best: The best plan so far.
            bound: No candidate that is left is faster. [s]
        """
        now = time.monotonic()
        if self.progress is None or now - self.reported < PROGRESS_PERIOD:
            return
        self.reported = now
        value = best.step_s if best is not None else None
        shown = min(bound, value) if value is not None else bound
        self.progress(Progress(left, candidates, value, shown))


@dataclass(frozen=True)
class SearchOutcome:
    """Everything that a search of one variant's space found and proved."""

    table: CostTable
    space: Space
    ranked: list[Found]
    """The plans of this variant among the best of all that ran together."""
    bound_s: float
    """No candidate of this variant is faster, and no listed plan. [s]"""
    timed_out: bool
    pruned: dict[str, int]
    solved: int
    seconds: float
    near: list[Found] = field(default_factory=list)
    """Everything found of this variant that is not much slower than the best of all,
    listed or not."""

    known_s: float = float("inf")
    """A step that was reachable before the search; no plan slower was sought. [s]"""

    @property
    def proven(self) -> bool:
        """Whether the best plan meets the bound."""
        return bool(self.ranked) and self.bound_s >= self.ranked[0].step_s
