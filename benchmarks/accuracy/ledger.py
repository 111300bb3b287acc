"""Errors at first contact: what a frozen version said of rows before anyone looked.

Each file of `first_contact/` is named after the version that made it and only grows.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

FOLDER = Path(__file__).parent / "first_contact"
Row = dict[str, str]


@dataclass(frozen=True)
class Contact:
    """Errors of one quantity, each source with the same weight."""

    sources: int
    values: int
    error: float
    """Median of |predicted / measured - 1|, averaged over sources. [1]"""
    covered: float
    """Share of values inside the interval, averaged over sources. [1]"""


def rows(version: str) -> list[Row]:
    """Read the rows of a version that ran.

    Args:
        version: Name of a file of the ledger. [text]

    Returns:
        Rows without those that ran out of memory. [-]
    """
    with (FOLDER / f"{version}.csv").open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["oom"] == "False"]


def step_times(version: str) -> Contact:
    """Errors of step times, of rows that count.

    Args:
        version: Name of a file of the ledger. [text]

    Returns:
        Errors by source, averaged. [-]
    """
    counted = (row for row in rows(version) if row["counted"] == "True")
    return _contact(counted, "measured_step_s", "predicted_step_s", "step")


def memory_peaks(version: str) -> Contact:
    """Errors of memory peaks.

    Args:
        version: Name of a file of the ledger. [text]

    Returns:
        Errors by source, averaged. [-]
    """
    return _contact(rows(version), "measured_gib", "predicted_gib", "gib")


def _contact(some: Iterable[Row], measured: str, predicted: str, name: str) -> Contact:
    unit = "_s" if name == "step" else ""
    errors: dict[str, list[float]] = defaultdict(list)
    inside: dict[str, list[bool]] = defaultdict(list)
    for row in some:
        if not (row[measured] and row[predicted]):
            continue
        value = float(row[measured])
        low, high = float(row[f"{name}_low{unit}"]), float(row[f"{name}_high{unit}"])
        errors[row["source"]].append(abs(float(row[predicted]) / value - 1))
        inside[row["source"]].append(low <= value <= high)
    return Contact(
        sources=len(errors),
        values=sum(map(len, errors.values())),
        error=fmean(map(median, errors.values())),
        covered=fmean(map(fmean, inside.values())),
    )
