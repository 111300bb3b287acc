"""Fits the shipped constants to the rows, and finds their errors on other rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
from joblib import Parallel, delayed

from benchmarks.accuracy.crossval import Residuals, residuals
from benchmarks.accuracy.intervals import (
    Held,
    intervals_of,
    nearest_band,
    nested,
    pooled,
)
from benchmarks.accuracy.price_for_fit import Observation, memories, observe, steps
from planner.evidence.accuracy.outcome import Outcome
from planner.evidence.fitting.fit_columns import Observed
from planner.evidence.fitting.hierarchy import JointFit, fit_all
from planner.evidence.rows.rows import Row
from planner.frameworks.fitted import DOCUMENTED, AllIntervals, Fit, Intervals
from planner.specs.answer.uncertainty import Band


@dataclass(frozen=True)
class Study:
    """All results of a study of the rows.

    Attributes:
        fit: Constants to ship. [-]
        intervals: Bands to ship. [-]
        observations: Every row priced with the fit. [-]
        observed: Rows with a step time that counts. [-]
        residuals: Errors of `observed`: in-sample, group out, source out. [-]
        held: Intervals of `observed`, nested. [-]
        linearisation: Largest and median |difference| between the linear model of the
            fit and an exact price, log step. [1]
        memories: Rows with a measured peak memory. [-]
        memory_held: Intervals of `memories`, nested. [-]
        device: By id of a row, the band that other sources give its memory. [1]
    """

    fit: Fit
    intervals: AllIntervals
    observations: tuple[Observation, ...]
    observed: Observed
    residuals: Residuals
    held: Held
    linearisation: tuple[float, float]
    memories: Observed
    memory_held: Held
    device: dict[str, Band]


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
    left = residuals(observed)
    memory = memories(observations)
    return Study(
        fit=final,
        intervals=_intervals(observed, left, memory),
        observations=observations,
        observed=observed,
        residuals=left,
        held=nested(observed),
        linearisation=_linearisation(again, observed),
        memories=memory,
        memory_held=nested(memory, pooled),
        device=_device_bands(observations, memory),
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


def _intervals(observed: Observed, left: Residuals, memory: Observed) -> AllIntervals:
    return AllIntervals(
        date=date.today().isoformat(),  # noqa: DTZ011
        source="errors of rows whose source the fit had left out, "
        "python -m benchmarks.accuracy",
        time=intervals_of(observed.tags, left.without_source),
        memory=pooled(memory.tags, memory.log_ratio),
    )


def _device_bands(
    observations: Iterable[Observation], memory: Observed
) -> dict[str, Band]:
    """For every row the band that other sources give its device memory."""
    bands: dict[str, Band] = {}
    known: dict[str, Intervals] = {}
    for one in observations:
        if one.tags is None:
            continue
        source = one.tags.source
        if source not in known:
            others = memory.take(~memory.where("source", source))
            known[source] = pooled(others.tags, others.log_ratio)
        bands[one.tags.id] = nearest_band(known[source], one.tags).band
    return bands


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
        Rows in order, with nested intervals of time and of memory. [-]
    """
    left = getattr(study.residuals, which)
    time = {
        tag.id: (left[at], study.held.low[at], study.held.high[at])
        for at, tag in enumerate(study.observed.tags)
    }
    held = study.memory_held
    memory = {
        tag.id: (held.low[at], held.high[at])
        for at, tag in enumerate(study.memories.tags)
    }
    return tuple(
        _with_verdict(_with_memory(_with_step(one.outcome, time), memory), study.device)
        for one in study.observations
    )


def _with_step(row: Outcome, time: dict[str, tuple[float, float, float]]) -> Outcome:
    if row.id not in time or row.measured_step_s is None:
        return row
    left, low, high = time[row.id]
    step = float(row.measured_step_s / np.exp(left))
    return row.model_copy(
        update={
            "predicted_step_s": step,
            "step_low_s": step * float(np.exp(low)),
            "step_high_s": step * float(np.exp(high)),
        }
    )


def _with_memory(row: Outcome, memory: dict[str, tuple[float, float]]) -> Outcome:
    if row.id not in memory or row.predicted_memory_gib is None:
        return row
    low, high = memory[row.id]
    return row.model_copy(
        update={
            "memory_low_gib": row.predicted_memory_gib * float(np.exp(low)),
            "memory_high_gib": row.predicted_memory_gib * float(np.exp(high)),
        }
    )


def _with_verdict(row: Outcome, device: dict[str, Band]) -> Outcome:
    """The verdict under the band that other sources give."""
    band, peak = device.get(row.id), row.predicted_device_gib
    if band is None or peak is None or row.capacity_gib is None:
        return row
    verdict = "at-risk" if peak * band.high > row.capacity_gib else "fits"
    oom = peak * band.low > row.capacity_gib
    return row.model_copy(update={"verdict": "oom" if oom else verdict})
