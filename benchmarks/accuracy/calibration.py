"""Errors after calibration: ``python -m benchmarks.accuracy.calibration``.

From every source with four rows, one, two and three rows of one campaign, GPU and stack
are drawn. The rows left are predicted with and without the factors of those drawn:
rows of the same campaign, and rows of other campaigns. Constants are those of a fit
without the source, as a new user's are, and are not freed. Errors are read from
``results.csv``.
"""

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

import numpy as np

from benchmarks.accuracy.spreads import TENSORS
from planner.calibration.fitting.factors import job_factor, other_factor, spreads
from planner.calibration.fitting.peaks import Peak, held_factors
from planner.calibration.rows.rows import Row, read_rows

ROWS = Path(__file__).parent / "rows"
RESULTS = Path(__file__).parent / "results.csv"
ENOUGH = 4
"""Rows that a source needs. [1]"""
DRAWS = 64
"""Draws of a source, each with its own rows. [1]"""
GIVEN = (1, 2, 3)
"""Rows to calibrate on. [1]"""
SAME, OTHER = "same campaign", "other campaign"


@dataclass(frozen=True)
class Known:
    """A measured row beside its prediction.

    Attributes:
        source: Stem of the row's file. [text]
        stack: GPU and stack, which a fit is of. [text]
        model: Shape of the model. [text]
        campaign: State of the cluster. [text]
        log_ratio: log(measured / predicted). [1]
        allocated: True for a peak of allocated memory. [-]
    """

    source: str
    stack: str
    model: str
    campaign: str
    log_ratio: float
    allocated: bool = False


Errors = dict[tuple[int, str], list[tuple[float, float]]]
"""Rows given, and campaign: errors without and with them, by source. [1]"""


def main() -> None:
    """Read the errors and print the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    rows = {row.id: row for row in read_rows([ROWS]).rows}
    with RESULTS.open(encoding="utf-8") as file:
        priced = list(csv.DictReader(file))
    print("| | rows given | sources | median before | median after |")
    print("|---|---|---|---|---|")
    for name in ("step time", "memory"):
        found = known(priced, rows, memory=name == "memory")
        table = errors_of(found, memory=name == "memory")
        for (n, which), errors in sorted(table.items(), key=_place):
            before, after = (fmean(e[at] for e in errors) for at in (0, 1))
            print(f"| {name}, {which} | {n} | {len(errors)} | {before:.1%} | ", end="")
            print(f"{after:.1%} |")


def _place(item: tuple[tuple[int, str], object]) -> tuple[bool, int]:
    (n, which), _ = item
    return which == OTHER, n


def known(
    priced: Iterable[dict[str, str]], rows: dict[str, Row], *, memory: bool
) -> list[Known]:
    """Rows that count, with the error of their prediction.

    Args:
        priced: Rows with their errors, by name of column. [-]
        rows: The measured rows by id. [-]
        memory: True for peaks of memory, False for step times. [-]

    Returns:
        The rows that have both a measurement and a prediction. [-]
    """
    column = "memory_error" if memory else "without_source"
    found = []
    for one in priced:
        if one["counted"] != "1" or one["oom"] == "1" or not one[column]:
            continue
        row = rows[one["id"]]
        kind = " with experts" if row.model.moe else ""
        found.append(
            Known(
                source=one["source"],
                stack=f"{one['gpu']}, {one['stack']}",
                model=f"{row.model.layers} layers of {row.model.hidden}{kind}",
                campaign=row.software.campaign or "",
                log_ratio=-float(np.log1p(float(one[column]))),
                allocated=memory and one["counter"] in TENSORS,
            )
        )
    return found


def errors_of(found: Sequence[Known], *, memory: bool) -> Errors:
    """Median errors of every source, without and with a calibration.

    Args:
        found: Rows of all sources. [-]
        memory: True for peaks of memory, False for step times. [-]

    Returns:
        For rows given and campaign, the errors of each source. [1]
    """
    sources: dict[str, list[Known]] = defaultdict(list)
    for row in found:
        sources[row.source].append(row)
    table: Errors = {}
    for _, rows in sorted(sources.items()):
        if len(rows) < ENOUGH:
            continue
        for n in GIVEN:
            left: dict[str, list[tuple[float, float]]] = defaultdict(list)
            for drawn, rest in _draws(rows, n):
                for which, before, after in _predicted(drawn, rest, memory=memory):
                    left[which].append((before, after))
            for which, each in left.items():
                middle = (median(e[0] for e in each), median(e[1] for e in each))
                table.setdefault((n, which), []).append(middle)
    return table


def _draws(rows: Sequence[Known], n: int) -> Iterator[tuple[list[Known], list[Known]]]:
    """Rows of one campaign and stack to calibrate on, and all others of the stack."""
    cells: dict[tuple[str, str], list[Known]] = defaultdict(list)
    for row in rows:
        cells[row.stack, row.campaign].append(row)
    large = [cell for cell in cells.values() if len(cell) >= n]
    if not large:
        return
    random = np.random.default_rng(n)
    sizes = np.array([len(cell) for cell in large], dtype=float)
    for _ in range(DRAWS):
        cell = large[random.choice(len(large), p=sizes / sizes.sum())]
        drawn = [cell[at] for at in random.choice(len(cell), n, replace=False)]
        taken = {id(row) for row in drawn}
        stack = cell[0].stack
        yield drawn, [r for r in rows if r.stack == stack and id(r) not in taken]


def _predicted(
    drawn: Sequence[Known], rest: Sequence[Known], *, memory: bool
) -> Iterator[tuple[str, float, float]]:
    """Errors of each row left, without and with the factors of the rows drawn."""
    factors = _peak_logs(drawn) if memory else _step_logs(drawn)
    here = drawn[0].campaign
    for row in rest:
        own = factors.get((row.model, row.campaign), factors[None])
        log = own[row.allocated]
        which = SAME if row.campaign == here else OTHER
        yield which, _error(row.log_ratio), _error(row.log_ratio - log)


def _error(left: float) -> float:
    return float(abs(np.expm1(-left)))


Logs = dict[tuple[str, str] | None, tuple[float, float]]
"""Logs of the factors by job, None for other jobs: of the whole, of allocated. [1]"""


def _step_logs(drawn: Sequence[Known]) -> Logs:
    spread = spreads().time
    jobs: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in drawn:
        jobs[row.model, row.campaign].append(row.log_ratio)
    own = {job: job_factor(np.array(logs), spread) for job, logs in jobs.items()}
    other = other_factor([(own[job], len(logs)) for job, logs in jobs.items()], spread)
    return {**{job: (log, log) for job, log in own.items()}, None: (other, other)}


def _peak_logs(drawn: Sequence[Known]) -> Logs:
    peaks = [Peak((r.model, r.campaign), r.allocated, r.log_ratio) for r in drawn]
    each, others = held_factors(peaks)
    found: Logs = {
        job: (float(np.log(h.memory * h.reserved)), float(np.log(h.memory)))
        for job, h in each.items()
    }
    whole = others.memory * others.reserved
    return {**found, None: (float(np.log(whole)), float(np.log(others.memory)))}


if __name__ == "__main__":
    main()
