"""The answer of `planner validate`: predictions beside measured runs."""

from dataclasses import replace

from planner.calibration.accuracy.summary import is_v100
from planner.calibration.accuracy.validation import Validation
from planner.document.blocks import Chart, Document, Folded, Section
from planner.report.validation import figures, tables

WORST = 20
"""Rows that a list of the largest errors shows. [1]"""


def validation_document(answer: Validation) -> Document:
    """Everything of a validation: summary, figures, groups, worst rows, every row."""
    charts = [Section("figures", "Figures", _charts(answer))]
    details = [Section("details", "Tables", _details(answer))]
    summary = summary_document(answer)
    return replace(summary, sections=[*summary.sections, *charts, *details])


def summary_document(answer: Validation) -> Document:
    """The summary of a validation alone."""
    summaries = (
        tables.summary_table(answer),
        tables.ranking_table(answer),
        tables.oom_table(answer),
        tables.claims_table(answer),
    )
    return Document(
        title="planner validate",
        eyebrow=tables.opening(answer),
        answer="Predictions beside measured runs",
        lead="Errors are predicted / measured - 1; suspect rows are not counted.",
        sections=[
            Section(f"table-{place}", table.title, [replace(table, title="")])
            for place, table in enumerate(summaries)
            if table.rows
        ],
    )


def _details(answer: Validation) -> list[Folded]:
    """Tables that open on a click; long ones on a page alone."""
    shown = (
        *tables.group_tables(answer),
        tables.worst_time_table(answer, WORST),
        tables.worst_memory_table(answer, WORST),
        tables.suspect_table(answer),
        tables.unsupported_table(answer),
        tables.invalid_table(answer),
    )
    every = (tables.sweeps_table(answer), tables.rows_table(answer))
    return [
        Folded(
            f"{table.title} ({len(table.rows)})",
            [replace(table, title="")],
            is_appendix=table in every,
        )
        for table in (*shown, *every)
        if table.rows
    ]


def _charts(answer: Validation) -> list[Chart]:
    priced = [row for row in answer.outcomes if row.status == "ok"]
    counted = [row for row in priced if row.counted and not is_v100(row)]
    drawn = {
        "Step time, predicted and measured": figures.step_scatter(priced),
        "Errors": figures.error_histogram(counted),
        "Errors of step time by group": figures.error_boxes(counted),
        "Peak memory, predicted and measured": figures.memory_scatter(priced),
    }
    return [Chart(figure, title) for title, figure in drawn.items()]
