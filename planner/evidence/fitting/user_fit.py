"""A user's measured rows, sorted by GPU and stack and fitted."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations, groupby
from math import exp

from planner.errors import BadInputError
from planner.evidence.accuracy.outcome import Outcome
from planner.evidence.accuracy.price import described, impossible
from planner.evidence.fitting.calibrate import Calibrated, calibrate
from planner.evidence.fitting.sensitivity import DOCUMENTED, Run, run_of
from planner.evidence.mapping.case import Case
from planner.evidence.mapping.cases import case_of
from planner.evidence.rows.rows import Row
from planner.evidence.rows.unsupported import UnsupportedError
from planner.job.calibrated import shipped_profile
from planner.job.calibration_file import CalibrationFile, StackFit

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
        runs: Runs by GPU, framework and stack. [-]
        skipped: Id of a row to the reason why it was left out. [text]
        contradictions: Pairs of rows that cannot both be right. [text]
    """

    runs: dict[Pair, list[Run]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    contradictions: tuple[str, ...] = ()


def collect(rows: Iterable[Row], own: CalibrationFile | None = None) -> Collected:
    """Sort measured rows by GPU and stack.

    Args:
        rows: Rows as read. [-]
        own: Kernels that the user measured, or None. [-]

    Returns:
        Runs on the shipped constants; rows without a step time, suspect rows, rows
        that have no price or lie too far from it are skipped with a reason. [-]
    """
    kernels = own and own.model_copy(update={"stacks": ()})
    found, outcomes = Collected(), []
    for row in rows:
        try:
            case = case_of(row).under(kernels)
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
    """Reason why a row is no evidence of the step time; empty where it is."""
    if not case.row.counted:
        return case.row.check
    if case.measured.step_s is None:
        return "has no step time"
    return impossible(case)


def _why(error: Exception) -> str:
    told = isinstance(error, UnsupportedError | BadInputError)
    return str(error) if told else f"{type(error).__name__}: {error}"


def _add(found: Collected, case: Case) -> str:
    """Take a run, or say why it is too far from its price."""
    workload = case.workload
    run = run_of(case, workload)
    times = exp(run.log_ratio(DOCUMENTED))
    if not 1 / FARTHEST <= times <= FARTHEST:
        return (
            f"measured {run.measured_s:.4g} s, predicted {run.measured_s / times:.4g} "
            f"s: more than {FARTHEST:g} times apart, so one of them is of another job"
        )
    pair = (workload.gpu.name, workload.framework.name, workload.framework.profile.name)
    found.runs.setdefault(pair, []).append(run)
    return ""


def contradictions(outcomes: Iterable[Outcome]) -> list[str]:
    """Rows of one job and one layout whose steps no noise explains.

    Args:
        outcomes: Priced rows. [-]

    Returns:
        One sentence for each two rows. [text]
    """

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


def fit_pairs(found: Collected) -> dict[Pair, Calibrated]:
    """Fit every pair of GPU and stack that has collected runs.

    Args:
        found: The runs, sorted. [-]

    Returns:
        The fit of each pair, in order of name. [-]

    Raises:
        BadInputError: scipy is not installed.
    """
    fits = {}
    for pair, runs in sorted(found.runs.items(), key=lambda item: item[0]):
        _, framework, stack = pair
        shipped = shipped_profile(framework, stack, runs[0].workload.gpu.arch)
        fits[pair] = calibrate(runs, shipped)
    return fits


def file_of(
    fits: dict[Pair, Calibrated], own: CalibrationFile | None = None
) -> CalibrationFile:
    """Calibration file of the fits, for `--calibration` to read.

    Args:
        fits: Fits by GPU, framework and stack. [-]
        own: A file whose kernels are kept, or None. [-]

    Returns:
        The fitted constants; those refused are left out. [-]
    """
    stacks = tuple(
        StackFit(
            gpu=gpu,
            framework=framework,
            stack=stack,
            step_factor=round(fit.factor, 5),
            constants={name: round(value, 5) for name, value in fit.fitted.items()},
            rows=fit.rows,
            residual=round(fit.residual, 5),
        )
        for (gpu, framework, stack), fit in fits.items()
    )
    return CalibrationFile(gpus=own.gpus if own else {}, stacks=stacks)
