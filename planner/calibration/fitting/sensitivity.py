"""Slopes of a predicted step in the six constants of a stack."""

from dataclasses import dataclass, replace

import numpy as np

from planner.calibration.fitting.fit_columns import Floats
from planner.calibration.mapping.case import Case
from planner.cost.estimate.pricing import price
from planner.cost.workload import Workload
from planner.job.calibrated import shape_of
from planner.job.calibration_file import Job
from planner.planning.prediction.predict import complete
from planner.specs.frameworks.deviation import CONSTANTS, FACTORS, SECONDS, Deviation
from planner.specs.layouts.layout import Layout

DOCUMENTED = Deviation()
"""No deviation at all. [1]"""
NUDGE = 0.02
"""Relative change of a constant, or of the step, in a finite difference. [1]"""


@dataclass(frozen=True)
class Run:
    """A measured run that can be priced again under other constants.

    Attributes:
        workload: The job on the stack to deviate from. [-]
        layout: Complete layout. [-]
        measured_s: Measured step time. [s]
        held: Constants that the job sets by hand, which no fit moves. [text]
        job: Shape of the model, and the campaign. [text]
    """

    workload: Workload
    layout: Layout
    measured_s: float
    held: frozenset[str] = frozenset()
    job: Job = ("", "")

    def step_s(self, deviation: Deviation) -> float:
        """Price the run with its stack's constants moved.

        Returns:
            Step time. [s]
        """
        default = DOCUMENTED.model_dump(include=set(self.held))
        moved = deviation.model_copy(update=default)
        return price(deviating(self.workload, moved), self.layout).step_s

    def log_ratio(self, deviation: Deviation) -> float:
        """Log of the run's measured step over the predicted step."""
        return float(np.log(self.measured_s / self.step_s(deviation)))


def deviating(workload: Workload, deviation: Deviation) -> Workload:
    """A job whose stack deviates."""
    profile = deviation.of(workload.framework.profile)
    framework = replace(workload.framework, profile=profile)
    return replace(workload, framework=framework)


def run_of(case: Case, workload: Workload) -> Run:
    """The run of a measured row."""
    assert case.measured.step_s is not None
    given = (case.row.spec or {}).get("stack") or {}
    held = frozenset(given) & frozenset(CONSTANTS)
    layout, step_s = complete(workload, case.layout), case.measured.step_s
    return Run(workload, layout, step_s, held, job_of(case))


def job_of(case: Case) -> Job:
    """The job that a measured row is evidence of."""
    return shape_of(case.workload.model), case.row.software.campaign or ""


def gradient(run: Run, at: Deviation = DOCUMENTED) -> Floats:
    """Finite differences of the log step around some constants.

    Returns:
        d log T over d log of each factor and over each second of step overhead,
        shape (6,) in the order of CONSTANTS. [1] or [1/s]
    """
    here = run.step_s(at)
    slopes = np.empty(len(CONSTANTS))
    for index, name in enumerate(CONSTANTS):
        size = NUDGE if name in FACTORS else NUDGE * here
        moved = run.step_s(at.then(nudged({name: size})))
        slopes[index] = np.log(moved / here) / size
    return slopes


def nudged(by: dict[str, float]) -> Deviation:
    """The deviation of some logarithms and seconds.

    Args:
        by: Log of a factor, or seconds of the step overhead, by name. [1] or [s]
    """
    fields = {
        name: value if name == SECONDS else float(np.exp(value))
        for name, value in by.items()
    }
    return Deviation.model_validate(fields)
