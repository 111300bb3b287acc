"""The figures as a page: results.json beside it keeps one row a case and space."""

import json
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.search.cases import CASES
from benchmarks.search.phases import PHASES

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
Row = dict[str, Any]
"""One measurement, as `benchmarks.search.one` prints it."""
HEAD = (
    "job", "space", "candidates", "priced", "solved", "first plan", "proof", "gap",
    "step", "process", "CPU time", "peak memory",
)  # fmt: skip
STEPS = ("import", "resolve", *PHASES)


def line(row: Row) -> str:
    """A measurement in one line of text.

    Args:
        row: The measurement.

    Returns:
        Its cells with their headings. [text]
    """
    cells = zip(HEAD[1:], _cells(row)[1:], strict=True)
    return f"{row['job']}: " + ", ".join(f"{name} {cell}" for name, cell in cells)


def write_page(rows: Sequence[Row]) -> None:
    """Put measurements in place of older ones of the same case and space.

    Args:
        rows: New measurements.
    """
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    kept = {_key(row): row for row in (*known, *rows)}
    merged = sorted(kept.values(), key=_key)
    RESULTS.write_text(json.dumps(merged, indent=1) + "\n", encoding="utf-8")
    (HERE / "README.md").write_text(page(merged), encoding="utf-8")


def page(rows: Sequence[Row]) -> str:
    """The whole page.

    Args:
        rows: Measurements in the order of the page.

    Returns:
        Markdown. [text]
    """
    template = Template((HERE / "template.md").read_text(encoding="utf-8"))
    return template.substitute(
        cases=_table(HEAD, [_cells(row) for row in rows]),
        phases=_table(
            ("job", "space", *STEPS, "machine"), [_phase_cells(row) for row in rows]
        ),
        waiting=_waiting(rows),
    )


def _key(row: Row) -> tuple[int, str, str]:
    job = row["job"]
    place = CASES.index(job) if job in CASES else len(CASES)
    return place, job, row["space"]


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row["job"],
        row["space"],
        f"{row['candidates']:,}",
        f"{row['priced']:,}",
        f"{row['solved']:,}",
        _seconds(row["first_plan_s"]),
        _seconds(row["proof_s"]),
        f"{row['gap']:.2%}",
        _seconds(row["step_s"], 3),
        _seconds(row["process_s"]),
        _seconds(row["cpu_s"]),
        f"{row['peak_mib']:,.0f} MiB",
    )


def _phase_cells(row: Row) -> tuple[str, ...]:
    times = (_seconds(row["phases_s"].get(step, 0.0)) for step in STEPS)
    return row["job"], row["space"], *times, row["machine"]


def _seconds(value: float | None, digits: int = 1) -> str:
    return "none" if value is None else f"{value:.{digits}f} s"


def _waiting(rows: Sequence[Row]) -> str:
    """Cases of which the page has no row yet."""
    done = {(row["job"], row["space"]) for row in rows}
    spaces = ("default", "full")
    left = [f"{c} ({s})" for s in spaces for c in CASES if (c, s) not in done]
    return ", ".join(left) or "none"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
