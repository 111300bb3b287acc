"""The page of `planner predict`: one layout, priced."""

from collections.abc import Sequence

from planner.cost.workload import Workload
from planner.document.blocks import Document
from planner.report.heading import Heading
from planner.report.pages.parts import (
    assumptions_section,
    eyebrow,
    plan_sections,
    tiles,
)
from planner.report.screen.verdict import verdict
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.layout_text import short_layout


def prediction_page(
    plan: RankedPlan,
    workload: Workload,
    title: Heading,
    warnings: Sequence[str] = (),
) -> Document:
    """Everything predicted of one given layout."""
    return Document(
        title=f"planner predict: {title.model}",
        eyebrow=eyebrow(title),
        answer=verdict(title.using(plan.layout.gpus), [("", plan.estimate)]),
        lead=f"As given: {short_layout(plan.layout).replace(',', ', ')}.",
        tiles=tiles(plan.estimate),
        sections=[
            *plan_sections(workload, plan),
            assumptions_section(workload, plan, warnings),
        ],
    )
