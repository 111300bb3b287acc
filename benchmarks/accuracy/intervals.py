"""Intervals from the errors of rows left out, by group of runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.accuracy.crossval import folds
from planner.evidence.fitting.fit_columns import (
    Flags,
    Floats,
    Observed,
    Tags,
    source_weights,
    weights,
)
from planner.evidence.fitting.hierarchy import fit_all
from planner.frameworks.fitted import HOST_BOUND, Group, Intervals, group_keys

COVERAGE = 0.9
"""Share of measurements that an interval is to hold. [1]"""
WIDEST = 0.94
"""Largest share that quantiles are taken at, however few the sources. [1]"""
PARENT_SOURCES = 4.0
"""Sources that a group's parent counts as in the group's own quantiles. [1]"""
FEWEST_ROWS = 8
"""Rows below which a group has no band of its own. [1]"""


@dataclass(frozen=True)
class _Bounds:
    """Quantiles of log(measured / predicted). [1]."""

    low: float
    high: float
    rows: int
    sources: int

    def towards(self, parent: "_Bounds") -> "_Bounds":
        """Mean of these quantiles and the parent's, weighted by sources."""
        share = self.sources / (self.sources + PARENT_SOURCES)
        low = share * self.low + (1 - share) * parent.low
        high = share * self.high + (1 - share) * parent.high
        return _Bounds(low, high, self.rows, self.sources)

    @property
    def group(self) -> Group:
        """The band, with 1 inside it."""
        low, high = np.exp(min(self.low, 0.0)), np.exp(max(self.high, 0.0))
        return Group(
            low=round(float(low), 3),
            high=round(float(high), 3),
            rows=self.rows,
            sources=self.sources,
        )


def intervals_of(tags: Sequence[Tags], left: Floats) -> Intervals:
    """Bands that hold 90 % of the errors of rows left out.

    A group's quantiles are averaged with those of all runs that do not wait for their
    host. The fewer sources the group has, the more those runs weigh. The group of runs
    that wait for their host stands alone.

    Args:
        tags: Tags of each row, shape (rows,). [-]
        left: log(measured / predicted) of each, left out, shape (rows,). [1]

    Returns:
        Bands by stack, by architecture and of steps that wait for the host. [1]
    """
    weight = weights(tags)
    busy = np.array([not tag.waits for tag in tags])
    whole = _bounds(tags, left, weight, busy if busy.any() else ~busy)
    groups: dict[str, Group] = {}
    keys = [_keys(tag) for tag in tags]
    for key in sorted({key for row in keys for key in row}):
        chosen = np.array([key in row for row in keys])
        if chosen.sum() >= FEWEST_ROWS:
            own = _bounds(tags, left, weight, chosen)
            alone = key == HOST_BOUND
            groups[key] = (own if alone else own.towards(whole)).group
    return Intervals(groups=groups, everything=whole.group)


def pooled(tags: Sequence[Tags], left: Floats) -> Intervals:
    """One band for all rows: the remaining errors do not tell stacks apart.

    Memory is counted, not timed: a campaign's rows share no day or machine, so only
    sources are weighed down. The next row is equally likely to have any rank among n
    known rows. So the band holds ``COVERAGE (n + 1) / n`` of the known rows. Weighted
    rows count as ``n = (sum w)^2 / sum w^2``.

    Args:
        tags: Tags of each row, shape (rows,). [-]
        left: log(measured / predicted) of each, left out, shape (rows,). [1]

    Returns:
        The band, without groups. [1]

    References:
        Vovk et al. 2005, split conformal prediction; Kish 1965, effective sample size.
    """
    weight = source_weights(tags)
    rows = weight.sum() ** 2 / (weight**2).sum()
    outside = (1 - min(COVERAGE * (rows + 1) / rows, WIDEST)) / 2
    low, high = quantiles(left, weight, (outside, 1 - outside))
    sources = len({tag.source for tag in tags})
    return Intervals(everything=_Bounds(low, high, len(tags), sources).group)


def _keys(tag: Tags) -> tuple[str, ...]:
    return group_keys(arch=tag.arch, stack=tag.stack, moe=tag.moe, waits=tag.waits)


def _bounds(
    tags: Sequence[Tags], left: Floats, weight: Floats, chosen: Flags
) -> _Bounds:
    """Quantiles of some rows, with the conformal correction for the next source.

    A new source is equally likely to have any rank among m known sources. So the
    share COVERAGE of it lies within the share ``COVERAGE (m + 1) / m`` of the known.
    """
    sources = len({t.source for t, one in zip(tags, chosen, strict=True) if one})
    share = min(COVERAGE * (sources + 1) / max(sources, 1), WIDEST)
    outside = (1 - share) / 2
    low, high = quantiles(left[chosen], weight[chosen], (outside, 1 - outside))
    return _Bounds(low, high, int(chosen.sum()), sources)


def quantiles(
    values: Floats, weight: Floats, at: tuple[float, float]
) -> tuple[float, float]:
    """Quantiles of weighted values, interpolated between their middles.

    Args:
        values: Shape (n,). [1]
        weight: Shape (n,). [1]
        at: Shares of the weight below. [1]

    Returns:
        One value for each share. [1]
    """
    order = np.argsort(values)
    cumulated = np.cumsum(weight[order])
    middle = (cumulated - weight[order] / 2) / cumulated[-1]
    low, high = np.interp(at, middle, values[order])
    return float(low), float(high)


@dataclass(frozen=True)
class Held:
    """Rows inside intervals that never saw them, and the bounds.

    Attributes:
        inside: 1 for a row inside its interval, else 0, shape (rows,). [-]
        low: Log of the lower bound over the prediction, shape (rows,). [1]
        high: Log of the upper bound over the prediction, shape (rows,). [1]
    """

    inside: Floats
    low: Floats
    high: Floats


def nested(
    observed: Observed,
    bands_of: Callable[[Sequence[Tags], Floats], Intervals] = intervals_of,
) -> Held:
    """Intervals for every source from fits and errors that never saw it.

    For a source S the constants are fitted without S. The interval of S comes from
    the errors of every other source S', under a fit without S and S'.

    Args:
        observed: All rows. [-]
        bands_of: Makes bands of errors. [-]

    Returns:
        For each row, 1 where the interval held it, and the bounds, shape (rows,). [-]
    """
    inside, low, high = (np.zeros(len(observed)) for _ in range(3))
    for out, others in folds(observed, "source"):
        rest, held = observed.take(others), observed.take(out)
        errors = np.empty(len(rest))
        for inner, innermost in folds(rest, "source"):
            fit = fit_all(rest.take(innermost))
            errors[inner] = fit.left(rest.take(inner))
        known = bands_of(rest.tags, errors)
        bands = [nearest_band(known, tag) for tag in held.tags]
        low[out] = np.log([band.low for band in bands])
        high[out] = np.log([band.high for band in bands])
        left = fit_all(rest).left(held)
        inside[out] = (low[out] <= left) & (left <= high[out])
    return Held(inside, low, high)


def nearest_band(known: Intervals, tag: Tags) -> Group:
    """The band of the nearest group that a row belongs to.

    Args:
        known: Bands by group. [1]
        tag: Tags of the row. [-]

    Returns:
        Band of the group. [1]
    """
    return known.nearest(_keys(tag))[1]
