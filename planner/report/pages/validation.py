"""The report of a validation as one HTML file that needs nothing else."""

from dataclasses import replace

from planner.document.blocks import Document, Section, Table
from planner.document.page import rendered, script_json
from planner.evidence.accuracy.summary import is_v100
from planner.evidence.accuracy.validation import Validation
from planner.report.pages import figures, sheets

WORST = 40
"""Rows that a list of the largest errors shows. [1]"""


def validation_page(answer: Validation) -> str:
    """Figures and tables of a validation, with plotly.js inside.

    Works offline, follows the reader's light or dark theme, and prints.
    """
    return rendered(
        "validation.html.j2",
        title="planner validate",
        opening=sheets.opening(answer),
        tables=_tables(answer),
        details=_details(answer),
        figures=_figures(answer),
    )


def summary_page(answer: Validation) -> Document:
    """The summary of a validation as a page of its own, without figures."""
    return Document(
        title="planner validate",
        eyebrow=sheets.opening(answer),
        answer="Predictions beside measured runs",
        lead="Errors are predicted / measured - 1; suspect rows are not counted.",
        sections=[
            Section(f"table-{place}", sheet.title, [replace(sheet, title="")])
            for place, sheet in enumerate(_tables(answer))
        ],
    )


def _tables(answer: Validation) -> list[Table]:
    every = [
        sheets.summary_sheet(answer),
        sheets.ranking_sheet(answer),
        sheets.oom_sheet(answer),
        sheets.claims_sheet(answer),
    ]
    return [sheet for sheet in every if sheet.rows]


def _details(answer: Validation) -> list[Table]:
    """Tables that open on a click, long ones."""
    every = [
        *sheets.group_sheets(answer),
        sheets.worst_time_sheet(answer, WORST),
        sheets.worst_memory_sheet(answer, WORST),
        sheets.sweeps_sheet(answer),
        sheets.suspect_sheet(answer),
        sheets.unsupported_sheet(answer),
        sheets.invalid_sheet(answer),
        sheets.rows_sheet(answer),
    ]
    return [sheet for sheet in every if sheet.rows]


def _figures(answer: Validation) -> list[dict[str, str]]:
    """Title, identifier and plotly.js data of each figure."""
    priced = [row for row in answer.outcomes if row.status == "ok"]
    counted = [row for row in priced if row.counted and not is_v100(row)]
    drawn = {
        "Step time, predicted and measured": figures.step_scatter(priced),
        "Errors": figures.error_histogram(counted),
        "Errors of step time by group": figures.error_boxes(counted),
        "Peak memory, predicted and measured": figures.memory_scatter(priced),
    }
    return [
        {"title": title, "id": f"figure-{place}", "data": script_json(figure)}
        for place, (title, figure) in enumerate(drawn.items())
    ]
