"""Measurements as the cells of the page's tables."""

from collections.abc import Sequence

from benchmarks.search.growth import AXES, exponents
from benchmarks.search.phases import PHASES
from benchmarks.search.process import Row
from benchmarks.search.series import gap_at, gap_of

Cells = tuple[str, ...]
CASE_HEAD = (
    "job", "space", "ended", "candidates", "priced", "solved", "first plan", "proof",
    "gap", "step", "process", "CPU time", "peak memory",
)  # fmt: skip
MOMENTS = (1, 2, 5, 10, 20, 30, 60)
"""Times at which the gap is told. [s]"""
STEPS = ("import", "resolve", *PHASES)
GROWTH_HEAD = (
    "ended", "candidates", "solved", "first plan", "proof", "gap", "whole search",
    "CPU time", "peak memory",
)  # fmt: skip


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown.

    Args:
        head: Headings of the table. [text]
        rows: Cells of the table. [text]

    Returns:
        Lines of the table. [text]
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def case_cells(row: Row) -> Cells:
    """Counts, times, gap and memory of a case."""
    last = (row.get("series") or [(0.0, None, None)])[-1]
    return (
        row["job"],
        row["space"],
        ended(row),
        *(count(row.get(name)) for name in ("candidates", "priced", "solved")),
        seconds(row.get("first_plan_s")),
        seconds(row.get("proof_s")),
        share(gap_of(last)),
        seconds(last[1], 3),
        seconds(row["process_s"]),
        seconds(row.get("cpu_s")),
        count(row["peak_mib"], "MiB"),
    )


def gap_cells(row: Row) -> Cells:
    """The gap of a case at each moment, and at its end."""
    series = row.get("series", ())
    shown = [share(gap_at(series, moment)) for moment in MOMENTS]
    last = share(gap_of(series[-1])) if series else "none"
    return row["job"], row["space"], *shown, last


def phase_cells(row: Row) -> Cells:
    """Time that a case spent in each phase."""
    times = (seconds(row.get("phases_s", {}).get(step, 0.0)) for step in STEPS)
    return row["job"], row["space"], *times


def growth_cells(row: Row) -> Cells:
    """One point of growth."""
    return (
        count(row["value"]),
        ended(row),
        *(count(row.get(name)) for name in ("candidates", "solved")),
        seconds(row.get("first_plan_s")),
        seconds(row.get("proof_s")),
        share(row.get("gap")),
        seconds(row["search_s"]),
        seconds(row.get("cpu_s")),
        count(row["peak_mib"], "MiB"),
    )


def growth_tables(rows: Sequence[Row]) -> str:
    """A table and the fitted powers of each axis.

    Args:
        rows: Points of growth.

    Returns:
        Markdown. [text]
    """
    return "\n\n".join(_growth(name, rows) for name in AXES)


def _growth(name: str, rows: Sequence[Row]) -> str:
    along = sorted((r for r in rows if r["along"] == name), key=lambda r: r["value"])
    if not along:
        return f"Against {name}: not measured yet."
    powers = (
        f"{what} {power:.2f}"
        for what, power in exponents(along).items()
        if power is not None
    )
    told = f"Fitted powers of the number of {name}: {', '.join(powers)}."
    return table((name, *GROWTH_HEAD), [growth_cells(r) for r in along]) + f"\n\n{told}"


def ended(row: Row) -> str:
    """End of a case: the status of the result, or the error."""
    return str(row.get("error", row["status"]))


def count(value: float | None, unit: str = "") -> str:
    """A whole number in words; none where there is none."""
    return "none" if value is None else f"{value:,.0f} {unit}".rstrip()


def seconds(value: float | None, digits: int = 1) -> str:
    """A time in words; none where there is none."""
    return "none" if value is None else f"{value:.{digits}f} s"


def share(value: float | None) -> str:
    """A gap in per cent; none where there is none."""
    return "none" if value is None else f"{value:.2%}"
