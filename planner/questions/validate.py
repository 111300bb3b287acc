"""`planner.validate`: measured rows beside their predictions."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from planner.calibration.accuracy import validation
from planner.calibration.accuracy.logged import logged_outcome
from planner.calibration.accuracy.logged_job import planned_row, planned_text
from planner.calibration.accuracy.validate import validate as rows_beside
from planner.calibration.rows.logs import Log, read_log
from planner.errors import BadInputError
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import CalibrationFile
from planner.job.loading import Job as LoadedJob
from planner.job.loading import workload_for
from planner.job.resolve import about
from planner.launch import PlanFile, partial_of, read_plan
from planner.launch.emit import PLAN
from planner.questions.inputs.given import (
    CalibrationLike,
    Changes,
    FilePath,
    Job,
    JobLike,
    calibration_given,
    catalog_given,
    looked_up,
    paths_given,
    within,
)
from planner.questions.inputs.progress import Counted, uncounted
from planner.questions.outputs.answer import Answer, Rows

if TYPE_CHECKING:
    from planner.document.blocks import Document


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
) -> validation.Validation:
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
    return rows_beside(
        paths,
        catalog=catalog,
        calibration=calibration,
        progress=told,
        search_s=search_s,
        planned=planned,
    )


def beside_log(job: LoadedJob, log: Log, log_file: Path) -> validation.Validation:
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
        return validation.validation(
            [logged_outcome(workload, layout, log, file=log_file)]
        )


def plan_beside_log(
    found: PlanFile, log: Log, log_file: Path
) -> tuple[validation.Validation, str]:
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
    return validation.validation([outcome]), planned_text(row)


class Validation(validation.Validation, Answer):
    """Every measured row with its errors, and their summary."""

    def table(self) -> Rows:
        """List the rows.

        Returns:
            Names, prediction, measurement and errors of each. [-], shape (rows,)
        """
        return [_row(row) for row in self.rows]

    def _html(self) -> str:
        from planner.report.pages import page_html  # noqa: PLC0415
        from planner.report.validation import validation_document  # noqa: PLC0415

        return page_html(validation_document(self))

    def _page(self) -> "Document":
        from planner.report.validation import summary_document  # noqa: PLC0415

        return summary_document(self)


def _row(row: validation.RowResult) -> dict[str, object]:
    """A row with the fields of its blocks as `block_field`."""
    plain = row.model_dump(mode="json")
    names = ("predicted", "measured", "error", "claimed")
    blocks = {key: plain.pop(key) for key in names}
    inner = {f"{b}_{k}": v for b, its in blocks.items() for k, v in its.items()}
    return {**plain, **inner}


def validate(
    rows: JobLike | Sequence[FilePath] = (),
    *,
    log: FilePath | None = None,
    set: Changes | None = None,  # noqa: A002  # as on the command line
    hardware: FilePath | None = None,
    calibration: CalibrationLike | None = None,
    search: bool = False,
    time_limit: float | None = None,
    on_progress: Counted | None = None,
) -> Validation:
    """Predict measured runs, and compare.

    Args:
        rows: Files of measured rows, or folders of them; with a log the job that
            wrote it, or nothing where plan.json lies beside the log. [-]
        log: A training log. [path]
        set: Fields of the job to replace, by dotted path. [-]
        hardware: Folder of hardware laid over ours. [path]
        calibration: What the user measured. [-]
        search: True to plan the job of every row too, and report the gain that the
            plan claims over the measured layout. [-]
        time_limit: Longest search of one job; 20 s unless given. [s]
        on_progress: Called with rows priced and rows in all. [-]

    Returns:
        Rows and the summary of their errors. [-]

    Raises:
        BadInputError: No row could be read, or the arguments do not go together.
    """
    seconds = SEARCH_TIME if time_limit is None else time_limit
    within("time_limit", seconds, 0.0)
    if time_limit is not None and not search:
        raise BadInputError("does not apply: it needs search", field="time_limit")
    if search and log is not None:
        raise BadInputError("does not apply: a log has one run", field="search")
    catalog = catalog_given(hardware)
    own = calibration_given(calibration, catalog)
    if log is not None:
        return Validation.of(_of_log(rows, Path(log), set, catalog, own))
    if set:
        raise BadInputError("does not apply: it needs a log", field="set")
    if isinstance(rows, Mapping | Job):
        raise BadInputError("goes with a log", field="rows", value=rows)
    found = validated(
        paths_given(rows),
        catalog=catalog,
        calibration=own,
        told=on_progress or uncounted,
        search_s=seconds if search else None,
    )
    return Validation.of(found)


def _of_log(
    job: JobLike | Sequence[FilePath],
    log_file: Path,
    changes: Changes | None,
    catalog: Catalog,
    own: CalibrationFile | None,
) -> validation.Validation:
    """The prediction of a job, or of the plan beside a log, compared with the log."""
    log = read_log(log_file)
    if isinstance(job, str | PathLike | Mapping | Job):
        return beside_log(looked_up(job, changes, catalog, own), log, log_file)
    if job:
        raise BadInputError("a log is compared with one job", field="rows", value=job)
    plan = read_plan(log_file.with_name(PLAN), catalog, own)
    answer, _ = plan_beside_log(plan, log, log_file)
    return answer
