"""A number of nodes, why that one, and what stays open."""

from collections.abc import Sequence
from dataclasses import dataclass

from planner.comparison.answer import CandidateStatus
from planner.comparison.known import Counts
from planner.comparison.planned import Planned


@dataclass(frozen=True)
class Choice:
    """A number of nodes and why.

    Attributes:
        planned: The count with its plan; None where none will do. [-]
        words: Why this one, or what is nearest to one that will do. [text]
        status: What stands against the candidate, if anything. [-]
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
    """Counts that are not settled, in words.

    Args:
        open_counts: At least one, ascending. [1]

    Returns:
        With a comma at the end. [text]
    """
    if len(open_counts) == 1:
        return f"{open_counts[0]:,} nodes, not settled,"
    low, high = open_counts[0], open_counts[-1]
    return f"{len(open_counts)} counts of {low:,} to {high:,} nodes, not settled,"


def last_own(counts: Counts) -> int:
    """Largest count that a layout fills: the one to name where none will do.

    Args:
        counts: Of one candidate. [-]

    Returns:
        The count, in nodes. [1]
    """
    every = reversed(counts.task.counts)
    return next((n for n in every if counts.is_own(n)), counts.task.counts[-1])


def fastest(counts: Counts) -> Planned | None:
    """Fastest count that was planned.

    Args:
        counts: Of one candidate. [-]

    Returns:
        Its plan; none where no count has one. [-]
    """
    timed = [p for p in counts.seen.values() if p.time_s is not None]
    return min(timed, key=lambda p: (p.time_s, p.nodes), default=None)
