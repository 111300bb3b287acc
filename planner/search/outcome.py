"""What a search reports on its way, and what it hands over at its end."""

from dataclasses import dataclass, field

from planner.cost.workload import Workload
from planner.search.incumbents import Found
from planner.search.space import Space

CLOSE_ENOUGH = "not visited: no faster by more than the tolerance"
FAST_ENOUGH = "not visited: a plan is fast enough"
"""Rule under which candidates are counted that a tolerance left. [text]"""


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


@dataclass(frozen=True)
class Enough:
    """When a search may end before its proof: by what it did, never by the clock."""

    work: float = float("inf")
    """Work that it may take, in visits. [1]"""
    step_s: float = 0.0
    """A plan that is as fast is good enough. [s]"""


PROOF = Enough()
"""Nothing but the proof is enough."""


@dataclass(frozen=True)
class SearchOutcome:
    """Everything that a search of one variant's space found and proved."""

    workload: Workload
    """The variant."""
    space: Space
    """Candidates that may fit and were not hopeless from the start."""
    ranked: list[Found]
    """The plans of this variant among the best of all that ran together."""
    bound_s: float
    """No candidate of this variant is faster, and no listed plan. [s]"""
    stopped: str
    """Why the search ended before all was settled; empty where all was. [text]"""
    unseen: str
    """The limit for which some candidates were not listed, or not priced. [text]"""
    pruned: dict[str, int]
    solved: int
    seconds: float
    near: list[Found] = field(default_factory=list)
    """Everything found of this variant that is not much slower than the best of all,
    listed or not."""

    declared: dict[int, int] = field(default_factory=dict)
    """Candidates of the declared space by the GPUs that they use; those whose bound
    was hopeless from the start are not in ``space`` any more. [1]"""
    worked: float = 0.0
    """Work that it took, in visits; the same on every machine. [1]"""
    rough: bool = False
    """Whether this was a search of a part, whose plans are listed because the whole
    space gave none as fast in the time that it had."""

    known_s: float = float("inf")
    """A step that was reachable before the search; no plan slower was sought. [s]"""

    @property
    def candidates(self) -> int:
        """Candidates of the declared space. [1]."""
        return sum(self.declared.values())

    @property
    def timed_out(self) -> bool:
        """Whether a limit ended the search."""
        return self.stopped not in ("", CLOSE_ENOUGH, FAST_ENOUGH)

    @property
    def proven(self) -> bool:
        """Whether the best plan meets the bound."""
        return bool(self.ranked) and self.bound_s >= self.ranked[0].step_s
