"""Bars of choices: a row each, and room for two at the least."""

import pytest

from planner.report.charts.choices import tornado
from planner.specs.answer.explanation import Sensitivity


def change(name: str) -> Sensitivity:
    return Sensitivity(
        change=name,
        effect="saves 1 %",
        step_time_s=0.99,
        gain=0.01,
        best_step_time_s=0.98,
        best_gain=0.02,
        another_wins=False,
    )


@pytest.mark.parametrize(("rows", "pixels"), [(1, 158), (2, 158), (3, 192), (6, 294)])
def test_a_row_is_34_pixels_high_below_90_of_axes(rows: int, pixels: int) -> None:
    figure = tornado([change(f"change {row}") for row in range(rows)])
    assert figure["layout"]["height"] == pixels
