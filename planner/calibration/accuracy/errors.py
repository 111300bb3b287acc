"""Error figures of a set of outcomes, over rows and as the average over sources."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from planner.calibration.accuracy.outcome import Outcome


class Errors(BaseModel):
    """Errors of one quantity; a figure of no rows is null."""

    model_config = ConfigDict(frozen=True)

    n: int = 0
    """Rows with a prediction and a measurement; for an average, the sources. [1]"""
    mape: float | None = None
    """Mean of the absolute error. [1]"""
    median: float | None = None
    """Median of the absolute error. [1]"""
    p90: float | None = None
    """90th percentile of the absolute error. [1]"""
    bias: float | None = None
    """Mean of the signed error; above 0, predictions are too high. [1]"""
    coverage: float | None = None
    """Share of measurements inside the 90 % interval. [1]"""


LARGE = 0.08
"""Claimed gain over a tuned run that asks for a reason. [1]"""


class Gains(BaseModel):
    """Gains that plans claim over measured layouts; a figure of no rows is null."""

    model_config = ConfigDict(frozen=True)

    n: int = 0
    """Rows whose job was planned. [1]"""
    median: float | None = None
    """Median of the gain. [1]"""
    p90: float | None = None
    """90th percentile of the gain. [1]"""
    over_8_percent: float | None = None
    """Share of rows whose plan claims more than 8 %. [1]"""


class Accuracy(BaseModel):
    """Errors of step time and of peak memory, and gains of plans where asked for."""

    model_config = ConfigDict(frozen=True)

    step_time: Errors = Errors()
    memory: Errors = Errors()
    claimed_gain: Gains = Gains()


def accuracy(outcomes: Iterable[Outcome]) -> Accuracy:
    """Errors over rows, every row the same weight.

    Args:
        outcomes: Rows to count, shape (rows,). [-]

    Returns:
        Errors of step time and of peak memory, and gains that plans claim. [-]
    """
    rows = tuple(outcomes)
    return Accuracy(
        step_time=_step_errors(rows),
        memory=_memory_errors(rows),
        claimed_gain=_gains(rows),
    )


def macro_accuracy(outcomes: Iterable[Outcome]) -> Accuracy:
    """Errors as the average over sources, every source the same weight.

    Each figure is the mean over sources of the source's figure. A source of two
    hundred rows counts as much as a source of three.

    Args:
        outcomes: Rows to count, shape (rows,). [-]

    Returns:
        Errors of step time and of peak memory; `n` counts sources. [-]
    """
    sources = tuple(by_key(outcomes, lambda row: row.source).values())
    return Accuracy(
        step_time=_mean(list(map(_step_errors, sources))),
        memory=_mean(list(map(_memory_errors, sources))),
    )


def by_key(
    outcomes: Iterable[Outcome], key: Callable[[Outcome], str]
) -> dict[str, list[Outcome]]:
    """Outcomes sorted into groups.

    Args:
        outcomes: Rows, shape (rows,). [-]
        key: Name of a row's group. [-]
    """
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for row in outcomes:
        groups[key(row)].append(row)
    return dict(groups)


def step_within(row: Outcome) -> bool | None:
    """Tell if the measured step time is inside the predicted interval.

    Returns:
        True or False; None where either is absent. [-]
    """
    return _within(row.step_low_s, row.measured_step_s, row.step_high_s)


def memory_within(row: Outcome) -> bool | None:
    """Tell if the measured peak memory is inside the predicted interval.

    Returns:
        True or False; None where either is absent. [-]
    """
    return _within(row.memory_low_gib, row.measured_memory_gib, row.memory_high_gib)


def _within(low: float | None, value: float | None, high: float | None) -> bool | None:
    if low is None or value is None or high is None:
        return None
    return low <= value <= high


def _step_errors(rows: Sequence[Outcome]) -> Errors:
    return _errors([r.step_error for r in rows], [step_within(r) for r in rows])


def _memory_errors(rows: Sequence[Outcome]) -> Errors:
    return _errors([r.memory_error for r in rows], [memory_within(r) for r in rows])


def _errors(signed: Iterable[float | None], within: Iterable[bool | None]) -> Errors:
    known = np.array([error for error in signed if error is not None])
    inside = [hit for hit in within if hit is not None]
    if not known.size:
        return Errors()
    size = np.abs(known)
    return Errors(
        n=known.size,
        mape=float(size.mean()),
        median=float(np.median(size)),
        p90=float(np.percentile(size, 90)),
        bias=float(known.mean()),
        coverage=float(np.mean(inside)) if inside else None,
    )


def _gains(rows: Iterable[Outcome]) -> Gains:
    known = np.array([row.claimed_gain for row in rows if row.claimed_gain is not None])
    if not known.size:
        return Gains()
    return Gains(
        n=known.size,
        median=float(np.median(known)),
        p90=float(np.percentile(known, 90)),
        over_8_percent=float(np.mean(known > LARGE)),
    )


def _mean(each: Sequence[Errors]) -> Errors:
    """Mean of every figure over the members that have the figure."""
    filled = [errors for errors in each if errors.n]
    figures = Errors.model_fields.keys() - {"n"}
    means = {name: _mean_of(filled, name) for name in figures}
    return Errors(n=len(filled), **means)


def _mean_of(filled: Sequence[Errors], name: str) -> float | None:
    values = [v for errors in filled if (v := getattr(errors, name)) is not None]
    return float(np.mean(values)) if values else None
