"""Layers dealt out to ranks: the multiples of their loads that are taken."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.search.bounds.deal_bounds import smallest


@given(
    each=st.lists(st.integers(1, 60), min_size=1, max_size=5),
    most=st.integers(0, 9),
    copies=st.integers(1, 4),
    count=st.integers(1, 30),
)
def test_the_smallest_multiples_are_counted_from_below(
    each: list[int], most: int, copies: int, count: int
) -> None:
    offers = sorted(
        number * times
        for number in each
        for times in range(1, most + 1)
        for _ in range(copies)
    )
    numbers = np.array(each, dtype=np.float64)[:, None]
    (found,) = smallest(count, numbers, copies, most)
    if len(offers) < count:
        assert found == float("inf")
        return
    assert found <= offers[count - 1]
    assert found == pytest.approx(offers[count - 1], rel=1e-5)
