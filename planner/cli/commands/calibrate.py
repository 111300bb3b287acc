"""`planner calibrate`: fit a stack's factors to the user's measured rows."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from planner.cli.guard import guarded
from planner.cli.options import Calibration, Hardware, TimeLimit
from planner.cli.output import show
from planner.cli.stopping import this_run
from planner.document.terminal import report
from planner.job.calibration_file import read_calibration
from planner.questions.calibrate import fitted
from planner.questions.inputs.overlay import catalog_with
from planner.questions.outputs.files import write_whole
from planner.report.calibration import calibration_document

Rows = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...",
        help="Files of measured rows, or folders of them.",
        show_default=False,
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Calibration file to write, for --calibration.",
        show_default=False,
    ),
]


@guarded
def calibrate(
    paths: Rows,
    *,
    out: Out,
    calibration: Calibration = None,
    hardware: Hardware = None,
    time_limit: TimeLimit = 600.0,
) -> None:
    """Fit factors of time and memory per GPU and stack, and write them to a file.

    Args:
        paths: Measured rows. [-]
        out: File to write. [-]
        calibration: File with measured kernels to start from, kept in `out`. [-]
        hardware: Folder of hardware laid over ours. [-]
        time_limit: Longest time in all, from the start of the process. [s]

    Raises:
        BadInputError: No row can be fitted to, or scipy is not installed.
    """
    this_run().limited(time_limit)
    catalog = catalog_with(hardware)
    own = None if calibration is None else read_calibration(calibration, catalog)
    found = fitted(paths, catalog, own, warn=_warn)
    write_whole(out, found.text)
    fitted_to = found.fits, found.skipped, found.contradictions
    show(report(calibration_document(*fitted_to, str(out))))


def _warn(reason: str) -> None:
    """Warn about an invalid row; the other rows are still fitted to."""
    print(f"warning: {reason}", file=sys.stderr)
