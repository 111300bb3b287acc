"""Answers as web pages, each one file that works offline, in light and dark."""

from planner.report.pages.blocks import Page
from planner.report.pages.comparison import comparison_page
from planner.report.pages.explanation import explanation_page
from planner.report.pages.frame import page_html
from planner.report.pages.plan import Extras, plan_page
from planner.report.pages.prediction import prediction_page
from planner.report.pages.run import phased_page
from planner.report.pages.sweep import sweep_page

__all__ = [
    "Extras",
    "Page",
    "comparison_page",
    "explanation_page",
    "page_html",
    "phased_page",
    "plan_page",
    "prediction_page",
    "sweep_page",
]
