"""The answer of `planner sweep`: a row for each combination."""

from collections.abc import Iterator, Sequence

from planner.document.blocks import (
    Chart,
    Document,
    Folded,
    Mood,
    Section,
    Table,
    listed,
)
from planner.planning.comparison.vocabulary import days, money
from planner.report.charts.sweep import sweep_chart
from planner.report.screen.sentences import risk_words
from planner.report.vocabulary import layout_line, row_mood
from planner.specs.answer.sweep import Cell, Over, SweepAnswer

FIGURES = ("step", "tokens/s/GPU", "MFU", "GiB", "risk")
"""Columns of every combination behind the values. [text]"""


def sweep_document(answer: SweepAnswer) -> Document:
    """Everything that a sweep found."""
    figure, legend = sweep_chart(answer)
    fields = " and ".join(each.path for each in answer.over)
    reasons = [*_reasons_against(answer)]
    return Document(
        title="planner sweep",
        eyebrow=f"{answer.title}: {len(answer.cells):,} combinations of {fields}",
        answer=_answer(answer),
        lead=f"Planned in {answer.seconds:.1f} s; each row is the best of its search.",
        sections=[
            Section(
                "plans",
                "Plans",
                [
                    Chart(figure, "Throughput of each combination", legend),
                    _table(answer),
                    Folded("Layouts", [_layouts(answer)]),
                    *listed("Without a plan", reasons),
                ],
            )
        ],
    )


def _answer(answer: SweepAnswer) -> str:
    """The combination of the highest throughput of a GPU."""
    best = max(answer.cells, key=_rate)
    if best.plan is None:
        return "No combination has a plan"
    values = ", ".join(f"{each.name} {best.values[each.path]}" for each in answer.over)
    return f"{values} trains most: {_rate(best):,.0f} tokens/s per GPU"


def _rate(cell: Cell) -> float:
    return cell.plan.estimate.tokens_per_s_per_gpu if cell.plan else 0.0


def _reasons_against(answer: SweepAnswer) -> Iterator[str]:
    """Reasons against a plan, by combination."""
    for cell in answer.cells:
        if cell.plan is None:
            values = ", ".join(f"{path}={v}" for path, v in cell.values.items())
            yield f"{values}: {cell.reason or cell.status}"


def _table(answer: SweepAnswer) -> Table:
    """Values and figures; time and cost of the run where it has tokens."""
    is_timed = any(cell.run for cell in answer.cells)
    return Table(
        (
            *_names(answer.over),
            *FIGURES,
            *(("time", "cost") if is_timed else ()),
        ),
        [
            (*_values(cell), *_figures(cell), *(_run(cell) if is_timed else ()))
            for cell in answer.cells
        ],
        words=len(answer.over),
        moods=[_mood(cell) for cell in answer.cells],
    )


def _layouts(answer: SweepAnswer) -> Table:
    """Values and layout of each plan."""
    rows = [
        (*_values(cell), layout_line(cell.plan.layout))
        for cell in answer.cells
        if cell.plan is not None
    ]
    columns = (*_names(answer.over), "layout")
    return Table(columns, rows, words=len(columns))


def _names(over: Sequence[Over]) -> list[str]:
    """Last parts of fields, whole paths where these are equal."""
    names = [each.name for each in over]
    return [each.path if names.count(each.name) > 1 else each.name for each in over]


def _mood(cell: Cell) -> Mood:
    return row_mood(cell.plan.estimate.memory.verdict) if cell.plan else ""


def _values(cell: Cell) -> tuple[str, ...]:
    return tuple(f"{v:,}" if type(v) is int else str(v) for v in cell.values.values())


def _figures(cell: Cell) -> tuple[str, ...]:
    """Figures of a plan; the status alone without one."""
    if cell.plan is None:
        return (cell.status, *[""] * (len(FIGURES) - 1))
    estimate = cell.plan.estimate
    return (
        f"{estimate.step_time_s.value:.3g} s",
        f"{estimate.tokens_per_s_per_gpu:,.0f}",
        f"{estimate.mfu.full_attention:.1%}",
        f"{estimate.memory.peak_device_gib.value:.1f}",
        risk_words(estimate.memory),
    )


def _run(cell: Cell) -> tuple[str, str]:
    """Time and cost of the run."""
    if cell.run is None:
        return "", ""
    cost = cell.run.cost_usd
    return days(cell.run.time_to_train_s.value), money(cost.total.value) if cost else ""
