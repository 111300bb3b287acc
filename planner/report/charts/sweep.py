"""Chart of a sweep: throughput over the first field, a line for each other value."""

from collections.abc import Sequence

from planner.document.blocks import Figure, Legend
from planner.report.charts.look import Trace, axis, layout, rounded
from planner.specs.answer.sweep import Cell, SweepAnswer

COLOURS = (
    "compute",
    "tensor",
    "pipeline",
    "data",
    "context",
    "expert",
    "recompute",
    "end",
)
"""Colours of the lines, in order. [text]"""


def sweep_chart(answer: SweepAnswer) -> tuple[Figure, Legend]:
    """Tokens per second and GPU over the values of the first field.

    Returns:
        A line for each combination of the other fields, and their names. [token/s]
    """
    lines = _lines(answer)
    names = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(lines)}
    first = answer.over[0]
    traces = [_trace(cells, first.path, names[name]) for name, cells in lines.items()]
    figure: Figure = {
        "data": traces,
        "layout": layout(
            320,
            xaxis=axis(first.path, type="category"),
            yaxis=axis("tokens/s per GPU", rangemode="tozero"),
        ),
    }
    return figure, tuple(names.items()) if len(names) > 1 else ()


def _lines(answer: SweepAnswer) -> dict[str, list[Cell]]:
    """Cells with a plan, by the values of all fields but the first."""
    lines: dict[str, list[Cell]] = {}
    for cell in answer.cells:
        if cell.plan is not None:
            lines.setdefault(_others(answer, cell), []).append(cell)
    return lines


def _others(answer: SweepAnswer, cell: Cell) -> str:
    return ", ".join(f"{o.name} {cell.values[o.path]}" for o in answer.over[1:])


def _trace(cells: Sequence[Cell], path: str, colour: str) -> Trace:
    plans = [cell.plan for cell in cells if cell.plan is not None]
    rates = [plan.estimate.tokens_per_s_per_gpu for plan in plans]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [str(cell.values[path]) for cell in cells],
        "y": rounded(rates, 1),
        "line": {"color": f"@{colour}", "width": 1.5},
        "marker": {"size": 8, "color": f"@{colour}"},
    }
