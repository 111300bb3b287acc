"""The report of `planner sweep`: a row for each combination."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from planner import __version__
from planner.comparison.vocabulary import days, money
from planner.report.screen.sentences import risk_words
from planner.report.tables import VERDICT_STYLES, section, sentences
from planner.specs.answer.sweep import Cell, Over, SweepAnswer
from planner.specs.layouts.layout_text import short_layout

FIGURES = ("step", "tokens/s/GPU", "MFU", "GiB", "risk")
"""Columns of every combination behind the values. [text]"""


def sweep_report(answer: SweepAnswer) -> RenderableType:
    """Everything that a sweep found."""
    reasons = [*reasons_against(answer)]
    return Group(
        Text(sweep_title(answer), style="bold"),
        Text(f"planner {__version__}, {answer.seconds:.1f} s", style="dim"),
        section("Plans", _table(answer)),
        *([section("Without a plan", sentences(reasons))] if reasons else []),
    )


def sweep_title(answer: SweepAnswer) -> str:
    """A sweep in words."""
    fields = " and ".join(each.path for each in answer.over)
    return f"{answer.title}: {len(answer.cells):,} combinations of {fields}"


def named(over: Sequence[Over]) -> list[str]:
    """Names of fields in a table: last parts, whole paths where these are equal.

    Returns:
        Names. [text], shape (fields,)
    """
    names = [each.name for each in over]
    return [each.path if names.count(each.name) > 1 else each.name for each in over]


def cell_rows(answer: SweepAnswer) -> list[tuple[str, ...]]:
    """Cells of the table of combinations.

    Returns:
        Values, figures, time and cost of the run where it has tokens, layout. [text]
    """
    timed = any(cell.run for cell in answer.cells)
    return [(*_values(cell), *_figures(cell, timed=timed)) for cell in answer.cells]


def columns(answer: SweepAnswer) -> tuple[str, ...]:
    """Titles of the table of combinations."""
    timed = ("time", "cost") if any(cell.run for cell in answer.cells) else ()
    return (*named(answer.over), *FIGURES, *timed, "layout")


def reasons_against(answer: SweepAnswer) -> Iterator[str]:
    """Reasons against a plan, by combination."""
    for cell in answer.cells:
        if cell.plan is None:
            values = ", ".join(f"{path}={v}" for path, v in cell.values.items())
            yield f"{values}: {cell.reason or cell.status}"


def _table(answer: SweepAnswer) -> Table:
    """The table; layouts are cut where the lines are full."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    *titles, last = columns(answer)
    rows = cell_rows(answer)
    for at, title in enumerate(titles):
        widest = max(len(title), *(len(row[at]) for row in rows))
        table.add_column(title, justify="right", no_wrap=True, min_width=widest)
    table.add_column(last, no_wrap=True, overflow="ellipsis")
    for cell, row in zip(answer.cells, rows, strict=True):
        table.add_row(*row, style=_style(cell))
    return table


def _style(cell: Cell) -> str:
    """Colour of a plan that may not fit."""
    verdict = cell.plan.estimate.memory.verdict if cell.plan else "fits"
    return "" if verdict == "fits" else VERDICT_STYLES[verdict].removeprefix("bold ")


def _values(cell: Cell) -> tuple[str, ...]:
    return tuple(f"{v:,}" if type(v) is int else str(v) for v in cell.values.values())


def _figures(cell: Cell, *, timed: bool) -> tuple[str, ...]:
    """Figures of a plan; the status alone without one."""
    if cell.plan is None:
        others = len(FIGURES) + 2 if timed else len(FIGURES)
        return (cell.status, *[""] * others)
    its, memory = cell.plan.estimate, cell.plan.estimate.memory
    run = cell.run
    cost = run.cost_usd if run else None
    of_run = (
        days(run.time_to_train_s.value) if run else "",
        money(cost.total.value) if cost else "",
    )
    return (
        f"{its.step_time_s.value:.3g} s",
        f"{its.tokens_per_s_per_gpu:,.0f}",
        f"{its.mfu.full_attention:.1%}",
        f"{memory.peak_device_gib.value:.1f}",
        risk_words(memory),
        *(of_run if timed else ()),
        short_layout(cell.plan.layout),
    )
