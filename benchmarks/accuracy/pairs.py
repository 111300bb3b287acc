"""Errors of predicted differences between two layouts, over measured sweeps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from planner.calibration.accuracy.errors import by_key
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.ranking import SMALLEST_SWEEP
from planner.specs.answer.comparison import Comparison, differing
from planner.specs.answer.uncertainty import WAITING


@dataclass(frozen=True)
class Pair:
    """Two measured layouts of one job.

    Attributes:
        source: Publication. [text]
        sweep: Key of the job. [text]
        predicted: log of the ratio of the predicted steps. [1]
        measured: log of the ratio of the measured steps. [1]
        differing: Time that differs between the layouts, over the step. [1]
    """

    source: str
    sweep: str
    predicted: float
    measured: float
    differing: float

    @property
    def error(self) -> float:
        """Error of the comparison. [1]."""
        return abs(self.measured - self.predicted)

    @property
    def reversed(self) -> bool:
        """True where the measured order is the reverse of the predicted order."""
        return self.measured * self.predicted < 0


def pairs(outcomes: Iterable[Outcome]) -> list[Pair]:
    """All pairs of layouts within jobs that were measured under enough layouts.

    A layout that was measured several times counts once, with its median. Steps that
    the host decides are left out: they tell of launches alone.

    Args:
        outcomes: Rows that count and are priced, shape (rows,). [-]

    Returns:
        The pairs, those of a sweep together. [-]
    """
    usable = [row for row in outcomes if _is_usable(row)]
    groups = by_key(usable, lambda row: f"{row.source}: {row.sweep}")
    return [pair for rows in groups.values() for pair in _within(rows)]


def _is_usable(row: Outcome) -> bool:
    timed = row.step_error is not None and row.causes_s is not None
    return bool(row.sweep) and timed and row.waiting < WAITING


def _within(rows: Sequence[Outcome]) -> list[Pair]:
    same = by_key(rows, lambda row: f"{row.layout} {row.predicted_step_s}")
    if len(same) < SMALLEST_SWEEP:
        return []
    layouts = [
        (group[0], float(np.median([row.measured_step_s for row in group])))
        for group in same.values()
    ]
    return [_pair(*one, *other) for one, other in combinations(layouts, 2)]


def _pair(one: Outcome, took: float, other: Outcome, other_took: float) -> Pair:
    assert one.causes_s is not None
    assert other.causes_s is not None
    assert one.predicted_step_s is not None
    assert other.predicted_step_s is not None
    return Pair(
        source=one.source,
        sweep=one.sweep,
        predicted=float(np.log(other.predicted_step_s / one.predicted_step_s)),
        measured=float(np.log(other_took / took)),
        differing=differing(one.causes_s, other.causes_s),
    )


def comparison(found: Sequence[Pair], *, date: str, source: str) -> Comparison:
    """Spread of the errors of comparisons, and how often an order is reversed.

    ``spread`` is the weighted median of ``error / sqrt(differing)``; ``kept`` is the
    least-squares slope of measured on predicted differences. All sources weigh the
    same, all sweeps of a source, and all pairs of a sweep. Pairs without a difference
    have nothing to compare.

    Args:
        found: Pairs, at least one of which differs, shape (pairs,). [-]
        date: Day of the rows' prices. [text]
        source: Command that made the comparison. [text]

    Returns:
        The spread, and the shares of pairs whose measured order is reversed. [-]
    """
    used = [pair for pair in found if pair.differing > 0]
    weight = _weights(used)
    scale = np.sqrt([pair.differing for pair in used])
    spread = round(_median(np.array([p.error for p in used]) / scale, weight), 3)
    tied = np.abs([pair.predicted for pair in used]) <= spread * scale
    turned = np.array([pair.reversed for pair in used])
    return Comparison(
        spread=spread,
        kept=_slope(used, weight),
        pairs=len(used),
        sweeps=len({(pair.source, pair.sweep) for pair in used}),
        sources=len({pair.source for pair in used}),
        reversed_tied=_share(turned, weight, tied),
        reversed_apart=_share(turned, weight, ~tied),
        date=date,
        source=source,
    )


def _slope(found: Sequence[Pair], weight: NDArray[np.float64]) -> float:
    """Measured over predicted difference of pairs; 1 where none is predicted. [1]."""
    predicted = np.array([pair.predicted for pair in found])
    measured = np.array([pair.measured for pair in found])
    whole = float((weight * predicted**2).sum())
    slope = float((weight * predicted * measured).sum()) / whole if whole else 1.0
    return round(max(slope, 0.001), 3)


def _weights(found: Sequence[Pair]) -> NDArray[np.float64]:
    """Weights: 1 / (pairs of the sweep * sweeps of the source). [1]."""
    inside: dict[tuple[str, str], int] = {}
    for pair in found:
        key = (pair.source, pair.sweep)
        inside[key] = inside.get(key, 0) + 1
    sweeps = [source for source, _ in inside]
    return np.array(
        [1 / inside[p.source, p.sweep] / sweeps.count(p.source) for p in found]
    )


def _median(values: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    order = np.argsort(values, kind="stable")
    passed = np.cumsum(weight[order]) / weight.sum()
    return float(values[order][np.searchsorted(passed, 0.5)])


def _share(
    hits: NDArray[np.bool_], weight: NDArray[np.float64], chosen: NDArray[np.bool_]
) -> float:
    whole = float(weight[chosen].sum())
    return round(float(weight[chosen & hits].sum()) / whole, 3) if whole else 0.0
