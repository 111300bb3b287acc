"""The gate of accuracy: a fixed subset of the published runs, priced again.

Whoever moves these errors regenerates benchmarks/accuracy in the same commit.
"""

import csv
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from planner.evidence.accuracy.outcome import Outcome
from planner.evidence.accuracy.price import price_row
from planner.evidence.rows.rows import read_rows

HERE = Path(__file__).resolve().parents[1] / "benchmarks" / "accuracy"
EACH = 17
"""One row of so many is in the subset. [1]"""
MARGIN = 0.02
"""Growth of a single row's error that is let pass. [1]"""
MEDIAN_MARGIN = 0.003
"""Growth of the median error of the subset that is let pass. [1]"""


@cache
def recorded() -> dict[str, dict[str, str]]:
    """Checked-in results of the subset, by id."""
    with (HERE / "results.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["in_sample"]]
    return {row["id"]: row for row in rows[::EACH]}


@cache
def priced() -> dict[str, Outcome]:
    wanted = recorded()
    rows = read_rows([HERE / "rows"]).rows
    return {row.id: price_row(row) for row in rows if row.id in wanted}


def grown(column: str, errors: dict[str, float | None]) -> list[str]:
    """Rows whose error is larger than what was recorded of them."""
    told = []
    for name, error in errors.items():
        before = recorded()[name][column]
        if before and (error is None or abs(error) > abs(float(before)) + MARGIN):
            told.append(f"{name}: {column} {before} is now {error}")
    return told


def test_the_subset_is_large_and_of_many_sources() -> None:
    assert len(recorded()) >= 50
    assert len({row["source"] for row in recorded().values()}) >= 12


def test_no_row_lost_its_price() -> None:
    lost = [row.id for row in priced().values() if row.status != "ok"]
    assert lost == []
    assert len(priced()) == len(recorded())


def test_step_errors_have_not_grown() -> None:
    errors = {name: row.step_error for name, row in priced().items()}
    assert grown("in_sample", errors) == []


def test_memory_errors_have_not_grown() -> None:
    errors = {name: row.memory_error for name, row in priced().items()}
    assert grown("memory_error", errors) == []


def test_the_median_step_error_has_not_grown() -> None:
    now = np.median([abs(row.step_error or 0.0) for row in priced().values()])
    then = np.median([abs(float(row["in_sample"])) for row in recorded().values()])
    assert now <= then + MEDIAN_MARGIN


def test_the_gate_sees_a_grown_error() -> None:
    name = next(iter(recorded()))
    assert grown("in_sample", {name: 9.0})
    assert grown("in_sample", {name: None})
    assert grown("in_sample", {name: 0.0}) == []
    with pytest.raises(KeyError):
        grown("in_sample", {"no such row": 0.0})
