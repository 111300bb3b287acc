"""Records and errors of comparisons: ``python -m benchmarks.accuracy.sanity``.

Prices the measured rows under the shipped constants. Writes the best MFU of every GPU
and the error of predicted differences of layouts into ``planner/frameworks``.
"""

from collections.abc import Iterable
from datetime import date
from pathlib import Path

import yaml

import planner.frameworks
from benchmarks.accuracy.pairs import comparison, pairs
from benchmarks.accuracy.records import records
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.summary import is_v100
from planner.calibration.accuracy.validate import validate
from planner.frameworks.sanity import COMPARISON, RECORDS, Records
from planner.hardware.reading.files import SHIPPED
from planner.specs.answer.comparison import Comparison

HERE = Path(__file__).parent
SHIPS = Path(planner.frameworks.__file__).parent
COMMAND = "python -m benchmarks.accuracy.sanity, on the rows of benchmarks/accuracy"
HEAD = "# Written by python -m benchmarks.accuracy.sanity; not by hand.\n"


def main() -> None:
    """Price the rows and write both files."""
    ship(validate([HERE / "rows"], catalog=SHIPPED).outcomes)


def ship(outcomes: Iterable[Outcome]) -> None:
    """Write the records of rates and the error of comparisons.

    Args:
        outcomes: Every row, priced under the constants that ship. [-]
    """
    rows, today = tuple(outcomes), date.today().isoformat()  # noqa: DTZ011
    best = Records(date=today, source=COMMAND, records=records(rows))
    _write(RECORDS, best.model_dump(mode="json"))
    _write(COMPARISON, compare(rows, today).model_dump(mode="json"))


def compare(outcomes: Iterable[Outcome], day: str) -> Comparison:
    """The error of comparisons; V100s, suspect and unpriced rows are left out.

    Args:
        outcomes: Every row. [-]
        day: Date to state. [text]

    Returns:
        The error, with its spread. [1]
    """
    used = [r for r in outcomes if r.counted and r.status == "ok" and not is_v100(r)]
    return comparison(pairs(used), date=day, source=COMMAND)


def _write(name: str, content: object) -> None:
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None)
    (SHIPS / name).write_text(HEAD + text)


if __name__ == "__main__":
    main()
