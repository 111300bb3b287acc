"""Rows that a step waits for, against every draw that can happen."""

from itertools import product

import pytest
from each import each

from planner.cost.rows import SUMMED, _summed, greatest_deviation, slowest
from planner.specs.lengths import Draws

TWO = Draws((100, 400), (0.5, 0.5))
THREE = Draws((128, 256, 512), (0.5, 0.3, 0.2))


def enumerated(draws: Draws, together: int, groups: int, batches: int) -> list[float]:
    """Mean row and mean square of the group with the most tokens, draw by draw."""
    texts = range(len(draws.lengths))
    rows = draws.greatest(together)
    tokens = squares = 0.0
    for every in product(product(texts, repeat=batches), repeat=groups):
        share = 1.0
        for row in (row for group in every for row in group):
            share *= rows.shares[row]
        sums = [sum(rows.lengths[row] for row in group) for group in every]
        last = [g for g, s in zip(every, sums, strict=True) if s == max(sums)]
        each = [sum(rows.lengths[row] ** 2 for row in group) for group in last]
        tokens += share * max(sums) / batches
        squares += share * sum(each) / len(each) / batches
    return [tokens, squares]


def test_the_longest_of_two_texts_by_hand() -> None:
    """100 with 1/4, 400 with 3/4: 325, and squares 1/4 * 1e4 + 3/4 * 16e4."""
    longest = TWO.greatest(2)
    assert longest.shares == (0.25, 0.75)
    assert longest.mean == 325
    assert slowest(TWO, 2, 1, 7) == (325, 122500)


@each(("draws", "count"), [(TWO, 3), (THREE, 1), (THREE, 4)])
def test_the_longest_of_several_is_that_of_all_draws(draws: Draws, count: int) -> None:
    mean = 0.0
    for every in product(range(len(draws.lengths)), repeat=count):
        share = 1.0
        for one in every:
            share *= draws.shares[one]
        mean += share * max(draws.lengths[one] for one in every)
    assert draws.greatest(count).mean == pytest.approx(mean)


@each(
    ("draws", "together", "groups", "batches"),
    [
        (TWO, 1, 2, 1),
        (TWO, 1, 2, 2),
        (TWO, 2, 3, 2),
        (TWO, 1, 2, 5),
        (THREE, 1, 2, 3),
        (THREE, 3, 3, 2),
    ],
)
def test_the_slowest_group_is_that_of_all_draws(
    draws: Draws, together: int, groups: int, batches: int
) -> None:
    found = slowest(draws, together, groups, batches)
    assert found == pytest.approx(enumerated(draws, together, groups, batches))


@each("groups", [2, 8, 64])
def test_many_micro_batches_are_near_the_sum_of_them(groups: int) -> None:
    exact = _summed(THREE, groups, SUMMED + 1)
    assert slowest(THREE, 1, groups, SUMMED + 1) == pytest.approx(exact, rel=0.03)


def test_texts_of_one_length_wait_for_nobody() -> None:
    assert slowest(Draws((512,), (1.0,)), 4, 8, 16) == (512, 512**2)


@each(("count", "value"), [(1, 0.0), (2, 0.5642), (3, 0.8463), (10, 1.5388)])
def test_the_greatest_of_normal_numbers_is_that_of_tables(
    count: int, value: float
) -> None:
    """H. L. Harter, Biometrika 48 (1961): expected values of normal order statistics.

    Half a step of the grid, 0.005, is the error.
    """
    assert greatest_deviation(count) == pytest.approx(value, abs=0.006)
