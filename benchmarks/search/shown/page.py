"""The page: README.md beside this file, from results.json and a template."""

from collections.abc import Sequence
from pathlib import Path
from string import Template

from benchmarks.search.cases import of_the_page
from benchmarks.search.peers.beside import calculon_section
from benchmarks.search.process import Row
from benchmarks.search.results import Tables
from benchmarks.search.shown import bars, tables

HERE = Path(__file__).parents[1]
BAR_HEAD = ("job", "space", "what", "asked", "measured", "met")


def line(row: Row) -> str:
    """A measurement in one line of text.

    Args:
        row: The measurement.

    Returns:
        Cells of the row with their headings. [text]
    """
    cells = zip(tables.CASE_HEAD[1:], tables.case_cells(row)[1:], strict=True)
    told = (f"{name} {cell}" for name, cell in cells if cell)
    return f"{row['job']}: " + ", ".join(told)


def write_page(measured: Tables) -> None:
    """Write the page.

    Args:
        measured: Every row of results.json.
    """
    (HERE / "README.md").write_text(page(measured), encoding="utf-8")


def page(measured: Tables) -> str:
    """The whole page.

    Args:
        measured: Every row of results.json.

    Returns:
        Markdown. [text]
    """
    template = Template((HERE / "shown" / "template.md").read_text(encoding="utf-8"))
    cases = sorted(measured["cases"], key=_place)
    moments = (f"{moment} s" for moment in tables.MOMENTS)
    gaps = tables.table(
        ("job", "space", *moments, "end"), [tables.gap_cells(row) for row in cases]
    )
    phases = tables.table(
        ("job", "space", *tables.STEPS), [tables.phase_cells(row) for row in cases]
    )
    return template.substitute(
        machine=_machines([*cases, *measured["growth"]]),
        bars=tables.table(BAR_HEAD, bars.cells(cases)),
        cases=tables.table(tables.CASE_HEAD, [tables.case_cells(row) for row in cases]),
        gaps=gaps,
        phases=phases,
        growth=tables.growth_tables(measured["growth"]),
        calculon=calculon_section(cases),
        waiting=_waiting(cases),
    )


def _machines(rows: Sequence[Row]) -> str:
    """Dates and machines of the rows, with the number of rows of each."""
    names = [row["machine"] for row in rows]
    told = {name: names.count(name) for name in sorted(names)}
    return "; ".join(f"{name} ({count} rows)" for name, count in told.items())


def _place(row: Row) -> tuple[int, str, str]:
    order = [(case.job, case.space) for case in of_the_page()]
    key = (row["job"], row["space"])
    return order.index(key) if key in order else len(order), *key


def _waiting(rows: Sequence[Row]) -> str:
    """Cases of which the page has no row yet."""
    done = {(row["job"], row["space"]) for row in rows}
    left = [c for c in of_the_page() if (c.job, c.space) not in done]
    return ", ".join(f"{case.job} ({case.space})" for case in left) or "none"
