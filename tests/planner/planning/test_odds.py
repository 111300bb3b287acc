"""Odds and expected gain of one layout over another, by hand."""

import math

import numpy as np
import pytest

from planner.specs.answer.comparison import Comparison, odds
from planner.specs.answer.estimate import TimeBreakdown

ITS = Comparison(
    spread=0.2,
    kept=0.5,
    pairs=1,
    sweeps=1,
    sources=1,
    reversed_tied=0.3,
    reversed_apart=0.0,
    date="today",
    source="by hand",
)
A = TimeBreakdown(compute=0.8, bubble=0.2)
B = TimeBreakdown(compute=0.8, bubble=0.25)


def test_at_the_median_error_three_of_four_are_faster() -> None:
    """The predicted distance is as large as the median error of the comparison."""
    distance = math.log(B.compute + B.bubble)
    exact = ITS.model_copy(
        update={"spread": distance / math.sqrt(0.05 / math.sqrt(1.05))}
    )
    assert exact.likely(A, B) == pytest.approx(0.75)
    assert exact.likely(B, A) == pytest.approx(0.25)


def test_nothing_tells_equal_layouts_apart() -> None:
    assert ITS.likely(A, A) == 0.5
    assert ITS.gain(A, A) == 0


def test_half_of_a_predicted_gain_is_expected_where_pairs_kept_half() -> None:
    assert ITS.gain(A, B) == pytest.approx(math.sqrt(1.05) - 1)
    assert ITS.gain(B, A) == pytest.approx(1 / math.sqrt(1.05) - 1)
    stretched = ITS.model_copy(update={"kept": 1.3})
    assert stretched.gain(A, B) == pytest.approx(0.05)


@pytest.mark.parametrize("distance", [0.3, 1.0, 2.5, 9.0])
def test_errors_are_of_students_distribution_with_two_degrees_of_freedom(
    distance: float,
) -> None:
    """Density ``(2 + x^2)^-1.5`` and median error ``sqrt(2 / 3)``, of Student."""
    ends = np.linspace(0, distance * math.sqrt(2 / 3), 20_001)
    density = (2 + ends**2) ** -1.5
    share = float(np.trapezoid(density, ends))
    assert odds(distance) == pytest.approx(0.5 + share, abs=1e-6)
    assert odds(distance) + odds(-distance) == pytest.approx(1)
