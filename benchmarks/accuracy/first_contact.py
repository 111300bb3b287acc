"""First contact with new rows: ``python -m benchmarks.accuracy.first_contact ROWS``.

Prices measured rows that no version has met, and writes what this version says of them
to ``first_contact/<version>-<commit>.csv``. A row is met once, and a file is written
once. Commit the file before the model is changed.
"""

import argparse
import csv
import subprocess
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

from benchmarks.accuracy import ledger
from planner import __version__
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.price import price_row
from planner.calibration.rows.rows import read_rows
from planner.errors import BadInputError
from planner.hardware.reading.files import SHIPPED

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).parent / "results.csv"
"""Rows that the shipped constants are fitted to."""
MODEL = ("planner", "hardware")
"""Folders that make a prediction."""
COLUMNS = {
    "id": "id",
    "source": "source",
    "stack": "stack",
    "gpu": "gpu",
    "counted": "counted",
    "measured_step_s": "measured_step_s",
    "predicted_step_s": "predicted_step_s",
    "step_low_s": "step_low_s",
    "step_high_s": "step_high_s",
    "measured_gib": "measured_memory_gib",
    "counter": "memory_counter",
    "predicted_gib": "predicted_memory_gib",
    "gib_low": "memory_low_gib",
    "gib_high": "memory_high_gib",
    "verdict": "verdict",
    "oom": "oom",
    "framework": "framework",
}
"""Column of the ledger to the field of an outcome; the date follows."""


def main(words: Sequence[str] | None = None) -> None:
    """Price new rows and write a file of the ledger.

    Args:
        words: Command line without the command; the process's own without one. [text]
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path, nargs="+", help="files or folders of rows")
    given = parser.parse_args(words)
    try:
        file, rows = meet(given.rows, frozen_version())
    except BadInputError as error:
        parser.error(str(error))
    print(f"{file}: {rows} rows")


def frozen_version() -> str:
    """Name of the version at hand, which no uncommitted change may blur.

    Returns:
        Version and commit. [text]

    Raises:
        BadInputError: The model differs from its commit.
    """
    if changed := _git("status", "--porcelain", "--", *MODEL):
        raise BadInputError(f"commit the model first: {changed.splitlines()[0]}")
    return f"{__version__}-{_git('rev-parse', '--short=7', 'HEAD')}"


def _git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return done.stdout.strip()


def meet(paths: Sequence[Path], version: str) -> tuple[Path, int]:
    """Price the rows that nothing has met, and write them down.

    Args:
        paths: Files of rows, or folders of such files. [path]
        version: Name of the version at hand. [text]

    Returns:
        File that was written, and the number of its rows. [1]

    Raises:
        BadInputError: The version has its file already, or no row is new.
    """
    file = ledger.FOLDER / f"{version}.csv"
    if file.exists():
        raise BadInputError(f"{file.name} is there: a version meets rows once")
    known = met_before()
    new = [row for row in read_rows(paths).rows if row.id not in known]
    if not new:
        raise BadInputError("every row has been met before", file=str(paths[0]))
    _write(file, [price_row(row, SHIPPED) for row in new])
    return file, len(new)


def met_before() -> set[str]:
    """Rows that a version has met or a constant was fitted to.

    Returns:
        Ids. [text]
    """
    with RESULTS.open(encoding="utf-8") as file:
        fitted = {row["id"] for row in csv.DictReader(file)}
    held = (ledger.every_row(version) for version in ledger.versions())
    return fitted.union(*({row["id"] for row in rows} for rows in held))


def _write(file: Path, priced: Iterable[Outcome]) -> None:
    today = date.today().isoformat()  # noqa: DTZ011  # a day, for people
    with file.open("x", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([*COLUMNS, "date"])
        for one in priced:
            cells = (_cell(getattr(one, field)) for field in COLUMNS.values())
            writer.writerow([*cells, today])


def _cell(value: object) -> object:
    return f"{value:.5g}" if isinstance(value, float) else value


if __name__ == "__main__":
    main()
