"""The best MFU that a published run has reached, by GPU architecture and format."""

from collections.abc import Iterable

from planner.calibration.accuracy.outcome import Outcome
from planner.frameworks.sanity import Record, record_key
from planner.hardware.catalog import gpu
from planner.hardware.reading.files import SHIPPED


def records(outcomes: Iterable[Outcome]) -> dict[str, Record]:
    """The highest measured MFU of every architecture, format and kind of training.

    Suspect rows do not count. Ties go to the row that is read first.

    Args:
        outcomes: Rows of published runs, shape (rows,). [-]

    Returns:
        Records by key, sorted. [1]
    """
    best: dict[str, Record] = {}
    for row in outcomes:
        if not row.counted or row.status != "ok" or row.measured_mfu is None:
            continue
        arch = gpu(row.gpu, SHIPPED).arch
        key = record_key(arch=arch, precision=row.precision, method=row.method)
        if key not in best or row.measured_mfu > best[key].mfu:
            best[key] = _record(row)
    return {key: best[key] for key in sorted(best)}


def _record(row: Outcome) -> Record:
    assert row.measured_mfu is not None
    return Record(
        mfu=round(row.measured_mfu, 4),
        run=row.id,
        source=row.source,
        model=row.model,
        gpu=row.gpu,
        gpus=row.gpus,
        stack=row.stack,
    )
