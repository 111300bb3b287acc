"""A user's measured rows, sorted by GPU and stack and fitted."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations, groupby
from math import exp

from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.price import described, impossible
from planner.calibration.fitting.calibrate import Calibrated, Own, calibrate
from planner.calibration.fitting.peaks import Held, Peak, held_factors, peak_of
from planner.calibration.fitting.sensitivity import DOCUMENTED, Run, job_of, run_of
from planner.calibration.mapping.case import Case
from planner.calibration.mapping.cases import case_of
from planner.calibration.rows.rows import Row
from planner.calibration.rows.unsupported import UnsupportedError
from planner.errors import BadInputError
from planner.hardware.catalog import gpu as gpu_of
from planner.hardware.reading.files import Catalog
from planner.job.calibrated import shipped_profile
from planner.job.calibration_file import CalibrationFile, Factors, Job, JobFit, StackFit

CONTRADICTION = 1.5
"""Times between two runs of one job and layout that no noise explains. [1]"""

FARTHEST = 4.0
"""Times between measured and predicted step beyond which a row is no evidence. [1]"""

Pair = tuple[str, str, str]
"""Names of a GPU, of a framework and of its stack. [text]"""


@dataclass
class Collected:
    """Runs that can be fitted to, and rows that cannot.

    Attributes:
        runs: Measured steps by GPU, framework and stack. [-]
        peaks: Measured peaks of memory by GPU, framework and stack. [-]
        skipped: Id of a row to the reason why it was left out. [text]
        contradictions: Pairs of rows that cannot both be right. [text]
    """

    runs: dict[Pair, list[Run]] = field(default_factory=dict)
    peaks: dict[Pair, list[Peak]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    contradictions: tuple[str, ...] = ()


def collect(
    rows: Iterable[Row], catalog: Catalog, own: CalibrationFile | None = None
) -> Collected:
    """Sort measured rows by GPU and stack.

    Args:
        rows: Rows as read. [-]
        catalog: Files of facts. [-]
        own: Kernels that the user measured, or None. [-]

    Returns:
        Runs on the shipped constants; rows that measured nothing, suspect rows, rows
        that have no price or lie too far from it are skipped with a reason. [-]
    """
    kernels = own and own.model_copy(update={"stacks": ()})
    found, outcomes = Collected(), []
    for row in rows:
        try:
            case = case_of(row, catalog).under(kernels)
            reason = _unfit(case) or _add(found, case)
        except Exception as error:  # noqa: BLE001
            # A fault in one row must not lose the others.
            reason = _why(error)
        if reason:
            found.skipped[row.id] = reason
        else:
            outcomes.append(described(case))
    found.contradictions = tuple(contradictions(outcomes))
    return found


def _unfit(case: Case) -> str:
    """Reason why a row is no evidence; empty where it is."""
    if not case.row.counted:
        return case.row.check
    if case.measured.step_s is None and case.measured.memory_gib is None:
        return "has neither a step time nor a peak of memory"
    return impossible(case)


def _why(error: Exception) -> str:
    told = isinstance(error, UnsupportedError | BadInputError)
    return str(error) if told else f"{type(error).__name__}: {error}"


def _add(found: Collected, case: Case) -> str:
    """Take a run, or say why it is too far from its price."""
    workload = case.workload
    pair = (workload.gpu.name, workload.framework.name, workload.framework.profile.name)
    if case.measured.step_s is not None:
        run = run_of(case, workload)
        times = exp(run.log_ratio(DOCUMENTED))
        if not 1 / FARTHEST <= times <= FARTHEST:
            return (
                f"measured {run.measured_s:.4g} s, predicted "
                f"{run.measured_s / times:.4g} s: more than {FARTHEST:g} times apart, "
                "so one of them is of another job"
            )
        found.runs.setdefault(pair, []).append(run)
    if peak := peak_of(case, job_of(case)):
        found.peaks.setdefault(pair, []).append(peak)
    return ""


def contradictions(outcomes: Iterable[Outcome]) -> list[str]:
    """Rows of one job and one layout whose steps no noise explains."""

    def same(one: Outcome) -> tuple[str, ...]:
        return (one.sweep, one.layout, one.gpu, one.stack)

    found = []
    timed = sorted((o for o in outcomes if o.measured_step_s), key=same)
    for _, twins in groupby(timed, key=same):
        for one, other in combinations(twins, 2):
            times = sorted((one.measured_step_s or 0.0, other.measured_step_s or 0.0))
            if times[1] > CONTRADICTION * times[0]:
                found.append(
                    f"{one.id} ({one.measured_step_s:.4g} s) and {other.id} "
                    f"({other.measured_step_s:.4g} s) are the same job and layout"
                )
    return found


@dataclass(frozen=True)
class Fitted:
    """Fits of step times and of memory, of one stack on one GPU.

    Attributes:
        steps: The fit of the step times. [-]
        held: Factors of memory of the jobs whose peaks were measured. [-]
        others: Factors of memory of every other job. [-]
    """

    steps: Calibrated
    held: dict[Job, Held]
    others: Held

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Jobs with a measured step or peak."""
        return tuple(dict.fromkeys([*self.steps.jobs, *self.held]))


def fit_pairs(found: Collected, catalog: Catalog) -> dict[Pair, Fitted]:
    """Fit every pair of GPU and stack that has collected runs."""
    fits = {}
    for pair in sorted({*found.runs, *found.peaks}):
        gpu, framework, stack = pair
        shipped = shipped_profile(framework, stack, gpu_of(gpu, catalog).arch)
        steps = calibrate(found.runs.get(pair, []), shipped)
        fits[pair] = Fitted(steps, *held_factors(found.peaks.get(pair, [])))
    return fits


def file_of(
    fits: dict[Pair, Fitted], own: CalibrationFile | None = None
) -> CalibrationFile:
    """Calibration file of the fits, for `--calibration` to read.

    Args:
        fits: Fits by GPU, framework and stack. [-]
        own: A file whose kernels are kept, or None. [-]

    Returns:
        The factors and the fitted constants; those refused are left out. [-]
    """
    stacks = tuple(
        StackFit(
            gpu=gpu,
            framework=framework,
            stack=stack,
            constants={n: round(v, 5) for n, v in fit.steps.fitted.items()},
            jobs=tuple(_job_fit(job, fit) for job in fit.jobs),
            **dict(_factors(fit.steps.others, fit.others)),
        )
        for (gpu, framework, stack), fit in fits.items()
    )
    return CalibrationFile(gpus=own.gpus if own else {}, stacks=stacks)


def _job_fit(job: Job, fit: Fitted) -> JobFit:
    """Factors of a measured job; what it did not measure is as of the others."""
    model, campaign = job
    steps = fit.steps.jobs.get(job, fit.steps.others)
    held = fit.held.get(job, fit.others)
    return JobFit(model=model, campaign=campaign, **dict(_factors(steps, held)))


def _factors(steps: Own, held: Held) -> Factors:
    return Factors(
        step_factor=round(steps.factor, 5),
        memory_factor=round(held.memory, 5),
        reserved_factor=round(held.reserved, 5),
        rows=max(steps.rows, held.rows),
        residual=round(steps.residual, 5),
    )
