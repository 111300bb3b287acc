"""Rows of the tables that answers give."""

from collections.abc import Iterator

from planner.specs.answer.estimate import Estimate
from planner.specs.answer.result import RankedPlan
from planner.specs.layouts.axes import AXES, Axis
from planner.specs.layouts.layout import Layout
from planner.specs.layouts.layout_text import short_layout


def plan_row(plan: RankedPlan) -> dict[str, object]:
    """A plan as a row.

    Args:
        plan: The plan. [-]

    Returns:
        Settings, layout, time and memory by column. [-]
    """
    return {**plan.settings, **estimate_row(plan.layout, plan.estimate)}


def estimate_row(layout: Layout, estimate: Estimate) -> dict[str, object]:
    """A layout and its price as a row.

    Args:
        layout: The layout. [-]
        estimate: Predicted time and memory. [-]

    Returns:
        Layout, time and memory by column. [-]
    """
    step, peak = estimate.step_time_s, estimate.memory.peak_device_gib
    return {
        "framework": estimate.stack.get("framework"),
        "layout": short_layout(layout),
        **{axis.name: value for axis, value in _plain(layout)},
        "step_time_s": step.value,
        "step_time_low_s": step.low,
        "step_time_high_s": step.high,
        "tokens_per_s": estimate.tokens_per_s,
        "mfu": estimate.mfu.full_attention,
        "device_gib": peak.value,
        "capacity_gib": estimate.memory.capacity_gib,
        "verdict": estimate.memory.verdict,
    }


def _plain(layout: Layout) -> Iterator[tuple[Axis, int | str]]:
    """Axes whose value is a number or a word; blocks stand in the short form alone."""
    for axis in AXES:
        value = getattr(layout, axis.name, None)
        if isinstance(value, int | str):
            yield axis, value
