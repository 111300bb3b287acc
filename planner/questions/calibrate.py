"""`planner.calibrate`: factors of a stack from the user's measured rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from planner.calibration.fitting.calibrate import solver
from planner.calibration.fitting.user_fit import (
    Fitted,
    Pair,
    collect,
    file_of,
    fit_pairs,
)
from planner.calibration.rows.rows import read_rows
from planner.errors import BadInputError
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import CalibrationFile
from planner.questions.inputs.given import (
    CalibrationLike,
    FilePath,
    calibration_given,
    catalog_given,
    paths_given,
)
from planner.questions.outputs.files import write_whole


@dataclass(frozen=True)
class Calibration:
    """Factors fitted to measured rows.

    Attributes:
        file: The factors, as `calibration=` and `--calibration` take them. [-]
        fits: Fit of each GPU, framework and stack. [-]
        skipped: Id of a row that was left out to the reason. [text]
        contradictions: Pairs of rows that cannot both be right. [text]
        warnings: Reasons why rows could not be read. [text]
    """

    file: CalibrationFile
    fits: Mapping[Pair, Fitted]
    skipped: Mapping[str, str]
    contradictions: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def text(self) -> str:
        """Content of a calibration file, without the last newline. [YAML]."""
        held = self.file.model_dump(mode="json", by_alias=True)
        return yaml.safe_dump(held, sort_keys=False).rstrip()


def fitted(
    paths: Sequence[Path],
    catalog: Catalog,
    own: CalibrationFile | None,
    *,
    warn: Callable[[str], object],
) -> Calibration:
    """Fit factors of time and memory for each GPU and stack.

    Args:
        paths: Files of rows, or folders of them. [path]
        catalog: Files of facts. [-]
        own: Measured kernels to start from, which are kept, or None. [-]
        warn: Told of every row that cannot be read, before the others are fitted to.

    Returns:
        The fit. [-]

    Raises:
        BadInputError: No row can be fitted to, or scipy is not installed.
    """
    solver()
    reading = read_rows(paths)
    warnings = tuple(row.reason for row in reading.invalid)
    for said in warnings:
        warn(said)
    found = collect(reading.rows, catalog, own)
    if not (found.runs or found.peaks):
        raise BadInputError(
            "no row has a step time or a peak of memory that can be fitted to",
            file=", ".join(map(str, paths)),
            value=next(iter(found.skipped.values()), None),
        )
    fits = fit_pairs(found, catalog)
    return Calibration(
        file=file_of(fits, own),
        fits=fits,
        skipped=found.skipped,
        contradictions=found.contradictions,
        warnings=warnings,
    )


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
