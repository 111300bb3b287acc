"""Errors at first contact, and the intervals that they give, as Markdown."""

from collections.abc import Iterable, Sequence
from statistics import median

from benchmarks.accuracy import ledger
from benchmarks.accuracy.intervals import (
    Held,
    by_source,
    coverage,
    left_out,
    shipped,
)
from planner.frameworks.fitted import Intervals

OUT, RAN = True, False
"""Rows that ran out of memory, and rows that ran."""


def contacts() -> str:
    """Errors of each version on rows that it had never seen, the newest first.

    Returns:
        Rows of a table. [text]
    """
    rows = []
    for version in reversed(ledger.versions()):
        for name, its in (
            ("step time", ledger.step_times(version)),
            ("memory peak", ledger.memory_peaks(version)),
        ):
            cells = (its.values, its.sources, share(its.error), share(its.covered))
            rows.append((version, name, *cells))
    return table(rows)


def contact_verdicts() -> str:
    """Verdicts of each version on rows that it had never seen.

    Returns:
        One sentence a version. [text]
    """
    return "\n".join(map(_verdicts, reversed(ledger.versions())))


def _verdicts(version: str) -> str:
    found = ledger.verdicts(version)
    ran, out = found[RAN], found[OUT]
    return (
        f"{version}: of {ran.total()} rows that ran, {ran['oom']} are called `oom` and "
        f"{ran['at-risk']} `at-risk`; of {out.total()} that did not fit, {out['fits']} "
        "are called `fits`."
    )


def held_rows() -> str:
    """Shares of the ledger's rows inside the bands that other sources give.

    Returns:
        Rows of a table. [text]
    """
    rows = []
    for name, met in _quantities():
        held = left_out(met)
        over_rows, over_sources = coverage(held)
        half = median(one.half_width for one in held)
        sources = len(by_source(held))
        figures = map(share, (over_rows, over_sources, half))
        rows.append((f"{name}, at first contact", len(held), sources, *figures))
    return table(rows)


def group_bands() -> str:
    """Band of each group of runs, as it ships.

    Returns:
        Rows of a table. [text]
    """
    known = shipped()
    return table([*_bands("step time", known.time), *_bands("memory", known.memory)])


def _bands(name: str, known: Intervals) -> Iterable[Sequence[object]]:
    groups = {"every framework": known.everything} | known.groups
    for key, its in groups.items():
        half = (its.high - its.low) / 2
        ends = (f"{its.low:.2f}", f"{its.high:.2f}", share(half))
        yield (name, key, its.rows, its.sources, *ends)


def stack_widths() -> dict[str, dict[str, float]]:
    """Median half width by stack, of bands that other sources give.

    Returns:
        Quantity, then stack, to half width. [1]
    """
    return {name: _widths(left_out(met)) for name, met in _quantities()}


def contact_coverage() -> dict[str, tuple[float, float]]:
    """Shares of the ledger's rows inside the bands that other sources give.

    Returns:
        Quantity to the share over rows, and the average over sources. [1]
    """
    return {name: coverage(left_out(met)) for name, met in _quantities()}


def _widths(held: Iterable[Held]) -> dict[str, float]:
    stacks: dict[str, list[float]] = {}
    for one in held:
        stacks.setdefault(one.row.stack, []).append(one.half_width)
    return {stack: median(its) for stack, its in sorted(stacks.items())}


def _quantities() -> tuple[tuple[str, list[ledger.Met]], ...]:
    return ("step time", ledger.met_times()), ("memory", ledger.met_memories())


def share(value: float | None) -> str:
    """A share in words.

    Args:
        value: The share, or None. [1]

    Returns:
        Percent with one decimal. [text]
    """
    return "-" if value is None else f"{100 * value:.1f} %"


def table(rows: Iterable[Sequence[object]]) -> str:
    """Rows of a table.

    Args:
        rows: Cells. [-]

    Returns:
        Markdown without a heading. [text]
    """
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)
