"""A number of nodes, the reason for it, and the counts that stay open."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.planning.comparison.answer import CandidateStatus
from planner.planning.comparison.candidates.known import Counts
from planner.planning.comparison.candidates.plan_cache import Planned


@dataclass(frozen=True)
class Choice:
    """A number of nodes, and the reason for it.

    Attributes:
        planned: The count with its plan; None where none will do. [-]
        words: Reason for the count, or the nearest to a count that will do. [text]
        status: Verdict against the candidate, if any. [-]
        open_counts: Counts that may be the answer in its place: the work ended before
            a plan on them was found or ruled out. Ascending. [1]
        least_s: No run that answers the question is shorter. [s]
    """

    planned: Planned | None
    words: str
    status: CandidateStatus | None = None
    open_counts: tuple[int, ...] = ()
    least_s: float = 0.0


def open_words(open_counts: Sequence[int]) -> str:
    """Counts that are not settled, in words."""
    if len(open_counts) == 1:
        return f"{open_counts[0]:,} nodes, not settled,"
    low, high = open_counts[0], open_counts[-1]
    return f"{len(open_counts)} counts of {low:,} to {high:,} nodes, not settled,"


def last_own(counts: Counts) -> int:
    """Largest count that a layout fills, to name where no count will do."""
    every = reversed(counts.task.counts)
    return next((n for n in every if counts.is_own(n)), counts.task.counts[-1])


def fastest(counts: Counts) -> Planned | None:
    """Fastest count that was planned.

    Returns:
        The count with its plan; None where no count has a plan. [-]
    """
    timed = [p for p in counts.seen.values() if p.time_s is not None]
    return min(timed, key=lambda p: (p.time_s, p.nodes), default=None)
