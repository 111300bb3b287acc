"""Answers as rich renderables; the caller decides where they are printed."""

from planner.report.heading import Heading, heading
from planner.report.text import (
    infeasible_report,
    phases_report,
    prediction_report,
    quiet_report,
    result_report,
)

__all__ = [
    "Heading",
    "heading",
    "infeasible_report",
    "phases_report",
    "prediction_report",
    "quiet_report",
    "result_report",
]
