"""Fits the shipped constants to the rows, and finds their errors on other rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache

import numpy as np
from joblib import Parallel, delayed

from benchmarks.accuracy.crossval import Residuals, residuals
from benchmarks.accuracy.intervals import shipped
from benchmarks.accuracy.price_for_fit import Observation, observe, steps
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.fitting.fit_columns import Observed
from planner.calibration.fitting.hierarchy import JointFit, fit_all
from planner.calibration.rows.rows import Row
from planner.frameworks.fitted import (
    DOCUMENTED,
    AllIntervals,
    Fit,
    memory_keys,
    time_keys,
)
from planner.specs.answer.estimate import Interval
from planner.specs.answer.uncertainty import DEVICE, Band


@dataclass(frozen=True)
class Study:
    """All results of a study of the rows.

    Attributes:
        fit: Constants to ship. [-]
        observations: Every row priced with the fit. [-]
        observed: Rows with a step time that counts. [-]
        residuals: Errors of `observed`: in-sample, group out, source out. [-]
        linearisation: Largest and median |difference| between the linear model of the
            fit and an exact price, log step. [1]
    """

    fit: Fit
    observations: tuple[Observation, ...]
    observed: Observed
    residuals: Residuals
    linearisation: tuple[float, float]


def study(rows: Sequence[Row], workers: int) -> Study:
    """Fit to all rows, then without each group and each source.

    The model is made linear at the documented constants and fitted. It is made linear
    again at the fitted constants and fitted again. The second fit ships.

    Args:
        rows: As read. [-]
        workers: Processes. [1]

    Returns:
        The study. [-]
    """
    first = _shipped(fit_all(steps(_observe(rows, DOCUMENTED, workers))))
    again = steps(_observe(rows, first, workers), first)
    final = _shipped(fit_all(again))
    slopes = dict(zip((t.id for t in again.tags), again.jacobian, strict=True))
    observations = tuple(
        replace(one, slopes=slopes.get(one.outcome.id))
        for one in _observe(rows, final, workers, slopes=False)
    )
    observed = steps(observations, final)
    return Study(
        fit=final,
        observations=observations,
        observed=observed,
        residuals=residuals(observed),
        linearisation=_linearisation(again, observed),
    )


def _observe(
    rows: Iterable[Row], fit: Fit, workers: int, *, slopes: bool = True
) -> tuple[Observation, ...]:
    parallel = Parallel(n_jobs=workers, batch_size=16)
    return tuple(parallel(delayed(observe)(row, fit, slopes=slopes) for row in rows))


def _shipped(fit: JointFit) -> Fit:
    """The fit as the file has it, to three decimals."""
    stacks = {name: fit.deviation("stack", name) for name in fit.members("stack")}
    archs = {name: fit.deviation("arch", name) for name in fit.members("arch")}
    return Fit(
        date=date.today().isoformat(),  # noqa: DTZ011  # a day, for people
        source="python -m benchmarks.accuracy, on the rows of benchmarks/accuracy",
        everything=fit.deviation("everything"),
        architectures={name: own for name, own in archs.items() if own.moved()},
        stacks={name: own for name, own in stacks.items() if own.moved()},
    )


def _linearisation(again: Observed, exact: Observed) -> tuple[float, float]:
    """Largest and median gap between linear and exact prices of the final fit."""
    known = {tag.id: at for at, tag in enumerate(again.tags)}
    both = [(known[t.id], at) for at, t in enumerate(exact.tags) if t.id in known]
    one, other = (np.array(side, dtype=int) for side in zip(*both, strict=True))
    # Both ratios are carried back to the documented constants: equal in a linear model.
    gap = np.abs(again.log_ratio[one] - exact.log_ratio[other])
    return float(gap.max()), float(np.median(gap))


def outcomes_of(study: Study, which: str) -> tuple[Outcome, ...]:
    """Every row with the step that constants fitted without it predict.

    Args:
        study: The study. [-]
        which: in_sample, without_group or without_source. [text]

    Returns:
        Rows in order, with the intervals that other sources' first contact gives. [-]
    """
    left = getattr(study.residuals, which)
    times = {tag.id: left[at] for at, tag in enumerate(study.observed.tags)}
    return tuple(
        _banded(_with_step(one.outcome, times.get(one.outcome.id)), one.tags.arch)
        if one.tags
        else one.outcome
        for one in study.observations
    )


def _with_step(row: Outcome, left: float | None) -> Outcome:
    if left is None or row.measured_step_s is None:
        return row
    step = float(row.measured_step_s / np.exp(left))
    return row.model_copy(update={"predicted_step_s": step})


@cache
def _bands(without: str) -> AllIntervals:
    return shipped(without=without)


def _banded(row: Outcome, arch: str) -> Outcome:
    """A row with the intervals, and the verdict, that other sources give it."""
    known, room = _bands(row.source), row.framework
    time = known.time.band(time_keys(room, row.stack), arch)
    memory, device = (
        known.memory.band(memory_keys(room, counter), arch)
        for counter in (row.memory_counter or DEVICE, DEVICE)
    )
    step, peak = row.predicted_step_s, row.predicted_memory_gib
    return row.model_copy(
        update={
            "step_low_s": step and step * time.low,
            "step_high_s": step and step * time.high,
            "memory_low_gib": peak and peak * memory.low,
            "memory_high_gib": peak and peak * memory.high,
            "verdict": _verdict(row, device),
        }
    )


def _verdict(row: Outcome, band: Band) -> str:
    peak, capacity = row.predicted_device_gib, row.capacity_gib
    if peak is None or capacity is None:
        return row.verdict
    return Interval.around(peak, band).verdict(capacity)
