"""Prices every measured row of files and folders, and compares with measurements."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from joblib import Parallel, delayed

from planner.calibration.accuracy.claims import Searching, with_claims
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.price import invalid_outcome, price_row
from planner.calibration.accuracy.validation import Validation, validation
from planner.calibration.rows.rows import Reading, Row, read_rows
from planner.errors import BadInputError
from planner.hardware.reading.files import Catalog
from planner.job.calibration_file import CalibrationFile

Progress = Callable[[int, int], object]
"""Called with the number of rows that are done, and the number of all rows."""

_CHUNK = 8
"""Rows that a worker gets at a time. [1]"""
_ALONE = 64
"""Rows that one process prices faster than several can start. [1]"""
_SHOWN = 5


def validate(
    paths: Iterable[Path],
    *,
    catalog: Catalog,
    calibration: CalibrationFile | None = None,
    workers: int = -1,
    progress: Progress | None = None,
    search_s: float | None = None,
    planned: Progress | None = None,
) -> Validation:
    """Predict every measured row, and compare with what was measured.

    The answer does not depend on the number of workers, but where a search runs out of
    time.

    Args:
        paths: Files of rows, or folders of such files. [path]
        catalog: Files of facts. [-]
        calibration: The user's calibration, laid over ours. [-]
        workers: Processes; -1 takes every core. [1]
        progress: Told after every few rows. [-]
        search_s: Time limit of the search for each row's job; None plans none. [s]
        planned: Told after every job that is planned. [-]

    Returns:
        Rows in the order of listing, invalid rows last, and their summary. [-]

    Raises:
        BadInputError: A path does not exist, or no row could be read.
    """
    given = list(paths)
    reading = read_rows(given)
    _require_rows(reading, given)
    total, outcomes = len(reading.rows), list[Outcome]()
    for priced in _outcomes_by_chunk(reading.rows, catalog, calibration, workers):
        outcomes.extend(priced)
        if progress is not None:
            progress(len(outcomes), total)
    if search_s is not None:
        how = Searching(search_s, catalog, calibration, workers)
        outcomes = with_claims(reading.rows, outcomes, how, planned)
    return validation([*outcomes, *map(invalid_outcome, reading.invalid)])


def _require_rows(reading: Reading, paths: Sequence[Path]) -> None:
    if reading.rows:
        return
    first = reading.invalid[:_SHOWN]
    reasons = "; ".join(row.reason for row in first)
    more = len(reading.invalid) - len(first)
    raise BadInputError(
        f"no row could be read: {reasons or 'the files hold none'}"
        + (f"; and {more} more" if more else ""),
        file=", ".join(map(str, paths)),
    )


def _outcomes_by_chunk(
    rows: Sequence[Row],
    catalog: Catalog,
    own: CalibrationFile | None,
    workers: int,
) -> Iterator[Sequence[Outcome]]:
    chunks = [rows[start : start + _CHUNK] for start in range(0, len(rows), _CHUNK)]
    processes = 1 if len(rows) <= _ALONE else workers
    if processes == 1:
        yield from (_price(chunk, catalog, own) for chunk in chunks)
        return
    parallel = Parallel(n_jobs=processes, return_as="generator", batch_size=1)
    yield from parallel(delayed(_price)(chunk, catalog, own) for chunk in chunks)


def _price(
    rows: Sequence[Row], catalog: Catalog, own: CalibrationFile | None
) -> list[Outcome]:
    return [price_row(row, catalog, own) for row in rows]
