"""Answers as web pages, each one file that works offline, in light and dark."""

from planner.report.pages.comparison import comparison_page
from planner.report.pages.explanation import explanation_page
from planner.report.pages.plan import Extras, plan_page
from planner.report.pages.prediction import prediction_page
from planner.report.pages.run import phased_page
from planner.report.pages.sweep import sweep_page

__all__ = [
    "Extras",
    "comparison_page",
    "explanation_page",
    "phased_page",
    "plan_page",
    "prediction_page",
    "sweep_page",
]
