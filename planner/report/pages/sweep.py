"""The page of a sweep."""

from planner.document.blocks import Block, Chart, Document, Notes, Section, Table
from planner.report.charts.sweep import sweep_chart
from planner.report.sweep import cell_rows, columns, reasons_against, sweep_title
from planner.specs.answer.sweep import Cell, SweepAnswer


def sweep_page(answer: SweepAnswer) -> Document:
    """Everything that a sweep found."""
    reasons = tuple(reasons_against(answer))
    figure, legend = sweep_chart(answer)
    chart = Chart(figure, "Throughput of each combination", legend)
    sheet = Table(columns(answer), tuple(cell_rows(answer)), len(answer.over))
    parts: list[Block] = [chart, sheet]
    parts += [Notes(reasons, "Without a plan")] if reasons else []
    return Document(
        title="planner sweep",
        eyebrow=sweep_title(answer),
        answer=_answer(answer),
        lead=f"Planned in {answer.seconds:.1f} s; each row is the best of its search.",
        sections=[Section("plans", "Plans", parts)],
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
