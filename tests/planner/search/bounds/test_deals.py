"""Layers dealt out to ranks: the multiples of their loads that are taken."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.search.bounds.deal_bounds import least_sum, smallest


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


@given(
    ranks=st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 6)),
        min_size=1,
        max_size=3,
    ),
    fewest=st.integers(0, 1),
    count=st.integers(1, 9),
)
def test_no_way_to_deal_out_is_below_the_least_sum(
    ranks: list[tuple[int, int, int]], fewest: int, count: int
) -> None:
    """Every way is tried, those with loads of nothing among them."""
    times, loads, most = np.array(ranks, dtype=np.float64).T[:, :, None]
    ways = product(*(range(fewest, held + 1) for *_, held in ranks))
    sums = [
        sum(h * time for h, (time, *_) in zip(way, ranks, strict=True))
        + max(h * load for h, (_, load, _) in zip(way, ranks, strict=True))
        for way in ways
        if sum(way) == count
    ]
    (found,) = least_sum(count, times, loads, most=most, fewest=fewest)
    if sums:
        assert found <= min(sums)
    elif not fewest:
        assert found == float("inf")
