"""`planner calibrate`: fit a stack's factors to the user's measured rows."""

import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

from planner.cli.guard import guarded
from planner.cli.options import Calibration, Hardware, lay_over
from planner.cli.output import show, write_whole
from planner.errors import BadInputError
from planner.evidence.fitting.calibrate import solver
from planner.evidence.fitting.user_fit import collect, file_of, fit_pairs
from planner.evidence.rows.rows import Reading, read_rows
from planner.job.calibration_file import read_calibration
from planner.report.calibration import calibration_report

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
) -> None:
    """Fit factors of time and memory per GPU and stack, and write them to a file.

    Args:
        paths: Measured rows. [-]
        out: File to write. [-]
        calibration: File with measured kernels to start from, kept in `out`. [-]
        hardware: Folder of hardware laid over ours. [-]

    Raises:
        BadInputError: No row can be fitted to, or scipy is not installed.
    """
    solver()
    lay_over(hardware)
    own = None if calibration is None else read_calibration(calibration)
    reading = read_rows(paths)
    _warn(reading)
    found = collect(reading.rows, own)
    if not (found.runs or found.peaks):
        raise BadInputError(
            "no row has a step time or a peak of memory that can be fitted to",
            file=", ".join(str(path) for path in paths),
            value=next(iter(found.skipped.values()), None),
        )
    fits = fit_pairs(found)
    held = file_of(fits, own).model_dump(mode="json", by_alias=True)
    write_whole(out, yaml.safe_dump(held, sort_keys=False).rstrip())
    show(calibration_report(fits, found.skipped, found.contradictions, str(out)))


def _warn(reading: Reading) -> None:
    """Warn about invalid rows; the other rows are still fitted to."""
    for row in reading.invalid:
        print(f"warning: {row.reason}", file=sys.stderr)
