"""Spreads of first-contact errors by level: ``python -m benchmarks.accuracy.spreads``.

Prints what `planner/calibration/fitting/spreads.yaml` ships.
"""

from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.accuracy import ledger
from planner.calibration.rows.rows import Row, read_rows

VERSION = "0.1.0-2f0c99b"
"""File of the ledger that the spreads are of. [text]"""
ROWS = Path(__file__).parent / "rows"
TENSORS = ("allocated", "active")
"""Counters of tensors alone. [text]"""
FARTHEST = float(np.log(4.0))
"""Log ratio beyond which a row is of another job. [1]"""
Source = tuple[NDArray[np.float64], NDArray[np.bool_]]
"""Log ratios of a source's rows, and True where two rows are of one job."""


def main() -> None:
    """Print the spreads of step time, allocated and reserved memory."""
    for name, sources in ledgered().items():
        levels = zip(("source", "job", "row"), spreads_of(sources), strict=True)
        print(f"{name}:", {level: round(value, 3) for level, value in levels})


def ledgered() -> dict[str, list[Source]]:
    """Log ratios of the ledger by what was measured.

    Returns:
        Sources of step time, of tensors' memory and of memory with caches. [1]
    """
    rows = {row.id: row for row in read_rows([ROWS]).rows}
    priced = ledger.rows(VERSION)
    tensors = [one for one in priced if one["counter"] in TENSORS]
    caches = [one for one in priced if one["counter"] not in TENSORS]
    memory = ("measured_gib", "predicted_gib")
    return {
        "time": by_source(priced, rows, "measured_step_s", "predicted_step_s"),
        "allocated": by_source(tensors, rows, *memory),
        "reserved": by_source(caches, rows, *memory),
    }


def by_source(
    priced: list[ledger.Row], rows: dict[str, Row], measured: str, predicted: str
) -> list[Source]:
    """Log ratios by source, with the rows of each job.

    Args:
        priced: Rows of the ledger. [-]
        rows: The measured rows by id. [-]
        measured: Column of the measurement. [text]
        predicted: Column of the prediction. [text]

    Returns:
        One entry for each source. [-]
    """
    groups: dict[str, list[tuple[float, tuple[object, ...]]]] = defaultdict(list)
    for one in priced:
        usable = one["counted"] == "True" and one[measured] and one[predicted]
        if not usable or "v100" in one["gpu"]:
            continue
        log = float(np.log(float(one[measured]) / float(one[predicted])))
        if abs(log) < FARTHEST:
            row = rows[one["id"]]
            job = (row.software.campaign, row.model.name, row.model.layers)
            groups[one["source"]].append((log, (*job, one["gpu"], one["stack"])))
    found = []
    for its in groups.values():
        jobs = [job for _, job in its]
        same = np.array([[one == other for other in jobs] for one in jobs])
        found.append((np.array([log for log, _ in its]), same))
    return found


def spreads_of(sources: list[Source]) -> tuple[float, float, float]:
    """Most likely standard deviations of sources, jobs and rows, all about 0.

    Args:
        sources: Log ratios by source. [1]

    Returns:
        Between sources, between jobs of a source, between rows of a job. [1]
    """

    def unlikely(logs: NDArray[np.float64]) -> float:
        wide, middle, narrow = np.exp(2 * logs)
        total = 0.0
        for values, same in sources:
            covariance = wide + middle * same + narrow * np.eye(len(values))
            _, size = np.linalg.slogdet(covariance)
            total += float(size + values @ np.linalg.solve(covariance, values))
        return total

    best = minimize(unlikely, np.log([0.15, 0.1, 0.1]), method="Nelder-Mead").x
    source, job, row = (float(value) for value in np.exp(best))
    return source, job, row


if __name__ == "__main__":
    main()
