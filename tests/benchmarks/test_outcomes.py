"""Runs that ran and runs that failed bound the memory that must fit."""

from math import exp, log

import numpy as np
import pytest

from benchmarks.accuracy.intervals import bands, left_out
from benchmarks.accuracy.ledger import beyond, met_memories
from benchmarks.accuracy.outcomes import failing, spread, surprise
from planner.frameworks.fitted import intervals
from planner.specs.answer.uncertainty import END


@pytest.mark.parametrize("true", [0.1, 0.3])
def test_the_spread_of_drawn_outcomes_is_found_again(true: float) -> None:
    draws = np.random.default_rng(7)
    rooms = draws.uniform(-1.0, 1.0, 4000)
    failed = draws.normal(0.0, true, 4000) > rooms
    found = spread(list(zip(rooms.tolist(), failed.tolist(), strict=True)))
    assert found == pytest.approx(true, rel=0.15)


def test_only_publications_that_report_failures_are_heard() -> None:
    for one in failing():
        assert {failed for _, failed in one.outcomes} == {False, True}
        assert one.keys[-1] == "device"
    assert len(failing()) >= 2


def test_outcomes_narrow_the_memory_that_must_fit_and_nothing_else() -> None:
    plain, heard = bands(met_memories()), bands(met_memories(), failing())
    assert heard.groups["device"].high < plain.groups["device"].high
    assert heard.everything == plain.everything
    others = [key for key in plain.groups if not key.startswith("device")]
    assert all(heard.groups[key] == plain.groups[key] for key in others)
    assert heard == intervals().memory


def test_left_out_outcomes_surprise_no_more_under_the_narrower_bands() -> None:
    """Each publication left out in turn, the narrower bands lose nothing in all."""
    before = after = 0.0
    for one in failing():
        rows = [row for row in met_memories() if row.source != one.source]
        others = [each for each in failing() if each.source != one.source]
        wide, narrow = (
            surprise(one.outcomes, log(band.high) / END)
            for known in ((), others)
            for band in [bands(rows, known).band(one.keys, "hopper")]
        )
        before, after = before + wide, after + narrow
    assert after < 1.01 * before


def test_states_are_no_part_of_an_error() -> None:
    assert beyond(60.0, 40.0) == 20.0
    assert beyond(60.0, 59.9) == pytest.approx(3.0)
    for held in left_out(met_memories())[:50]:
        scaled = held.row.known + (1 - held.row.known) * exp(held.row.error)
        assert scaled > 0
