"""Intervals from the errors of rows left out, by group of runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.evidence.crossval import folds
from planner.evidence.hierarchy import fit_all
from planner.evidence.observed import Floats, Observed, Tags, weights
from planner.frameworks.fitted import Group, Intervals, group_keys

COVERAGE = 0.9
"""Share of measurements that an interval is to hold. [1]"""
WIDEST = 0.95
"""Share that quantiles are taken at where there are few sources. [1]"""
PARENT_SOURCES = 2.0
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
        """The mean with the parent's, weighted by sources."""
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

    A group's quantiles are averaged with its parent's, the more so the fewer
    sources it has.

    Args:
        tags: What each row belongs to, shape (rows,). [-]
        left: log(measured / predicted) of each, left out, shape (rows,). [1]

    Returns:
        Bands by stack and by architecture, dense apart from experts. [1]
    """
    weight = weights(tags)
    whole = _bounds(tags, left, weight)
    by_key: dict[str, _Bounds] = {}
    keys = [group_keys(arch=t.arch, stack=t.stack, moe=t.moe) for t in tags]
    for level in (1, 0):
        for key, *_ in sorted({(row[level], *row) for row in keys}):
            chosen = np.array([row[level] == key for row in keys])
            if chosen.sum() < FEWEST_ROWS:
                continue
            above = (
                {row[level + 1] for row in keys if row[level] == key}
                if not level
                else set()
            )
            parent = _widest([by_key[name] for name in above if name in by_key], whole)
            its = [tag for tag, one in zip(tags, chosen, strict=True) if one]
            own = _bounds(its, left[chosen], weight[chosen])
            by_key[key] = own.towards(parent)
    groups = {key: bounds.group for key, bounds in sorted(by_key.items())}
    return Intervals(groups=groups, everything=whole.group)


def _widest(parents: Sequence[_Bounds], whole: _Bounds) -> _Bounds:
    """The parent with the widest bounds; all rows where there is none."""
    return max(parents, key=lambda one: one.high - one.low, default=whole)


def _bounds(tags: Sequence[Tags], left: Floats, weight: Floats) -> _Bounds:
    """Quantiles with the conformal correction for the next source.

    Of m sources and a new one, every rank of the new one is as likely: the share
    COVERAGE of it lies within the share ``COVERAGE (m + 1) / m`` of those known.
    """
    sources = len({tag.source for tag in tags})
    share = min(COVERAGE * (sources + 1) / max(sources, 1), WIDEST)
    outside = (1 - share) / 2
    low, high = quantiles(left, weight, (outside, 1 - outside))
    return _Bounds(low, high, len(tags), sources)


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
    """What intervals did for rows that they never saw.

    Attributes:
        inside: Which rows lie in their interval, shape (rows,). [-]
        low: Log of the lower bound over the prediction, shape (rows,). [1]
        high: Log of the upper bound over the prediction, shape (rows,). [1]
    """

    inside: Floats
    low: Floats
    high: Floats


def nested(observed: Observed) -> Held:
    """Intervals for every source from fits and errors that never saw it.

    For a source S the constants are fitted without S, and the errors that its
    interval comes from are of every other source S' under a fit without S and S'.

    Args:
        observed: All rows. [-]

    Returns:
        For each row, whether it was held, and its bounds, shape (rows,). [-]
    """
    inside, low, high = (np.zeros(len(observed)) for _ in range(3))
    for out, others in folds(observed, "source"):
        rest, held = observed.take(others), observed.take(out)
        errors = np.empty(len(rest))
        for inner, innermost in folds(rest, "source"):
            fit = fit_all(rest.take(innermost))
            errors[inner] = fit.left(rest.take(inner))
        known = intervals_of(rest.tags, errors)
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
        tag: What the row belongs to. [-]

    Returns:
        Its band. [1]
    """
    keys = group_keys(arch=tag.arch, stack=tag.stack, moe=tag.moe)
    return known.nearest(keys)[1]
