"""Stated probabilities and what happened: ``python -m benchmarks.accuracy.chances``.

Writes ``chances.csv`` and the section of README.md. ``A faster than B``: all pairs of
measured layouts of one job, predicted with constants and spread of other sources.
``Runs out of memory``: all rows at first contact, with the memory bands that other
sources give.

The median error of a comparison is ``spread sqrt(differing)``, and
:func:`planner.specs.answer.comparison.odds` the probability::

    P(A faster than B) = odds(log(T_B / T_A) / (spread sqrt(differing)))
"""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.accuracy.contact_report import share, table
from benchmarks.accuracy.intervals import bands
from benchmarks.accuracy.ledger import (
    SCATTERED,
    beyond,
    every_row,
    met_memories,
    states_gib,
    versions,
)
from benchmarks.accuracy.outcomes import failing
from benchmarks.accuracy.pairs import Pair, comparison, pairs
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.ranking import SMALLEST_SWEEP
from planner.calibration.accuracy.validate import validate
from planner.calibration.rows.rows import read_rows
from planner.calibration.rows.sweep import sweep_of
from planner.frameworks.fitted import memory_keys
from planner.hardware.catalog import gpu
from planner.hardware.reading.files import SHIPPED
from planner.specs.answer.comparison import odds

HERE = Path(__file__).parent
CSV, ROWS, RESULTS = HERE / "chances.csv", HERE / "rows", HERE / "results.csv"
README = HERE / "README.md"
HEADING = "## Stated probabilities\n"
BINS = 10
GIB = 2**30
WIDTH = 20
"""Characters of a bar that stands for certainty. [1]"""
FASTER, OOM = "A faster than B", "runs out of memory"
Chance = tuple[float, bool]
"""A stated probability, and whether it happened. [1], [-]"""


@dataclass(frozen=True)
class Bin:
    """Statements whose probability lies in one tenth of the scale.

    Attributes:
        kind: What is stated. [text]
        low: Lower end of the bin. [1]
        high: Upper end of the bin. [1]
        n: Statements. [1]
        stated: Mean stated probability. [1]
        happened: Share that happened. [1]
    """

    kind: str
    low: float
    high: float
    n: int
    stated: float
    happened: float


def main() -> None:
    """Price the rows, and write the bins and the section."""
    faster = binned(FASTER, comparisons(left_out_pairs()), least=0.5)
    write([*faster, *binned(OOM, memory_chances(), least=0.0)])
    before, _, rest = README.read_text().partition(HEADING)
    after = rest[rest.index("\n## ") :]
    README.write_text(f"{before}{HEADING}\n{chances_section()}\n{after}")


def left_out_pairs() -> list[Pair]:
    """Pairs of measured layouts, each predicted without the fit of its source.

    Returns:
        Pairs. [-]
    """
    with RESULTS.open(encoding="utf-8") as file:
        errors = {row["id"]: row["without_source"] for row in csv.DictReader(file)}
    files = [ROWS / f"{source}.yaml" for source in _swept()]
    rows = (row for row in validate(files, catalog=SHIPPED).outcomes if row.counted)
    return pairs(_without_source(rows, errors))


def _swept() -> list[str]:
    """Sources with enough rows of one job for pairs."""
    rows = read_rows([ROWS]).rows
    jobs = Counter((row.source_key, sweep_of(row)) for row in rows if row.counted)
    return sorted({source for (source, _), n in jobs.items() if n >= SMALLEST_SWEEP})


def _without_source(
    rows: Iterable[Outcome], errors: dict[str, str]
) -> Iterator[Outcome]:
    for row in rows:
        error = errors.get(row.id)
        if row.status == "ok" and error and row.measured_step_s:
            step = row.measured_step_s * (1 + float(error))
            yield row.model_copy(update={"predicted_step_s": step})


def comparisons(found: Sequence[Pair]) -> list[Chance]:
    """Probability that the layout predicted faster is faster, and if it is.

    Args:
        found: Pairs. [-]

    Returns:
        Statements; pairs of equal measured steps or without a difference left out.
    """
    chances = []
    for source in sorted({pair.source for pair in found}):
        others = [pair for pair in found if pair.source != source]
        spread = comparison(others, date="", source="").spread
        own = (pair for pair in found if pair.source == source)
        chances += [_faster(p, spread) for p in own if p.differing > 0 and p.measured]
    return chances


def _faster(pair: Pair, spread: float) -> Chance:
    error = spread * float(np.sqrt(pair.differing))
    return odds(abs(pair.predicted) / error), not pair.reversed


def memory_chances() -> list[Chance]:
    """Probability of running out of memory, and if the run did, at first contact.

    The row's predicted peak is held against the memory of the GPU, states apart, under
    the band of the memory that a device must hold as other sources give it.

    Returns:
        Statements, one for each row that counts and has a predicted peak. [-]
    """
    met = met_memories()
    every = failing()
    others = {
        name: bands(
            [row for row in met if row.source != name],
            [one for one in every if one.source != name],
        )
        for name in {one.source for one in met} | {one.source for one in every}
    }
    everything = bands(met, every)
    chances = []
    for row in (row for version in versions() for row in every_row(version)):
        card = gpu(row["gpu"], SHIPPED) if row["gpu"] and row["predicted_gib"] else None
        if card is None or row["counted"] != "True" or card.arch in SCATTERED:
            continue
        keys = memory_keys(row["framework"], "device")
        band = others.get(row["source"], everything).band(keys, card.arch)
        states, peak = states_gib()[row["id"]], float(row["predicted_gib"])
        room = max(card.memory_capacity / GIB - states, 0.0) / beyond(peak, states)
        chances.append((band.beyond(room) if room else 1.0, row["oom"] == "True"))
    return chances


def binned(kind: str, chances: Sequence[Chance], *, least: float) -> list[Bin]:
    """Statements by tenths of the scale.

    Args:
        kind: What is stated. [text]
        chances: Statements. [-]
        least: Lower end of the scale, whose upper end is 1. [1]

    Returns:
        Bins that hold statements, the least likely first. [-]
    """
    edges = np.linspace(least, 1.0, BINS + 1)
    places = np.searchsorted(edges[1:-1], [p for p, _ in chances], side="right")
    found = []
    for at in range(BINS):
        inside = [c for c, place in zip(chances, places, strict=True) if place == at]
        if inside:
            mean, share_ = (fmean(each) for each in zip(*inside, strict=True))
            ends = (float(edges[at]), float(edges[at + 1]))
            found.append(Bin(kind, *ends, len(inside), mean, share_))
    return found


def write(bins: Iterable[Bin]) -> None:
    """Write bins to ``chances.csv``.

    Args:
        bins: Bins. [-]
    """
    names = ("kind", "low", "high", "n", "stated", "happened")
    with CSV.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for one in bins:
            ends = (f"{one.low:.2f}", f"{one.high:.2f}")
            shares = (f"{one.stated:.4f}", f"{one.happened:.4f}")
            writer.writerow((one.kind, *ends, one.n, *shares))


def read() -> list[Bin]:
    """Read bins from ``chances.csv``.

    Returns:
        Bins. [-]
    """
    with CSV.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        Bin(
            kind=row["kind"],
            low=float(row["low"]),
            high=float(row["high"]),
            n=int(row["n"]),
            stated=float(row["stated"]),
            happened=float(row["happened"]),
        )
        for row in rows
    ]


def chances_section() -> str:
    """The section of the accuracy page, from ``chances.csv``.

    Returns:
        Markdown below the heading. [text]
    """
    every = read()
    parts = {
        name: table(_cells(one) for one in every if one.kind == kind)
        for name, kind in (("faster", FASTER), ("oom", OOM))
    }
    return (HERE / "chances_section.md").read_text().rstrip().format(**parts)


def _cells(one: Bin) -> tuple[object, ...]:
    bar = "█" * round(one.happened * WIDTH) + "·" * round((1 - one.happened) * WIDTH)
    ends = f"{one.low:.0%} to {one.high:.0%}"
    return ends, one.n, share(one.stated), share(one.happened), f"`{bar}`"


if __name__ == "__main__":
    main()
