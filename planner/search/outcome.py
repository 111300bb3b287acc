"""Progress reports of a search, and the outcome at the end."""

from dataclasses import dataclass, field

from planner.cost.pricing import Pricing
from planner.search.incumbents import Found
from planner.search.space.space import Space

CLOSE_ENOUGH = "not visited: no faster by more than the tolerance"
FAST_ENOUGH = "not visited: a plan is fast enough"
"""Rules that count candidates left by a tolerance, or by a fast enough plan. [text]"""


@dataclass(frozen=True)
class Progress:
    """State of a search under way: candidates left, incumbent and bound."""

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


@dataclass(frozen=True)
class Enough:
    """Limits that end a search before the proof: by work done, never by the clock."""

    work: float = float("inf")
    """Most work of the search, in visits. [1]"""
    step_s: float = 0.0
    """Step at which a plan is fast enough without proof. [s]"""


PROOF = Enough()
"""Nothing but the proof is enough."""


@dataclass(frozen=True)
class SearchOutcome:
    """Plans, bound and counts from the search of one variant's space."""

    pricing: Pricing
    """The variant."""
    space: Space
    """Candidates that may fit and were not hopeless from the start."""
    ranked: list[Found]
    """The plans of this variant among the best of all that ran together."""
    bound_s: float
    """Lower bound on every candidate of this variant, and on every listed plan. [s]"""
    stopped: str
    """Reason why the search ended before all was settled, else empty. [text]"""
    unseen: str
    """Limit that left some candidates not listed, or not priced; else empty. [text]"""
    pruned: dict[str, int]
    solved: int
    seconds: float
    near: list[Found] = field(default_factory=list)
    """Plans of this variant that are not much slower than the best of all, listed or
    not."""

    declared: dict[int, int] = field(default_factory=dict)
    """Candidates of the declared space by the GPUs that they use. Candidates whose
    bound was hopeless from the start are counted, but not in ``space``. [1]"""
    worked: float = 0.0
    """Work of the search, in visits; equal on every machine. [1]"""
    rough: bool = False
    """True for the search of a part whose plans are listed. In time the whole space
    gave no plan as fast."""

    known_s: float = float("inf")
    """Step that was reachable before the search; slower plans were not sought. [s]"""

    @property
    def candidates(self) -> int:
        """Candidates of the declared space. [1]."""
        return sum(self.declared.values())

    @property
    def timed_out(self) -> bool:
        """True if a limit ended the search."""
        return self.stopped not in ("", CLOSE_ENOUGH, FAST_ENOUGH)

    @property
    def proven(self) -> bool:
        """True if the best plan meets the bound."""
        return bool(self.ranked) and self.bound_s >= self.ranked[0].step_s
