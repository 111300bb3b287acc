"""`planner.calibrate`: factors of a stack from the user's measured rows."""

from collections.abc import Sequence
from pathlib import Path

from planner.questions.flow.calibrate import Calibration, fitted
from planner.questions.inputs.given import (
    CalibrationLike,
    FilePath,
    calibration_given,
    catalog_given,
    paths_given,
)
from planner.questions.outputs.files import write_whole

__all__ = ["Calibration", "calibrate"]


def calibrate(
    rows: FilePath | Sequence[FilePath],
    *,
    out: FilePath | None = None,
    calibration: CalibrationLike | None = None,
    hardware: FilePath | None = None,
) -> Calibration:
    """Fit factors of time and memory for each GPU and stack.

    Args:
        rows: Files of measured rows, or folders of them. [path]
        out: File to write, or None. [path]
        calibration: Measured kernels to start from, which are kept. [-]
        hardware: Folder of hardware laid over ours. [path]

    Returns:
        The factors; `file` goes into `calibration=` of other calls. [-]

    Raises:
        BadInputError: No row can be fitted to, or scipy is not installed.
    """
    catalog = catalog_given(hardware)
    own = calibration_given(calibration, catalog)
    found = fitted(paths_given(rows), catalog, own, warn=lambda _: None)
    if out is not None:
        write_whole(Path(out), found.text)
    return found
