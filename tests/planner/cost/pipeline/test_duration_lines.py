"""Durations of many splits at once are those of each alone."""

import numpy as np
import pytest
from every_split import splits
from hypothesis import given
from strategies import inner_problems

from planner.cost.pipeline.duration_lines import DurationLines
from planner.cost.pipeline.splits import durations, stage_vectors
from planner.cost.table.units import blocks, nanoseconds
from planner.errors import BadInputError
from planner.specs.table import StageCosts


@given(inner_problems())
def test_every_split_has_the_durations_that_it_has_alone(costs: StageCosts) -> None:
    listed = [split for split, _ in zip(splits(costs), range(12), strict=False)]
    together = DurationLines.of(costs).at(np.array(listed))
    assert together.dtype == np.int64
    for column, split in zip(together.T, listed, strict=True):
        assert column.tolist() == durations(costs, stage_vectors(costs, split))


@given(inner_problems())
def test_the_middle_of_two_splits_takes_the_mean_of_both(costs: StageCosts) -> None:
    listed = [split for split, _ in zip(splits(costs), range(2), strict=False)]
    lines = DurationLines.of(costs)
    middle = lines.at(np.mean(listed, axis=0)[None])
    both = lines.at(np.array(listed))
    assert np.abs(middle[:, 0] - both.mean(axis=1)).max() <= 0.5


@pytest.mark.parametrize("time", [1e7, 1e300, np.inf, np.nan])
def test_a_part_longer_than_any_step_is_refused(time: float) -> None:
    """Rates that are next to nothing are no reason for numbers that overflow."""
    assert nanoseconds(np.array([1.5e-9, 0.0])).tolist() == [2, 0]
    with pytest.raises(BadInputError, match="a part of a step"):
        nanoseconds(np.array([1.0, time]))


@pytest.mark.parametrize("size", [1e17, 1e300, np.inf, np.nan])
def test_a_part_larger_than_any_memory_is_refused(size: float) -> None:
    assert blocks(np.array([0.0, 1.0, 1e12])).tolist()[:2] == [0, 1]
    with pytest.raises(BadInputError, match="a part of the memory"):
        blocks(np.array([1.0, size]))
