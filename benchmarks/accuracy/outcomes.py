"""Errors of the memory that a device must hold, by runs that ran or did not fit.

A publication that reports its failures, too, measures that memory by its outcomes. With
x the logarithm of the room over what is predicted, both beyond the states, a run fails
with the probability ``Phi(-x / spread)``; the spread is the likeliest. Publications
without a failure are left out: they did not print what did not fit.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import log, pi, sqrt
from statistics import NormalDist

from benchmarks.accuracy.ledger import (
    SCATTERED,
    Row,
    beyond,
    every_row,
    states_gib,
    versions,
)
from planner.frameworks.fitted import memory_keys
from planner.hardware.catalog import gpu
from planner.hardware.reading.files import SHIPPED

GIB = 2**30
NORMAL = NormalDist()
SPREADS = tuple(step / 100 for step in range(2, 151))
"""Spreads that are tried. [1]"""
NEVER = 1e-9
"""Least probability of an outcome. [1]"""
Outcome = tuple[float, bool]
"""Logarithm of the room over the predicted need, and if the run failed. [1], [-]"""


@dataclass(frozen=True)
class Failing:
    """Outcomes of one publication that reports its failures.

    Attributes:
        source: Stem of the file that it is from. [text]
        keys: Groups of the memory that a device must hold, nearest first. [text]
        outcomes: Rooms of its runs, and which failed. [-]
    """

    source: str
    keys: tuple[str, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def error(self) -> float:
        """Mean size of the error that the outcomes show. [1]."""
        return spread(self.outcomes) * sqrt(2 / pi)


def spread(outcomes: Sequence[Outcome]) -> float:
    """The likeliest spread of the error of the memory that must fit.

    Args:
        outcomes: Rooms of runs, and which failed. [-]

    Returns:
        Standard deviation of the logarithm. [1]
    """
    return min(SPREADS, key=lambda each: surprise(outcomes, each))


def surprise(outcomes: Sequence[Outcome], deviation: float) -> float:
    """Negative logarithm of the likelihood of outcomes.

    Args:
        outcomes: Rooms of runs, and which failed. [-]
        deviation: Standard deviation of the logarithm. [1]

    Returns:
        Zero where every outcome was certain. [1]
    """
    chances = ((NORMAL.cdf(-room / deviation), failed) for room, failed in outcomes)
    said = (chance if failed else 1 - chance for chance, failed in chances)
    return -sum(log(max(each, NEVER)) for each in said)


def failing() -> list[Failing]:
    """Publications that report runs which failed beside runs that ran.

    Returns:
        Their outcomes at first contact, of rows that count and of no shared cluster.
    """
    found: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for row in (row for version in versions() for row in every_row(version)):
        if _is_outcome(row):
            found[row["source"], row["framework"]].append(_outcome(row))
    return [
        Failing(source, memory_keys(framework, "device"), tuple(its))
        for (source, framework), its in sorted(found.items())
        if len({failed for _, failed in its}) > 1
    ]


def _is_outcome(row: Row) -> bool:
    counts = row["counted"] == "True" and bool(row["predicted_gib"] and row["gpu"])
    return counts and gpu(row["gpu"], SHIPPED).arch not in SCATTERED


def _outcome(row: Row) -> Outcome:
    states, peak = states_gib()[row["id"]], float(row["predicted_gib"])
    capacity = gpu(row["gpu"], SHIPPED).memory_capacity / GIB
    room = beyond(capacity, states) / beyond(peak, states)
    return log(room), row["oom"] == "True"
