"""Gains that plans claim over tuned runs: ``python -m benchmarks.accuracy.claims``.

Plans the job of every row of the tuned sources, which takes about a quarter of an hour
on two cores. Writes ``claims.csv`` (every row), ``claims.md`` (every claim over 8 %
with the measured pair or the reason) and the table of README.md. ``--table`` plans
nothing and writes both pages from ``claims.csv``.
"""

import argparse
import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from statistics import fmean, median

import numpy as np
import yaml

from benchmarks.accuracy.contact_report import share, table
from planner.calibration.accuracy.errors import LARGE
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.summary import is_v100
from planner.calibration.accuracy.validate import validate
from planner.calibration.rows.rows import Row, read_rows
from planner.hardware.reading.files import SHIPPED

HERE = Path(__file__).parent
ROWS, CSV, PAGE = HERE / "rows", HERE / "claims.csv", HERE / "claims.md"
README = HERE / "README.md"
HEADING = "## Gains that our plans claim\n"
SECONDS = 20.0
"""Time limit of one job's search. [s]"""
TUNED = (
    "llama3-paper", "megatron-2", "megatron-bridge", "megatron-kwai",
    "megatron-llama", "megatron-moe", "nemo", "mlperf", "korthikanti", "torchtitan",
)  # fmt: skip
"""Starts of the names of sources whose runs their authors tuned. [text]"""
FULL = 0.9
"""Share of the memory from which a plan is close to its end. [1]"""


@dataclass(frozen=True)
class Claim:
    """A measured row, and the plan of its job.

    Attributes:
        id: Name of the row. [text]
        source: Stem of the row's file. [text]
        job: Model, GPUs, length, batch and format, by which rows are pairs. [text]
        layout: Measured layout in short. [text]
        plan: Planned layout in short. [text]
        status: Status of the search. [text]
        measured_s: Measured step. [s]
        predicted_s: Predicted step of the measured layout. [s]
        planned_s: Predicted step of the plan. [s]
        memory: Device memory of the plan over that of the GPU; 0 where the row's own
            layout is the fastest. [1]
    """

    id: str
    source: str
    job: str
    layout: str
    plan: str
    status: str
    measured_s: float
    predicted_s: float
    planned_s: float
    memory: float

    @property
    def gain(self) -> float:
        """``1 - planned / predicted``. [1]."""
        return 1 - self.planned_s / self.predicted_s

    @property
    def off(self) -> float | None:
        """``predicted / measured - 1`` of the row; none where it was not timed. [1]."""
        return self.predicted_s / self.measured_s - 1 if self.measured_s > 0 else None

    @property
    def is_of_the_row(self) -> bool:
        """True where the plan claims little over the measured step.

        Then the claim is the error of the row's own prediction, which is too long.
        """
        timed = self.measured_s > 0
        return timed and 1 - self.planned_s / self.measured_s <= LARGE


def main() -> None:
    """Plan the jobs, or read what was planned, and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--time-limit", type=float, default=SECONDS)
    parser.add_argument("--table", action="store_true", help="plan nothing")
    given = parser.parse_args()
    if not given.table:
        write(CSV, planned(given.time_limit))
    PAGE.write_text(page(read(CSV)))
    whole = README.read_text()
    README.write_text(_replaced(whole, HEADING, claims_section()))


def _replaced(page: str, heading: str, section: str) -> str:
    """A page whose section below a heading is another."""
    before, _, rest = page.partition(heading)
    after = rest[rest.index("\n## ") :]
    return f"{before}{heading}\n{section}\n{after}"


def planned(seconds: float) -> list[Claim]:
    """Plan the job of every row of the tuned sources.

    Args:
        seconds: Time limit of one job's search. [s]

    Returns:
        Rows that count and were timed; V100 rows left out. [-]
    """
    files = [
        path for path in sorted(ROWS.glob("*.yaml")) if path.stem.startswith(TUNED)
    ]
    rows = {row.id: row for row in read_rows(files).rows}
    outcomes = validate(files, search_s=seconds, catalog=SHIPPED).outcomes
    return [
        _claim(one, rows[one.id])
        for one in outcomes
        if one.counted and one.claimed_gain is not None and not is_v100(one)
    ]


def _claim(one: Outcome, row: Row) -> Claim:
    job = row.job
    batch = job.global_batch or "?"
    key = (one.model, one.gpus, one.gpu, job.seq_len, batch, one.precision, job.task)
    room = (one.planned_device_gib or 0.0) / (one.capacity_gib or 1.0)
    return Claim(
        id=one.id,
        source=one.source,
        job=" ".join(str(part) for part in key if part),
        layout=one.layout,
        plan=one.planned_layout,
        status=one.planned_status,
        measured_s=one.measured_step_s or 0.0,
        predicted_s=one.predicted_step_s or 0.0,
        planned_s=one.planned_step_s or 0.0,
        memory=room,
    )


def write(path: Path, claims: Iterable[Claim]) -> None:
    """Write claims as CSV.

    Args:
        path: File. [path]
        claims: Rows. [-]
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        names = [field.name for field in fields(Claim)]
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        for claim in claims:
            cells = asdict(claim).items()
            short = {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in cells}
            writer.writerow(short)


def read(path: Path) -> list[Claim]:
    """Read claims from CSV.

    Args:
        path: File that `write` wrote. [path]

    Returns:
        Rows. [-]
    """
    numbers = {field.name for field in fields(Claim) if field.type is float}
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        Claim(**{k: float(v) if k in numbers else v for k, v in row.items()})  # type: ignore[arg-type]
        for row in rows
    ]


def best_measured(claims: Iterable[Claim]) -> dict[str, float]:
    """The fastest measured step of every job, over all layouts and releases.

    Args:
        claims: Rows. [-]

    Returns:
        Step by job. [s]
    """
    best: dict[str, float] = {}
    for claim in claims:
        if claim.measured_s > 0:
            known = best.get(claim.job, claim.measured_s)
            best[claim.job] = min(known, claim.measured_s)
    return best


def measured_gain(claim: Claim, best: dict[str, float]) -> float:
    """Gain of the fastest measured layout of a row's job over the row. [1].

    Args:
        claim: The row. [-]
        best: Fastest step by job. [s]

    Returns:
        ``1 - best / measured``; 0 where the row was not timed.
    """
    return 1 - best[claim.job] / claim.measured_s if claim.measured_s > 0 else 0.0


def is_open(claim: Claim, best: dict[str, float]) -> bool:
    """Tell if a claim is large and no measured pair bears it out.

    Args:
        claim: The row. [-]
        best: Fastest step by job. [s]

    Returns:
        True where the plan claims over 8 % more than the best measured layout gained.
    """
    return claim.gain - measured_gain(claim, best) > LARGE


def claims_section() -> str:
    """The section of the accuracy page, from ``claims.csv``.

    Returns:
        Markdown below the heading. [text]
    """
    claims = read(CSV)
    best = best_measured(claims)
    sources: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        sources[claim.source].append(claim)
    rows = [_figures(name, its, best) for name, its in sorted(sources.items())]
    rows.append(_figures("all", claims, best))
    return (HERE / "claims_section.md").read_text().rstrip().format(rows=table(rows))


def _figures(
    name: str, claims: Sequence[Claim], best: dict[str, float]
) -> tuple[object, ...]:
    gains = [claim.gain for claim in claims]
    return (
        name,
        len(claims),
        share(median(gains)),
        share(float(np.percentile(gains, 90))),
        share(fmean(gain > LARGE for gain in gains)),
        share(fmean(is_open(claim, best) for claim in claims)),
    )


def page(claims: Sequence[Claim]) -> str:
    """Every claim over 8 %, jobs with equal layouts and plans together.

    Args:
        claims: Rows. [-]

    Returns:
        Markdown. [text]
    """
    best = best_measured(claims)
    large = [claim for claim in claims if claim.gain > LARGE]
    counts: dict[str, int] = defaultdict(int)
    for claim in large:
        counts[why(claim, best)] += 1
    causes = sorted(counts.items(), key=lambda item: -item[1])
    return (
        (HERE / "claims_page.md")
        .read_text()
        .format(
            rows=len(claims),
            large=len(large),
            causes=table((n, words) for words, n in causes),
            claims=table(_rows(large, best)),
        )
    )


def _rows(
    large: Sequence[Claim], best: dict[str, float]
) -> Iterator[tuple[object, ...]]:
    groups: dict[tuple[str, str, str], list[Claim]] = defaultdict(list)
    for claim in sorted(large, key=lambda one: -one.gain):
        groups[claim.job, claim.layout, claim.plan].append(claim)
    for (job, layout, plan), its in groups.items():
        first = its[0]
        yield (
            first.source,
            job,
            len(its),
            layout,
            plan,
            share(first.gain),
            share(measured_gain(first, best)),
            share(first.off),
            share(first.memory or None),
            why(first, best),
        )


def why(claim: Claim, best: dict[str, float]) -> str:
    """Reason of a large claim.

    Args:
        claim: The row. [-]
        best: Fastest step by job. [s]

    Returns:
        The measured pair, else the row's own error, else the first reason whose pattern
        is found in source, id, layout and plan; else the memory, where the plan nearly
        fills the GPU. [text]
    """
    if not is_open(claim, best):
        return "a faster layout of the job was measured"
    told = _reason(claim)
    if claim.is_of_the_row:
        return f"the row is predicted too long{told and f': {told}'}"
    full = claim.memory >= FULL
    other = (
        f"the plan fills over {FULL:.0%} of the memory" if full else "not understood"
    )
    return told or other


def _reason(claim: Claim) -> str:
    """Reason that is kept by hand; empty without one. [text]."""
    text = f"{claim.source}/{claim.id}: {claim.layout} -> {claim.plan}"
    matching = (one["why"] for one in _reasons() if re.search(one["match"], text))
    return next(matching, "")


@cache
def _reasons() -> list[dict[str, str]]:
    content: list[dict[str, str]] = yaml.safe_load((HERE / "claims.yaml").read_text())
    return content


if __name__ == "__main__":
    main()
