"""The gate of accuracy: the published runs priced again, in the first line a subset.

Whoever moves these errors regenerates benchmarks/accuracy in the same commit.
"""

import csv
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.accuracy.records import records
from benchmarks.accuracy.sanity import compare
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.price import price_row
from planner.calibration.accuracy.validate import validate
from planner.calibration.rows.rows import read_rows
from planner.frameworks.sanity import compared
from planner.frameworks.sanity import records as shipped
from planner.hardware.reading.files import SHIPPED

HERE = Path(__file__).resolve().parents[1] / "benchmarks" / "accuracy"
EACH = 29
"""One row of so many is in the subset. [1]"""
MARGIN = 0.02
"""Growth of a single row's error that is let pass. [1]"""
MEDIAN_MARGIN = 0.003
"""Growth of the median error of the subset that is let pass. [1]"""


UNPRICED = 0.05
"""Share of the counted rows that may have no price. [1]"""


@cache
def recorded(each: int = EACH) -> dict[str, dict[str, str]]:
    """Checked-in results of one row in so many, by id."""
    with (HERE / "results.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["in_sample"]]
    return {row["id"]: row for row in rows[::each]}


@pytest.fixture(scope="module")
def priced(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """The subset priced again, each row of it cut out of its file."""
    folder = tmp_path_factory.mktemp("rows")
    for path in sorted((HERE / "rows").glob("*.yaml")):
        items = re.split(r"^(?=- id: )", path.read_text(), flags=re.MULTILINE)
        kept = [item for item in items if item.partition("\n")[0][6:] in recorded()]
        if kept:
            (folder / path.name).write_text("".join(kept))
    return {row.id: price_row(row, catalog=SHIPPED) for row in read_rows([folder]).rows}


def grown(column: str, errors: dict[str, float | None]) -> list[str]:
    """Rows whose error is larger than what was recorded of them."""
    told = []
    for name, error in errors.items():
        before = recorded(1)[name][column]
        if before and (error is None or abs(error) > abs(float(before)) + MARGIN):
            told.append(f"{name}: {column} {before} is now {error}")
    return told


def test_the_subset_is_large_and_of_many_sources() -> None:
    assert len(recorded()) >= 50
    assert len({row["source"] for row in recorded().values()}) >= 12


@pytest.mark.slow
def test_no_row_lost_its_price(priced: dict[str, Outcome]) -> None:
    lost = [row.id for row in priced.values() if row.status != "ok"]
    assert lost == []


def test_step_errors_have_not_grown(priced: dict[str, Outcome]) -> None:
    errors = {name: row.step_error for name, row in priced.items()}
    assert set(errors) == set(recorded())
    assert grown("in_sample", errors) == []


def test_memory_errors_have_not_grown(priced: dict[str, Outcome]) -> None:
    errors = {name: row.memory_error for name, row in priced.items()}
    assert grown("memory_error", errors) == []


def test_the_median_step_error_has_not_grown(priced: dict[str, Outcome]) -> None:
    now = np.median([abs(row.step_error or 0.0) for row in priced.values()])
    then = np.median([abs(float(row["in_sample"])) for row in recorded().values()])
    assert now <= then + MEDIAN_MARGIN


@pytest.mark.slow
def test_all_rows_are_priced_as_the_shipped_figures_say() -> None:
    """Errors, records and the spread between layouts; all rows are priced once."""
    reading = validate([HERE / "rows"], catalog=SHIPPED)
    assert [one.id for one in reading.outcomes if one.status == "invalid"] == []
    counted = [one for one in reading.outcomes if one.counted]
    unpriced = [one.id for one in counted if one.status != "ok"]
    assert len(unpriced) <= UNPRICED * len(counted)
    kept = [one for one in reading.outcomes if one.id in recorded(1)]
    assert grown("in_sample", {one.id: one.step_error for one in kept}) == []
    assert grown("memory_error", {one.id: one.memory_error for one in kept}) == []
    assert records(reading.outcomes) == shipped()
    now = compare(reading.outcomes, "today")
    assert now.spread == pytest.approx(compared().spread, rel=0.05)
    assert now.reversed_tied > 4 * now.reversed_apart


def test_the_gate_sees_a_grown_error() -> None:
    name = next(iter(recorded()))
    assert grown("in_sample", {name: 9.0})
    assert grown("in_sample", {name: None})
    assert grown("in_sample", {name: 0.0}) == []
    with pytest.raises(KeyError):
        grown("in_sample", {"no such row": 0.0})
