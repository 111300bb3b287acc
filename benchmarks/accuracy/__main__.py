"""Refits and cross-validates the published runs: ``python -m benchmarks.accuracy``.

Writes the constants, intervals, records and the error of comparisons that ship with
the package. Here it writes the results of every row (``results.csv``), the figures
(``results.json``) and the report (``README.md``), and the figures that other pages
quote into these. ``--check`` writes nothing but prints the report.
"""

import argparse
import json
from pathlib import Path

import yaml

import planner.frameworks
from benchmarks.accuracy import quoted
from benchmarks.accuracy.intervals import ship as ship_intervals
from benchmarks.accuracy.report import report
from benchmarks.accuracy.results import figures, table
from benchmarks.accuracy.sanity import ship
from benchmarks.accuracy.study import Study, study
from planner.calibration.rows.rows import read_rows
from planner.frameworks.fitted import FITTED

HERE = Path(__file__).parent
SHIPPED = Path(planner.frameworks.__file__).parent
HEAD = "# Written by python -m benchmarks.accuracy; not by hand.\n"


def main() -> None:
    """Do the study and write its results, or print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, default=HERE / "rows")
    parser.add_argument("--workers", type=int, default=-1)
    parser.add_argument("--check", action="store_true", help="write nothing")
    given = parser.parse_args()
    reading = read_rows([given.rows])
    for row in reading.invalid:
        print(f"invalid: {row.reason}")
    done = study(reading.rows, given.workers)
    if given.check:
        print(report(done))
        return
    _ship(done)
    ship(one.outcome for one in done.observations)
    (HERE / "results.csv").write_text(table(done))
    (HERE / "results.json").write_text(json.dumps(figures(done), indent=1) + "\n")
    (HERE / "README.md").write_text(report(done))
    quoted.write()


def _ship(done: Study) -> None:
    """Write the constants and the intervals into the package."""
    fit = done.fit.model_dump(mode="json", exclude_defaults=True)
    text = yaml.safe_dump(fit, sort_keys=False, default_flow_style=None)
    (SHIPPED / FITTED).write_text(HEAD + text)
    ship_intervals()


if __name__ == "__main__":
    main()
