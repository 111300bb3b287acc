"""The answer of `planner validate`, schema ``planner/validation@1``."""

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner import __version__
from planner.calibration.accuracy.errors import memory_within, step_within
from planner.calibration.accuracy.outcome import Outcome, Status
from planner.calibration.accuracy.ranking import Sweep, sweeps
from planner.calibration.accuracy.summary import Summary, is_v100, summarise

Bounds = tuple[float, float]


class Predicted(BaseModel):
    """Prediction of a row; null where there is none."""

    model_config = ConfigDict(frozen=True)

    step_time_s: float | None
    step_time_interval_s: Bounds | None
    peak_memory_gib: float | None
    peak_memory_interval_gib: Bounds | None
    verdict: str


class Measured(BaseModel):
    """Measurement of a row; null where the row states none."""

    model_config = ConfigDict(frozen=True)

    step_time_s: float | None
    peak_memory_gib: float | None
    memory_counter: str
    oom: bool


class Error(BaseModel):
    """Signed relative errors, ``predicted / measured - 1``. [1]."""

    model_config = ConfigDict(frozen=True)

    step_time: float | None
    memory: float | None


class Claimed(BaseModel):
    """The plan of a row's job; null and empty where the job was not planned."""

    model_config = ConfigDict(frozen=True)

    step_time_s: float | None
    """Predicted step of the fastest layout, the row's own among them. [s]"""
    layout: str
    gain: float | None
    """``1 - step_time_s / predicted.step_time_s``. [1]"""
    status: str


class RowResult(BaseModel):
    """One row of the answer."""

    model_config = ConfigDict(frozen=True)

    id: str
    status: Status
    reason: str
    predicted: Predicted
    measured: Measured
    error: Error
    claimed: Claimed
    within_interval: bool | None
    """Step time is inside its interval, or memory where no time was measured."""
    memory_within_interval: bool | None
    counted: bool
    note: str
    file: str
    source: str
    model: str
    gpu: str
    gpus: int
    framework: str
    stack: str
    moe: bool
    seq_len: int
    precision: str
    layout: str
    sweep: str
    split_group: str


class Validation(BaseModel):
    """Every row with its errors, and their summary; V100 rows apart."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_name: Literal["planner/validation@1"] = Field(
        default="planner/validation@1", alias="schema"
    )
    rows: tuple[RowResult, ...]
    summary: Summary
    summary_v100: Summary
    sweeps: tuple[Sweep, ...]
    versions: dict[str, str]
    outcomes: tuple[Outcome, ...] = Field(exclude=True, repr=False)
    """Outcomes that the rows were made of; not part of the JSON."""


def validation(outcomes: Iterable[Outcome]) -> Validation:
    """Summarise outcomes.

    Args:
        outcomes: Every row read, in order of listing, shape (rows,). [-]
    """
    every = tuple(outcomes)
    apart = [row for row in every if is_v100(row)]
    main = [row for row in every if not is_v100(row)]
    ranked = [row for row in every if row.counted and row.status == "ok"]
    return Validation(
        rows=tuple(map(_row_result, every)),
        summary=summarise(main),
        summary_v100=summarise(apart),
        sweeps=sweeps(ranked),
        versions={"planner": __version__},
        outcomes=every,
    )


def _row_result(row: Outcome) -> RowResult:
    within, memory = step_within(row), memory_within(row)
    shared = RowResult.model_fields.keys() & Outcome.model_fields.keys()
    return RowResult(
        **{name: getattr(row, name) for name in shared},
        predicted=Predicted(
            step_time_s=row.predicted_step_s,
            step_time_interval_s=_bounds(row.step_low_s, row.step_high_s),
            peak_memory_gib=row.predicted_memory_gib,
            peak_memory_interval_gib=_bounds(row.memory_low_gib, row.memory_high_gib),
            verdict=row.verdict,
        ),
        measured=Measured(
            step_time_s=row.measured_step_s,
            peak_memory_gib=row.measured_memory_gib,
            memory_counter=row.memory_counter,
            oom=row.oom,
        ),
        error=Error(step_time=row.step_error, memory=row.memory_error),
        claimed=Claimed(
            step_time_s=row.planned_step_s,
            layout=row.planned_layout,
            gain=row.claimed_gain,
            status=row.planned_status,
        ),
        within_interval=memory if within is None else within,
        memory_within_interval=memory,
    )


def _bounds(low: float | None, high: float | None) -> Bounds | None:
    return None if low is None or high is None else (low, high)
