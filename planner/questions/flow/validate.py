"""The flow of `planner validate`: measured rows, or a log, beside predictions."""

from collections.abc import Callable, Sequence
from pathlib import Path

from planner.errors import BadInputError
from planner.evidence.accuracy.logged import logged_outcome
from planner.evidence.accuracy.logged_job import planned_row, planned_text
from planner.evidence.accuracy.validate import validate
from planner.evidence.accuracy.validation import Validation, validation
from planner.evidence.rows.logs import Log
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import CalibrationFile
from planner.job.loading import Job, workload_for
from planner.job.resolve import about
from planner.launch import PlanFile, partial_of

SEARCH_TIME = 20.0
"""Longest search of one measured row's job. [s]"""


def validated(
    paths: Sequence[Path],
    *,
    catalog: Catalog,
    calibration: CalibrationFile | None,
    told: Callable[[int, int], object],
    search_s: float | None = None,
    planned: Callable[[int, int], object] | None = None,
) -> Validation:
    """Predict measured rows, and compare.

    Args:
        paths: Files of rows, or folders of them. [path]
        catalog: Files of facts. [-]
        calibration: The user's measurements, or None. [-]
        told: Called with rows done and rows in all. [-]
        search_s: Time limit of the search for each row's job; None plans none. [s]
        planned: Called with jobs planned and jobs in all. [-]

    Returns:
        The answer. [-]

    Raises:
        BadInputError: There are no rows, or none could be read.
    """
    if not paths:
        raise BadInputError(
            "no measured rows are given",
            field="PATH",
            allowed="files of rows or folders of them, or --log FILE",
        )
    return validate(
        paths,
        catalog=catalog,
        calibration=calibration,
        progress=told,
        search_s=search_s,
        planned=planned,
    )


def beside_log(job: Job, log: Log, log_file: Path) -> Validation:
    """Compare the prediction of a job's own layout with a log.

    Args:
        job: The job that wrote the log. [-]
        log: Measurements of the log. [-]
        log_file: File of the log. [path]

    Returns:
        The answer, of one row. [-]

    Raises:
        BadInputError: The job has no layout.
    """
    layout = job.spec.layout
    workload = workload_for(job, layout)
    with about(job.file):
        return validation([logged_outcome(workload, layout, log, file=log_file)])


def plan_beside_log(
    found: PlanFile, log: Log, log_file: Path
) -> tuple[Validation, str]:
    """Compare the prediction of a plan with a log.

    Args:
        found: The plan. [-]
        log: Measurements of the log. [-]
        log_file: File of the log. [path]

    Returns:
        The answer, of one row, and the run as a measured row. [-], [YAML]
    """
    layout, pricing = found.plan.layout, found.pricing
    with about(found.path):
        outcome = logged_outcome(pricing, partial_of(layout), log, file=log_file)
    name = f"{found.brief.job}-{log_file.stem}"
    row = planned_row(name, found.plan.spec, pricing, layout, log)
    return validation([outcome]), planned_text(row)
