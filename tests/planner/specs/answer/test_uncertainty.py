"""Bands around a prediction, and the probability beyond a capacity."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.specs.answer.uncertainty import COUNTERS, UNMEASURED, Band

SKEWED = Band(low=0.7, high=1.6)


def test_ends_of_a_band_leave_a_twentieth_beyond() -> None:
    assert SKEWED.beyond(1.6) == pytest.approx(0.05)
    assert SKEWED.beyond(0.7) == pytest.approx(0.95)
    assert SKEWED.beyond(1.0) == pytest.approx(0.5)


@given(st.floats(0.01, 100.0), st.floats(0.01, 100.0))
def test_more_room_is_never_less_likely_to_be_enough(one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert 0 <= SKEWED.beyond(large) <= SKEWED.beyond(small) <= 1


def test_a_certain_value_is_beyond_what_is_smaller() -> None:
    point = Band(low=1.0, high=1.0)
    assert (point.beyond(0.9), point.beyond(1.0), point.beyond(1.1)) == (1.0, 0.0, 0.0)


def test_every_counter_has_a_band() -> None:
    bands = {"memory": Band(low=0.5, high=2.0), "allocated": SKEWED}
    some = UNMEASURED.model_copy(update=bands)
    found = {counter: some.counted(counter) for counter in COUNTERS}
    assert found["device"] == bands["memory"]
    assert found["active"] == found["allocated"] == SKEWED
    assert found["unknown"] == found["reserved"] == UNMEASURED.reserved


@pytest.mark.parametrize("risk", [1e-6, 0.05, 0.3, 0.5, 0.7, 0.999])
def test_a_multiple_is_exceeded_with_its_probability(risk: float) -> None:
    assert SKEWED.beyond(SKEWED.exceeded(risk)) == pytest.approx(risk)


def test_ends_of_a_band_are_exceeded_in_a_twentieth_of_cases() -> None:
    ends = SKEWED.exceeded(0.05), SKEWED.exceeded(0.5), SKEWED.exceeded(0.95)
    assert ends == pytest.approx((SKEWED.high, 1.0, SKEWED.low))
