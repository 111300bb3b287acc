"""States of the rows at first contact: ``python -m benchmarks.accuracy.states``.

Writes ``states.csv``: parameters times bytes on the rank whose peak was measured. They
are counted, so that the rows' errors are errors of the rest of the peak. Today's model
counts them, since the first files of the ledger do not hold them.
"""

import csv
from pathlib import Path

from benchmarks.accuracy import ledger
from planner.calibration.accuracy.price import fullest
from planner.calibration.mapping.cases import case_of
from planner.calibration.rows.rows import read_rows
from planner.hardware.reading.files import SHIPPED
from planner.planning.prediction.predict import predict

HERE = Path(__file__).parent
ROWS = HERE / "rows"


def main() -> None:
    """Price the rows of the ledger that have a predicted peak."""
    known = {row.id: row for row in read_rows([ROWS]).rows}
    every = (row for v in ledger.versions() for row in ledger.every_row(v))
    ids = [row["id"] for row in every if row["predicted_gib"]]
    with ledger.STATES.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("id", "states_gib"))
        for name in ids:
            case = case_of(known[name], SHIPPED)
            estimate = predict(case.workload, case.layout).estimate
            its = case.measured
            held = fullest(estimate, its.counter, its.ranks).counted
            writer.writerow((name, f"{held:.5g}"))


if __name__ == "__main__":
    main()
