"""Intervals from errors at first contact: ``python -m benchmarks.accuracy.intervals``.

Writes the bands that ship with the package, and prints the share of rows that bands of
other sources hold. Rows that a term was tuned on have no part in it.

A group's error is the mean of |log(measured / predicted)|, sources with equal weight,
drawn to the parent group's. A band's half width, in logarithms, is::

    error(group) q90(|error of a row| / error of the row's group in other sources)

Bands are centred on the prediction: once rows of a stack are known, the fit takes the
stack's bias away.

Publications that report runs which did not fit have a part in the errors of the memory
that a device must hold, by their outcomes (``benchmarks.accuracy.outcomes``).

A memory peak's error is that of what the rank holds beyond its states. Parameters times
bytes are counted, and no band scales them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from math import log
from pathlib import Path
from statistics import fmean, median

import numpy as np
import yaml

import planner.frameworks
from benchmarks.accuracy.ledger import Met, met_memories, met_times
from benchmarks.accuracy.outcomes import Failing, failing
from planner.calibration.fitting.fit_columns import Floats
from planner.frameworks.fitted import (
    INTERVALS,
    UNSEEN,
    AllIntervals,
    Group,
    Intervals,
)
from planner.specs.answer.uncertainty import Band

COVERAGE = 0.9
"""Share of the next source's rows that an interval is to hold. [1]"""
PARENT_SOURCES = 2.0
"""Sources that a group's parent counts as in the group's error. [1]"""
EVERYTHING = ""
"""Name of the group that holds all. [text]"""
SHIPPED = Path(planner.frameworks.__file__).parent
HEAD = "# Written by python -m benchmarks.accuracy.intervals; not by hand.\n"


@dataclass(frozen=True)
class _Errors:
    """Mean errors of groups. [1]."""

    groups: dict[str, float]
    architectures: frozenset[str]

    def of(self, row: Met) -> float:
        """Error of the nearest group, larger where the row's own has none."""
        near = next((key for key in row.keys if key in self.groups), EVERYTHING)
        seen = near == row.keys[0] and row.arch in self.architectures
        return self.groups[near] * (1.0 if seen else UNSEEN)


@dataclass(frozen=True)
class Held:
    """A row and the band that other sources give the row.

    Attributes:
        row: The row. [-]
        band: Bounds over the predicted value. [1]
    """

    row: Met
    band: Band

    @property
    def inside(self) -> bool:
        """True where the measurement lies in the band."""
        ratio = float(np.exp(self.row.error))
        return self.band.low <= ratio <= self.band.high

    @property
    def half_width(self) -> float:
        """Half the distance of the bounds, over the predicted value. [1]."""
        return (1 - self.row.known) * (self.band.high - self.band.low) / 2


def shipped(*, without: str = "") -> AllIntervals:
    """The bands of the whole ledger, or of other sources than one.

    Args:
        without: Source to leave out; none without one. [text]

    Returns:
        Bands of step time and of memory. [1]
    """
    times, memories = (
        [row for row in some if row.source != without]
        for some in (met_times(), met_memories())
    )
    return AllIntervals(
        date=date.today().isoformat(),  # noqa: DTZ011  # a day, for people
        source="errors at first contact, python -m benchmarks.accuracy.intervals",
        time=bands(times),
        memory=bands(memories, [one for one in failing() if one.source != without]),
    )


def bands(rows: Sequence[Met], outcomes: Sequence[Failing] = ()) -> Intervals:
    """Bands that are to hold 90 % of the rows of the next source.

    Args:
        rows: Errors at first contact, of two sources at least. [-]
        outcomes: Publications that report runs which did not fit. [-]

    Returns:
        Bands by group. [1]
    """
    errors, end = _errors(rows, outcomes), _end(rows)
    counts = _counts(rows, outcomes)
    groups = {
        key: _group(end * error, counts[key])
        for key, error in sorted(errors.groups.items())
    }
    return Intervals(
        everything=groups.pop(EVERYTHING),
        groups=groups,
        within=round(_within(rows), 3),
        architectures=tuple(sorted(errors.architectures)),
    )


def left_out(rows: Sequence[Met]) -> list[Held]:
    """Each row with the band that the other sources give it.

    Args:
        rows: Errors at first contact. [-]

    Returns:
        Rows by source. [-]
    """
    found = []
    for source in sorted({row.source for row in rows}):
        known = bands([row for row in rows if row.source != source])
        own = (row for row in rows if row.source == source)
        found += [Held(row, known.band(row.keys, row.arch)) for row in own]
    return found


def by_source(held: Iterable[Held]) -> dict[str, list[Held]]:
    """Sort rows by source.

    Args:
        held: Rows with their bands. [-]

    Returns:
        Source to rows. [-]
    """
    found: dict[str, list[Held]] = defaultdict(list)
    for one in held:
        found[one.row.source].append(one)
    return found


def coverage(held: Sequence[Held]) -> tuple[float, float]:
    """Shares of rows inside their bands.

    Args:
        held: Rows with their bands. [-]

    Returns:
        Over rows, and as the average over sources. [1]
    """
    sources = by_source(held).values()
    return (
        fmean(one.inside for one in held),
        fmean(fmean(one.inside for one in its) for its in sources),
    )


def outside(held: Sequence[Held]) -> tuple[float, float]:
    """Shares of rows above and below their bands, averaged over sources.

    Args:
        held: Rows with their bands. [-]

    Returns:
        Above, below. [1]
    """
    sources = by_source(held).values()
    return (
        fmean(
            fmean(one.row.error > log(one.band.high) for one in its) for its in sources
        ),
        fmean(
            fmean(one.row.error < log(one.band.low) for one in its) for its in sources
        ),
    )


def _lineage(row: Met) -> tuple[str, ...]:
    """Groups of a row, the widest first."""
    return (EVERYTHING, *reversed(row.keys))


def _errors(rows: Iterable[Met], outcomes: Iterable[Failing] = ()) -> _Errors:
    """Error of each group, drawn to the parent's as if by PARENT_SOURCES more."""
    sizes: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    parents: dict[str, str] = {}
    archs = set()
    for row in rows:
        archs.add(row.arch)
        parents |= {key: parent for parent, key in pairwise(_lineage(row))}
        for key in _lineage(row):
            sizes[key][row.source].append(abs(row.error))
    for one in outcomes:
        lineage = (EVERYTHING, *reversed(one.keys))
        parents |= {key: parent for parent, key in pairwise(lineage)}
        for key in one.keys:
            sizes[key][f"{one.source}, outcomes"].append(one.error)
    found: dict[str, float] = {}

    def error(key: str) -> float:
        if key not in found:
            own = fmean(map(fmean, sizes[key].values()))
            weight = len(sizes[key])
            drawn = PARENT_SOURCES if key in parents else 0.0
            parent = error(parents[key]) if key in parents else 0.0
            found[key] = (weight * own + drawn * parent) / (weight + drawn)
        return found[key]

    return _Errors({key: error(key) for key in sizes}, frozenset(archs))


def _end(rows: Sequence[Met]) -> float:
    """Quantile of rows' errors over those that other sources give their groups. [1]."""
    places, weight = [], []
    shares = Counter(row.source for row in rows)
    for source in shares:
        known = _errors(row for row in rows if row.source != source)
        own = [row for row in rows if row.source == source]
        places += [abs(row.error) / known.of(row) for row in own]
        weight += [1 / shares[source]] * len(own)
    return quantile(np.array(places), np.array(weight), COVERAGE)


def quantile(values: Floats, weight: Floats, at: float) -> float:
    """Quantile of weighted values, interpolated between their middles.

    Args:
        values: Shape (n,). [1]
        weight: Shape (n,). [1]
        at: Share of the weight below. [1]

    Returns:
        The value. [1]
    """
    order = np.argsort(values)
    cumulated = np.cumsum(weight[order])
    middle = (cumulated - weight[order] / 2) / cumulated[-1]
    return float(np.interp(at, middle, values[order]))


def _counts(
    rows: Iterable[Met], outcomes: Iterable[Failing]
) -> dict[str, tuple[int, int]]:
    """Rows and sources of each group. [1]."""
    found: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        for key in _lineage(row):
            found[key].append(row.source)
    for one in outcomes:
        for key in one.keys:
            found[key] += [one.source] * len(one.outcomes)
    return {key: (len(its), len(set(its))) for key, its in found.items()}


def _group(half: float, counts: tuple[int, int]) -> Group:
    low, high = float(np.exp(-half)), float(np.exp(half))
    rows, sources = counts
    return Group(low=round(low, 3), high=round(high, 3), rows=rows, sources=sources)


def _within(rows: Iterable[Met]) -> float:
    """Mean distance of rows from their source's median, over their mean error. [1]."""
    sources: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        sources[row.source].append(row.error)
    several = [its for its in sources.values() if len(its) > 1]
    left = sum(fmean(abs(x - median(its)) for x in its) for its in several)
    whole = sum(fmean(map(abs, its)) for its in several)
    return min(left / whole, 1.0) if whole else 1.0


def ship() -> None:
    """Write the bands into the package."""
    text = yaml.safe_dump(
        shipped().model_dump(mode="json"), sort_keys=False, default_flow_style=None
    )
    (SHIPPED / INTERVALS).write_text(HEAD + text)


def main() -> None:
    """Write the bands, and say how many rows such bands hold."""
    ship()
    for name, rows in (("step time", met_times()), ("memory", met_memories())):
        held = left_out(rows)
        over_rows, over_sources = coverage(held)
        wide = median(one.half_width for one in held)
        above, below = outside(held)
        print(
            f"{name}: {over_rows:.1%} of rows, {over_sources:.1%} over sources; "
            f"half of them within {wide:.1%}; {above:.1%} above, {below:.1%} below"
        )


if __name__ == "__main__":
    main()
