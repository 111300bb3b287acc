"""`planner validate`: every measured row beside its prediction."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.guard import guarded
from planner.cli.jobs import Job, load, workload_for
from planner.cli.options import (
    Assignments,
    Calibration,
    Hardware,
    JsonTo,
    lay_over,
)
from planner.cli.output import check_writable, deliver, write_whole
from planner.cli.pictures import ReportTo
from planner.cli.progress import row_progress
from planner.errors import BadInputError
from planner.evidence.accuracy.logged import logged_outcome
from planner.evidence.accuracy.logged_job import planned_row, planned_text
from planner.evidence.accuracy.validate import validate as price_rows
from planner.evidence.accuracy.validation import Validation, validation
from planner.evidence.rows.logs import Log, read_log
from planner.evidence.rows.skeleton import skeleton, skeleton_text
from planner.job.calibration_file import read_calibration
from planner.job.resolve import about
from planner.launch import PlanFile, partial_of, read_plan
from planner.launch.emit import PLAN
from planner.report.pages.validation import validation_page
from planner.report.validation import validation_report

ROWS = ".row.yaml"
"""Ending of the file with a run's measured row. [text]"""
Paths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH...",
        help="Files of measured rows, or folders of them; with --log, a job's SPEC.",
        show_default=False,
    ),
]
LogFile = Annotated[
    Path | None,
    typer.Option(
        "--log",
        metavar="FILE",
        help="Training log: compared with the SPEC's layout, or with plan.json beside "
        "it, which writes the run as a measured row; else printed as the start of one.",
        show_default=False,
    ),
]


@guarded
def validate(
    paths: Paths = None,
    *,
    log_file: LogFile = None,
    assignments: Assignments = None,
    json_to: JsonTo = None,
    report_to: ReportTo = None,
    hardware: Hardware = None,
    calibration: Calibration = None,
) -> None:
    """Predict measured runs and print the errors; or read a training log.

    Args:
        paths: Measured rows, or with a log the job that wrote it. [path]
        log_file: A training log. [path]
        assignments: Fields of the job to replace. [text]
        json_to: File for JSON, or `-` for stdout. [-]
        report_to: File for the page. [path]
        hardware: Folder of hardware laid over ours. [-]
        calibration: File of what the user measured. [path]

    Raises:
        BadInputError: No row could be read, or the arguments do not go together.
    """
    check_writable(json=json_to, report=report_to)
    lay_over(hardware)
    if log_file is None:
        _refuse(assignments, "--set", "it needs --log and a SPEC")
        answer = _rows(paths or [], hardware, calibration)
        _deliver(answer, json_to, report_to)
        return
    log = read_log(log_file)
    if paths:
        job = _one_job(paths, assignments, calibration)
        _deliver(_compare(job, log, log_file), json_to, report_to)
        return
    _refuse(assignments, "--set", "there is no SPEC")
    plan = log_file.with_name(PLAN)
    if plan.is_file():
        own = None if calibration is None else read_calibration(calibration)
        answer = _compare_plan(read_plan(plan, own), log, log_file)
        _deliver(answer, json_to, report_to)
        return
    _refuse(report_to, "--report", "there is nothing to compare the log with")
    _refuse(calibration, "--calibration", "nothing is priced")
    _print_skeleton(log, log_file.stem, json_to)


def _refuse(given: object, option: str, why: str) -> None:
    if given:
        raise BadInputError(f"does not apply: {why}", field=option)


def _rows(
    paths: list[Path], hardware: Path | None, calibration: Path | None
) -> Validation:
    if not paths:
        raise BadInputError(
            "no measured rows are given",
            field="PATH",
            allowed="files of rows or folders of them, or --log FILE",
        )
    own = None if calibration is None else read_calibration(calibration)
    with row_progress() as progress:
        return price_rows(paths, hardware=hardware, calibration=own, progress=progress)


def _one_job(
    paths: list[Path], assignments: list[str] | None, calibration: Path | None
) -> Job:
    if len(paths) > 1:
        raise BadInputError(
            "a log is compared with one job", field="PATH", value=str(paths[1])
        )
    return load(paths[0], assignments, calibration)


def _compare(job: Job, log: Log, log_file: Path) -> Validation:
    """Prediction of the job's own layout beside the log."""
    layout = job.spec.layout
    workload = workload_for(job, layout)
    with about(job.file):
        return validation([logged_outcome(workload, layout, log, file=log_file)])


def _compare_plan(found: PlanFile, log: Log, log_file: Path) -> Validation:
    """Prediction of a plan beside a log; writes the run as a row next to the log."""
    layout, workload = found.plan.layout, found.workload
    with about(found.path):
        outcome = logged_outcome(workload, partial_of(layout), log, file=log_file)
    row = planned_row(
        f"{found.brief.job}-{log_file.stem}",
        found.plan.spec,
        workload,
        layout,
        log,
    )
    rows = log_file.with_suffix(ROWS)
    write_whole(rows, planned_text(row))
    print(f"{rows}: this run, for planner calibrate", file=sys.stderr)
    return validation([outcome])


def _deliver(answer: Validation, json_to: str | None, report_to: Path | None) -> None:
    if report_to is not None:
        write_whole(report_to, validation_page(answer))
    json_text = answer.model_dump_json(by_alias=True, indent=2)
    deliver(validation_report(answer), json_text, json_to)


def _print_skeleton(log: Log, name: str, json_to: str | None) -> None:
    """The start of a row as YAML, which must not be wrapped; or as JSON."""
    json_text = json.dumps([skeleton(log, name)], indent=2)
    if json_to == "-":
        print(json_text)
        return
    if json_to is not None:
        write_whole(Path(json_to), json_text)
    print(skeleton_text(log, name))
