"""Error of the predicted difference between two layouts."""

import math

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.answer.estimate import TimeBreakdown


class Comparison(BaseModel):
    """The error of comparing two layouts of one job, from measured sweeps.

    Errors of time that both layouts spend alike cancel. Time that differs has many
    pieces with independent errors, so the variance grows with that time::

        error = spread sqrt(sum over causes |t_a - t_b| / sqrt(T_a T_b))

    Every cause has the same spread: no measured sweep moves one cause alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    spread: float = Field(gt=0)
    """Median error of all measured pairs, at a difference of one step. [1]"""
    kept: float = Field(default=1.0, gt=0)
    """Measured over predicted difference: its slope over the measured pairs. [1]"""
    pairs: int
    """Measured pairs of layouts of one job. [1]"""
    sweeps: int
    """Jobs with measured pairs. [1]"""
    sources: int
    """Publications, each of the same weight. [1]"""
    reversed_tied: float
    """Share of tied pairs that were measured in the other order. [1]"""
    reversed_apart: float
    """Share of the other pairs that were measured in the other order. [1]"""
    date: str
    source: str

    def error(self, ours: TimeBreakdown, theirs: TimeBreakdown) -> float:
        """Median error of a comparison of two layouts: the width of a tie.

        Args:
            ours: Causes of one layout. [s]
            theirs: Causes of another layout of the job. [s]
        """
        return self.spread * math.sqrt(differing(ours, theirs))

    def likely(self, ours: TimeBreakdown, theirs: TimeBreakdown) -> float:
        """Probability that one layout is faster than another.

        See :func:`odds` for the distribution of the error.

        Args:
            ours: Causes of layout A. [s]
            theirs: Causes of layout B. [s]
        """
        error, ahead = self.error(ours, theirs), _ahead(ours, theirs)
        if error == 0:
            return 0.5 if ahead == 0 else 1.0 if ahead > 0 else 0.0
        return odds(ahead / error)

    def gain(self, ours: TimeBreakdown, theirs: TimeBreakdown) -> float:
        """Time that layout B is expected to take longer than layout A.

        The predicted difference is shrunk to what measured pairs kept of it, and never
        stretched::

            (T_B / T_A) ^ min(kept, 1) - 1

        Args:
            ours: Causes of layout A. [s]
            theirs: Causes of layout B. [s]

        Returns:
            Share of the step of A; below 0 where B is expected to be faster. [1]
        """
        return math.expm1(min(self.kept, 1.0) * _ahead(ours, theirs))


def odds(distance: float) -> float:
    """Probability that a predicted difference has the sign that was predicted.

    The error is of Student's distribution with two degrees of freedom, whose 90 %
    quantile is 3.6 medians; a normal error's is 2.4. Over measured pairs it is 3.4
    with sources of equal weight, 5.4 with pairs of equal weight
    (``benchmarks/accuracy/chances.py``). With r the difference in median errors::

        P = (1 + r / sqrt(3 + r^2)) / 2
    """
    return (1 + distance / math.sqrt(3 + distance**2)) / 2


def _ahead(ours: TimeBreakdown, theirs: TimeBreakdown) -> float:
    """Log of the other step over ours. [1]."""
    steps = [sum(one.model_dump().values()) for one in (theirs, ours)]
    return math.log(steps[0] / steps[1])


def differing(ours: TimeBreakdown, theirs: TimeBreakdown) -> float:
    """Time that two layouts spend differently, over their step.

    ``sum over causes |t_a - t_b| / sqrt(T_a T_b)``.

    Args:
        ours: Causes of one layout. [s]
        theirs: Causes of another layout. [s]

    Returns:
        Time over the step; 0 for equal causes. [1]
    """
    one, other = ours.model_dump(), theirs.model_dump()
    apart = sum(abs(one[cause] - other[cause]) for cause in one)
    return float(apart / math.sqrt(sum(one.values()) * sum(other.values())))
