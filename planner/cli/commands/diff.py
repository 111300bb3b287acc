"""`planner diff`: two plans or jobs side by side."""

from pathlib import Path
from typing import Annotated

import typer

from planner.cli.guard import guarded
from planner.cli.options import Calibration, Hardware, JsonTo, TimeLimit
from planner.cli.output import check_writable, deliver
from planner.cli.pictures import ReportTo, write_report
from planner.cli.progress import search_progress
from planner.cli.stopping import MemoryLimit, this_run
from planner.document.screen import screen_of
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import read_calibration
from planner.job.loading import Job, load
from planner.planning.difference import Compared
from planner.questions.diff import Diff, holds_plan, read_side
from planner.questions.inputs.limits import MEMORY
from planner.questions.inputs.overlay import catalog_with
from planner.report.difference import ENDING, difference_document

SideA = Annotated[
    Path,
    typer.Argument(
        metavar="A",
        help="plan.json or the JSON of a result; or a job, which is planned.",
        show_default=False,
    ),
]
SideB = Annotated[
    Path,
    typer.Argument(
        metavar="B", help="The other plan, result or job.", show_default=False
    ),
]


@guarded
def diff(
    a: SideA,
    b: SideB,
    *,
    time_limit: TimeLimit = 120.0,
    memory_limit: MemoryLimit = MEMORY,
    hardware: Hardware = None,
    calibration: Calibration = None,
    json_to: JsonTo = None,
    report_to: ReportTo = None,
) -> None:
    """Print the fields and terms in which two plans differ.

    Args:
        a: The plan or job that is compared with. [path]
        b: The other. [path]
        time_limit: Longest time in all, from the start of the process. [s]
        memory_limit: Most memory of the process and its workers. [text]
        hardware: Folder of hardware laid over ours. [path]
        calibration: What the user measured. [path]
        json_to: File for JSON, or `-` for stdout. [-]
        report_to: File for the page. [path]

    Raises:
        BadInputError: A file, a field or a name is wrong.
        InfeasibleError: A job fits nowhere.
        TimeLimitError: The time ended before the first plan of a job.
    """
    stop = this_run().limited(time_limit, memory_limit)
    check_writable(json=json_to, report=report_to)
    catalog = catalog_with(hardware)
    sides = (_side(path, catalog, calibration) for path in (a, b))
    with search_progress() as told:
        answer = Diff(*sides).answer(stop, told)
    text = answer.model_dump_json(by_alias=True, indent=2)
    document = difference_document(answer)
    deliver(screen_of(document, ENDING), text, json_to)
    write_report(report_to, lambda: document)


def _side(path: Path, catalog: Catalog, calibration: Path | None) -> Compared | Job:
    """A plan that is read, or a job that is to be planned."""
    if not holds_plan(path):
        return load(path, (), catalog, calibration)
    own = None if calibration is None else read_calibration(calibration, catalog)
    return read_side(path, catalog, own)
