"""`planner validate`: every measured row beside its prediction."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from planner.calibration.accuracy.validation import Validation
from planner.calibration.rows.logs import Log, read_log
from planner.calibration.rows.skeleton import skeleton, skeleton_text
from planner.cli.guard import guarded
from planner.cli.options import (
    Assignments,
    Calibration,
    Hardware,
    JsonTo,
)
from planner.cli.output import check_writable, deliver
from planner.cli.pictures import ReportTo, write_report
from planner.cli.progress import row_progress
from planner.document.terminal import report
from planner.errors import BadInputError
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import read_calibration
from planner.job.loading import Job, load
from planner.launch import PlanFile, read_plan
from planner.launch.emit import PLAN
from planner.questions.inputs.overlay import catalog_with
from planner.questions.outputs.files import write_whole
from planner.questions.validate import (
    SEARCH_TIME,
    beside_log,
    plan_beside_log,
    validated,
)
from planner.report.validation import validation_document

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

Search = Annotated[
    bool,
    typer.Option(
        "--search",
        help="Also plan every row's job, and report the gain that the plan claims over "
        "the measured layout.",
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="S",
        min=0.0,
        help=f"With --search: longest search of one job, in seconds; {SEARCH_TIME:g} "
        "unless given.",
        show_default=False,
    ),
]


@guarded
def validate(
    paths: Paths = None,
    *,
    log_file: LogFile = None,
    search: Search = False,
    time_limit: TimeLimit = None,
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
        search: Plan the job of every row too. [-]
        time_limit: Longest search of one job. [s]
        assignments: Fields of the job to replace. [text]
        json_to: File for JSON, or `-` for stdout. [-]
        report_to: File for the page. [path]
        hardware: Folder of hardware laid over ours. [-]
        calibration: File of what the user measured. [path]

    Raises:
        BadInputError: No row could be read, or the arguments do not go together.
    """
    check_writable(json=json_to, report=report_to)
    catalog = catalog_with(hardware)
    if log_file is None:
        _refuse(assignments, "--set", "it needs --log and a SPEC")
        if not search:
            _refuse(time_limit is not None, "--time-limit", "it needs --search")
        seconds = SEARCH_TIME if time_limit is None else time_limit
        limit = seconds if search else None
        answer = _rows(paths or [], catalog, calibration, limit)
        _deliver(answer, json_to, report_to)
        return
    _refuse(search, "--search", "a log has one run, and planner plan plans its job")
    log = read_log(log_file)
    if paths:
        job = _one_job(paths, assignments, catalog, calibration)
        _deliver(beside_log(job, log, log_file), json_to, report_to)
        return
    _refuse(assignments, "--set", "there is no SPEC")
    plan = log_file.with_name(PLAN)
    if plan.is_file():
        own = None if calibration is None else read_calibration(calibration, catalog)
        answer = _compare_plan(read_plan(plan, catalog, own), log, log_file)
        _deliver(answer, json_to, report_to)
        return
    _refuse(report_to, "--report", "there is nothing to compare the log with")
    _refuse(calibration, "--calibration", "nothing is priced")
    _print_skeleton(log, log_file.stem, json_to)


def _refuse(given: object, option: str, why: str) -> None:
    if given:
        raise BadInputError(f"does not apply: {why}", field=option)


def _rows(
    paths: list[Path],
    catalog: Catalog,
    calibration: Path | None,
    search_s: float | None,
) -> Validation:
    own = None if calibration is None else read_calibration(calibration, catalog)
    with row_progress() as (told, planned):
        return validated(
            paths,
            catalog=catalog,
            calibration=own,
            told=told,
            search_s=search_s,
            planned=planned,
        )


def _one_job(
    paths: list[Path],
    assignments: list[str] | None,
    catalog: Catalog,
    calibration: Path | None,
) -> Job:
    if len(paths) > 1:
        raise BadInputError(
            "a log is compared with one job", field="PATH", value=str(paths[1])
        )
    return load(paths[0], assignments, catalog, calibration)


def _compare_plan(found: PlanFile, log: Log, log_file: Path) -> Validation:
    """Prediction of a plan beside a log; writes the run as a row next to the log."""
    answer, row = plan_beside_log(found, log, log_file)
    rows = log_file.with_suffix(ROWS)
    write_whole(rows, row)
    print(f"{rows}: this run, for planner calibrate", file=sys.stderr)
    return answer


def _deliver(answer: Validation, json_to: str | None, report_to: Path | None) -> None:
    document = validation_document(answer)
    write_report(report_to, lambda: document)
    json_text = answer.model_dump_json(by_alias=True, indent=2)
    deliver(report(document), json_text, json_to)


def _print_skeleton(log: Log, name: str, json_to: str | None) -> None:
    """The start of a row as YAML, which must not be wrapped; or as JSON."""
    json_text = json.dumps([skeleton(log, name)], indent=2)
    if json_to == "-":
        print(json_text)
        return
    if json_to is not None:
        write_whole(Path(json_to), json_text)
    print(skeleton_text(log, name))
