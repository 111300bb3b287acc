"""Tables of a validation."""

from collections.abc import Callable, Iterable, Sequence

from planner.calibration.accuracy.errors import Accuracy, Errors
from planner.calibration.accuracy.ranking import Ranking
from planner.calibration.accuracy.summary import GROUPINGS, Summary
from planner.calibration.accuracy.validation import RowResult, Validation
from planner.document.blocks import Table
from planner.specs.counted import counted

NOTHING = "-"
"""Stands for a figure that does not exist."""
_ERROR_TITLES = ("n", "mean", "median", "p90", "bias", "covered")
_GROUP_TITLES = ("rows", "median", "p90", "bias", "covered")
GROUP_NAMES = {
    "by_gpu": "GPU",
    "by_framework": "framework",
    "by_stack": "software stack",
    "by_architecture": "architecture",
    "by_context": "context length in tokens",
    "by_scale": "GPUs",
    "by_source": "source",
}
"""Field of a summary to the name of the grouping."""


def percent(value: float | None, *, signed: bool = False) -> str:
    """A share or a relative error with one decimal.

    Args:
        value: The figure, or None. [1]
        signed: True to write a plus sign. [-]
    """
    if value is None:
        return NOTHING
    return f"{value:+.1%}" if signed else f"{value:.1%}"


def opening(answer: Validation) -> str:
    """Number of rows and sources, and of suspect, unsupported and invalid rows."""
    both = (answer.summary, answer.summary_v100)
    sources = len({row.source for row in answer.rows})
    counts = {
        "suspect": sum(its.suspect for its in both),
        "unsupported": sum(its.unsupported for its in both),
        "invalid": sum(its.invalid for its in both),
    }
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    return f"{len(answer.rows):,} rows of {counted(sources, 'source')}: {told}"


def summary_table(answer: Validation) -> Table:
    """Errors over rows and as the average over sources, V100 apart."""
    main, apart = answer.summary, answer.summary_v100
    lines = [
        ("step time, over rows", main.step_time),
        ("step time, over sources", main.macro.step_time),
        ("memory, over rows", main.memory),
        ("memory, over sources", main.macro.memory),
        ("V100 step time, over rows", apart.step_time),
        ("V100 memory, over rows", apart.memory),
    ]
    rows = tuple((name, *_error_cells(its)) for name, its in lines if its.n)
    return Table(("", *_ERROR_TITLES), rows, title="Errors, predicted / measured - 1")


def _error_cells(its: Errors) -> tuple[str, ...]:
    sizes = (percent(its.mape), percent(its.median), percent(its.p90))
    return (f"{its.n}", *sizes, percent(its.bias, signed=True), percent(its.coverage))


def ranking_table(answer: Validation) -> Table:
    """Ranking within sweeps of one job, over sweeps and over sources."""
    main, apart = answer.summary, answer.summary_v100
    lines = [
        ("over sweeps", main.ranking),
        ("over sources", main.macro.ranking),
        ("V100, over sweeps", apart.ranking),
    ]
    return Table(
        (
            "",
            "n",
            "pairs right",
            "Kendall tau",
            "top-1 regret",
            "of our choice",
            "best in first 3",
            "best in tied",
        ),
        tuple((name, *_ranking_cells(its)) for name, its in lines if its.groups),
        title="Ranking of the layouts of one job",
    )


def _ranking_cells(its: Ranking) -> tuple[str, ...]:
    tau = NOTHING if its.kendall_tau is None else f"{its.kendall_tau:.2f}"
    regrets = its.top1_regret, its.choice_regret
    rates = (*regrets, its.top3_hit_rate, its.tied_hit_rate)
    return f"{its.groups}", percent(its.pairs_right), tau, *map(percent, rates)


def sweeps_table(answer: Validation) -> Table:
    """Every sweep, the lowest Kendall tau first."""
    worst_first = sorted(answer.sweeps, key=lambda sweep: sweep.kendall_tau)
    rows = tuple(
        (
            sweep.source,
            sweep.key,
            f"{sweep.layouts}",
            f"{round(sweep.pairs * sweep.pairs_right)} of {sweep.pairs}",
            f"{sweep.kendall_tau:.2f}",
            percent(sweep.top1_regret),
            "yes" if sweep.top3_hit else "no",
        )
        for sweep in worst_first
    )
    titles = ("source", "job", "layouts", "right", "tau", "regret", "best in first 3")
    return Table(titles, rows, words=2, title="Sweeps, worst first")


def oom_table(answer: Validation) -> Table:
    """Verdicts of planner on runs that worked, and on runs that did not fit."""
    oom = answer.summary.oom
    ran = (oom.true_negative, oom.at_risk_ran, oom.false_positive)
    failed = (oom.false_negative, oom.true_positive)
    rows = (
        ("ran", *_shares(ran)),
        ("did not fit", *_shares(failed)[:-1], "", _shares(failed)[-1]),
    )
    titles = ("run", "n", "called fits", "at-risk", "oom")
    kept = tuple(row for row in rows if row[1] != "0")
    return Table(
        titles, kept, title="Out of memory (at-risk and oom together where none fitted)"
    )


def _shares(counts: Sequence[int]) -> tuple[str, ...]:
    total = sum(counts)
    shares = (f"{c} ({c / total:.1%})" if total else "0" for c in counts)
    return (f"{total}", *shares)


def group_tables(answer: Validation) -> tuple[Table, ...]:
    """Errors by GPU, framework, stack, architecture, context, scale and source."""
    return tuple(_group_table(answer.summary, grouping) for grouping in GROUPINGS)


def _group_table(summary: Summary, grouping: str) -> Table:
    groups: dict[str, Accuracy] = getattr(summary, grouping)
    memory = ("memory", *_GROUP_TITLES[1:])
    rows = tuple(
        (name, *_group_cells(its.step_time), *_group_cells(its.memory))
        for name, its in groups.items()
    )
    name = GROUP_NAMES[grouping]
    return Table((name, *_GROUP_TITLES, *memory), rows, title=f"By {name}")


def _group_cells(its: Errors) -> tuple[str, ...]:
    n, _, *rest = _error_cells(its)
    return (n, *rest)


def claims_table(answer: Validation) -> Table:
    """Gains that plans claim over measured layouts, by source."""
    groups = {n: its.claimed_gain for n, its in answer.summary.by_source.items()}
    every = {"all": answer.summary.claimed_gain} | groups
    shares = {n: (g.median, g.p90, g.over_8_percent) for n, g in every.items() if g.n}
    rows = ((n, str(every[n].n), *map(percent, its)) for n, its in shares.items())
    titles = ("source", "rows", "median", "p90", "over 8%")
    return Table(titles, tuple(rows), title="Gain that our plans claim")


def worst_time_table(answer: Validation, most: int) -> Table:
    """The rows with the largest errors of step time, V100 apart."""
    return _worst(answer, most, "step time [s]", _time_cells)


def worst_memory_table(answer: Validation, most: int) -> Table:
    """The rows with the largest errors of peak memory, V100 apart."""
    return _worst(answer, most, "memory [GiB]", _memory_cells)


Cells = Callable[[RowResult], tuple[float | None, float | None, float | None]]


def _time_cells(row: RowResult) -> tuple[float | None, float | None, float | None]:
    its = row.predicted.step_time_s, row.measured.step_time_s
    return (*its, row.error.step_time)


def _memory_cells(row: RowResult) -> tuple[float | None, float | None, float | None]:
    its = row.predicted.peak_memory_gib, row.measured.peak_memory_gib
    return (*its, row.error.memory)


def _worst(answer: Validation, most: int, what: str, cells: Cells) -> Table:
    sure = (r for r in answer.rows if r.counted and "v100" not in r.gpu.lower())
    known = [(error, row) for row in sure if (error := cells(row)[2]) is not None]
    known.sort(key=lambda pair: -abs(pair[0]))
    rows = tuple(_row_cells(row, cells) for _, row in known[:most])
    titles = ("row", "GPUs", "layout", "predicted", "measured", "error")
    return Table(titles, rows, words=3, title=f"Largest errors of {what}")


def _row_cells(row: RowResult, cells: Cells) -> tuple[str, ...]:
    predicted, measured, error = cells(row)
    numbers = (number(predicted), number(measured), percent(error, signed=True))
    return (row.id, f"{row.gpus} x {row.gpu}", row.layout, *numbers)


def number(value: float | None) -> str:
    """Four significant digits.

    Args:
        value: Any quantity, or None. [any]
    """
    return NOTHING if value is None else f"{value:.4g}"


def suspect_table(answer: Validation) -> Table:
    """Rows whose own source is in doubt: shown, not counted."""
    rows = (row for row in answer.rows if not row.counted and row.status == "ok")
    return Table(
        ("row", "why", "step error", "memory error"),
        tuple(
            (
                row.id,
                row.note,
                percent(row.error.step_time, signed=True),
                percent(row.error.memory, signed=True),
            )
            for row in rows
        ),
        words=2,
        title="Suspect rows, not counted",
    )


def unsupported_table(answer: Validation) -> Table:
    """Rows that could not be priced, and why."""
    rows = (row for row in answer.rows if row.status == "unsupported")
    return Table(("row", "reason"), _reasons(rows), words=2, title="Unsupported rows")


def invalid_table(answer: Validation) -> Table:
    """Rows that could not be read, and why."""
    rows = [row for row in answer.rows if row.status == "invalid"]
    named = tuple((f"{r.file}: {r.id}" if r.id else r.file, r.reason) for r in rows)
    return Table(("row", "reason"), named, words=2, title="Invalid rows")


def _reasons(rows: Iterable[RowResult]) -> tuple[tuple[str, ...], ...]:
    return tuple((row.id, row.reason) for row in rows)


def rows_table(answer: Validation) -> Table:
    """Every row that was priced."""
    titles = (
        "row",
        "source",
        "GPUs",
        "stack",
        "layout",
        "predicted [s]",
        "measured [s]",
    )
    more = ("error", "predicted [GiB]", "measured [GiB]", "error ", "verdict")
    priced = (row for row in answer.rows if row.status == "ok")
    return Table(
        (*titles, *more), tuple(map(_full, priced)), words=5, title="All priced rows"
    )


def _full(row: RowResult) -> tuple[str, ...]:
    name, gpus, layout, *times = _row_cells(row, _time_cells)
    memory = _row_cells(row, _memory_cells)[3:]
    verdict = row.predicted.verdict
    return (name, row.source, gpus, row.stack, layout, *times, *memory, verdict)
