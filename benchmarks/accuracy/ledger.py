"""Errors at first contact: what a frozen version said of rows before anyone looked.

Each file of `first_contact/` is named after the version that made it and only grows.
"""

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import log
from pathlib import Path
from statistics import fmean, median

from planner.frameworks.fitted import memory_keys, time_keys
from planner.hardware.catalog import gpu
from planner.hardware.reading.files import SHIPPED

FOLDER = Path(__file__).parent / "first_contact"
STATES = Path(__file__).parent / "states.csv"
SCATTERED = frozenset({"volta"})
"""Architectures whose rows come from a shared cluster, neither fitted to nor counted.
There one run varies 1.8 times from day to day."""
LEAST = 0.05
"""Part of a peak that is taken to lie beyond the states, at least. [1]"""
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


@dataclass(frozen=True)
class Met:
    """One quantity of one row at first contact.

    Attributes:
        id: Unique name of the row. [text]
        source: Stem of the file that it is from. [text]
        stack: Named software stack. [text]
        arch: Architecture of the GPU. [text]
        keys: Groups whose band it takes, nearest first. [text]
        error: log(measured / predicted); of memory, of what is beyond the states. [1]
        known: States over the predicted peak. [1]
    """

    id: str
    source: str
    stack: str
    arch: str
    keys: tuple[str, ...]
    error: float
    known: float = 0.0


def versions() -> list[str]:
    """Names of the files of the ledger, the oldest first.

    Returns:
        Version and commit of each. [text]
    """
    dated = ((_read(path)[0]["date"], path.stem) for path in FOLDER.glob("*.csv"))
    return [name for _, name in sorted(dated)]


def _read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def every_row(version: str) -> list[Row]:
    """Read the rows of a version.

    Args:
        version: Name of a file of the ledger. [text]

    Returns:
        All rows, in order. [-]
    """
    return _read(FOLDER / f"{version}.csv")


def rows(version: str) -> list[Row]:
    """Read the rows of a version that ran.

    Args:
        version: Name of a file of the ledger. [text]

    Returns:
        Rows without those that ran out of memory. [-]
    """
    return [row for row in every_row(version) if row["oom"] == "False"]


def verdicts(version: str) -> dict[bool, Counter[str]]:
    """Verdicts of a version, of rows that ran out of memory and of rows that ran.

    Args:
        version: Name of a file of the ledger. [text]

    Returns:
        Rows by verdict, under true for rows that ran out. [1]
    """
    found: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for row in every_row(version):
        found[row["oom"] == "True"][row["verdict"]] += 1
    return found


def met_times() -> list[Met]:
    """Errors of step times, of rows that count and of no shared cluster.

    Returns:
        Every version's, the oldest first. [-]
    """
    return [
        _met(row, time_keys(row["framework"], row["stack"]), "_s", "step")
        for row in _evidence()
        if row["measured_step_s"] and row["predicted_step_s"]
    ]


def met_memories() -> list[Met]:
    """Errors of memory peaks beyond the states, of rows that count.

    States are parameters times bytes: they are counted, not estimated.

    Returns:
        Every version's, the oldest first. [-]
    """
    return [
        _met(row, memory_keys(row["framework"], row["counter"]), "", "gib")
        for row in _evidence()
        if row["measured_gib"] and row["predicted_gib"]
    ]


def _evidence() -> Iterator[Row]:
    for version in versions():
        for row in rows(version):
            if (
                row["counted"] == "True"
                and gpu(row["gpu"], SHIPPED).arch not in SCATTERED
            ):
                yield row


def _met(row: Row, keys: tuple[str, ...], unit: str, name: str) -> Met:
    measured, predicted = (
        float(row[f"{side}_{name}{unit}"]) for side in ("measured", "predicted")
    )
    states = 0.0 if unit else states_gib()[row["id"]]
    return Met(
        id=row["id"],
        source=row["source"],
        stack=row["stack"],
        arch=gpu(row["gpu"], SHIPPED).arch,
        keys=keys,
        error=log(beyond(measured, states) / beyond(predicted, states)),
        known=min(states / predicted, 1.0),
    )


def beyond(peak: float, states: float) -> float:
    """Part of a peak that no count of parameters gives.

    Args:
        peak: Peak memory. [GiB]
        states: States of the rank. [GiB]

    Returns:
        Memory, a small part of the peak at least. [GiB]
    """
    return max(peak - states, LEAST * peak)


@cache
def states_gib() -> dict[str, float]:
    """Read the states of every row.

    Returns:
        States by id of the row. [GiB]
    """
    with STATES.open(encoding="utf-8") as file:
        return {row["id"]: float(row["states_gib"]) for row in csv.DictReader(file)}


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
