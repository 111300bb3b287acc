"""The answer of `planner tune`: short measured runs, and the run to make next."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from planner.specs.layouts.layout import Layout

State = Literal["waiting", "measured", "failed"]


class TunedRun(BaseModel):
    """One plan as a short run."""

    model_config = ConfigDict(frozen=True)

    name: str
    """Folder of the run. [text]"""
    state: State
    layout: Layout
    framework: str
    settings: dict[str, str]
    """Values that the search chose for the training block, by field."""
    differs: str
    """Difference from the layout of the first run, empty for that run. [text]"""
    predicted_s: float
    """Predicted step, calibrated where runs were measured. [s]"""
    expected_s: float
    """Step as predicted and measured together. [s]"""
    measured_s: float | None = None
    """Median step of the log. [s]"""
    device_gib: float
    """Predicted device peak. [GiB]"""
    oom_probability: float
    """Probability that the run does not fit, given the runs made. [1]"""
    measured_gib: float | None = None
    """Peak that the log states. [GiB]"""
    counter: str = ""
    """Counter of that peak: allocated or reserved. [text]"""
    faster: float | None = None
    """Probability that it fits and is faster than the best measured run. [1]"""
    gain: float | None = None
    """Step that a measurement is expected to save, as a share of the best measured
    step; None where the run was made, and before the first. [1]"""
    reason: str = ""
    """Reason why the run failed. [text]"""


class Tuning(BaseModel):
    """The whole answer, schema ``planner/tuning@1``."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_name: Literal["planner/tuning@1"] = Field(
        default="planner/tuning@1", alias="schema"
    )
    folder: str
    title: str
    """Model, GPUs and framework. [text]"""
    status: Literal["started", "measuring", "settled"]
    """Settled once no run is worth its time, or the budget is spent."""
    runs: tuple[TunedRun, ...]
    next: str | None
    """Name of the run to make; None once settled."""
    best: str | None
    """Name of the best measured run."""
    first: str | None
    """Name of the run of the first plan, as planned with the calibration; None where
    that plan is not among the runs."""
    why: str
    """Reason for the next run, or for the end. [text]"""
    spent: int
    """Runs made, failed ones included. [1]"""
    budget: int
    """Most runs. [1]"""
    added: tuple[str, ...] = ()
    """Runs that the new plan added to the folder. [text]"""
    calibration: str = ""
    """File of the factors that the runs gave; empty before the first. [path]"""
    step_factor: float | None = None
    """Measured over predicted step of this job, as fitted. [1]"""
    spread: float
    """Median error of a comparison, at a difference of one step, as measured here. [1]
    """
    noise: float
    """Standard deviation of a measured step. [1]"""
    script: str
    """Command that makes the next run; for the best run the command that starts it.
    [text]"""
    warnings: tuple[str, ...] = ()
