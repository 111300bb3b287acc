"""`planner.validate`: measured rows beside their predictions."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import BadInputError
from planner.evidence.accuracy import validation
from planner.evidence.rows.logs import read_log
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import CalibrationFile
from planner.launch import read_plan
from planner.launch.emit import PLAN
from planner.questions.flow.validate import (
    SEARCH_TIME,
    beside_log,
    plan_beside_log,
    validated,
)
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


class Validation(validation.Validation, Answer):
    """Every measured row with its errors, and their summary."""

    def table(self) -> Rows:
        """List the rows.

        Returns:
            Names, prediction, measurement and errors of each. [-], shape (rows,)
        """
        return [_row(row) for row in self.rows]

    def _html(self) -> str:
        from planner.report.pages.validation import validation_page  # noqa: PLC0415

        return validation_page(self)

    def _page(self) -> "Document":
        from planner.report.pages.validation import summary_page  # noqa: PLC0415

        return summary_page(self)


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
