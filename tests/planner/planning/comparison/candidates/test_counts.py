"""Sensible counts, and the first that is good enough, against looking at them all."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.planning.comparison.candidates.counts import (
    first_reaching,
    odd_part,
    sensible_counts,
)


def counts(odd: int = 9, most: int = 64) -> tuple[int, ...]:
    return sensible_counts(1, most, gpus_per_node=8, odd=odd)


def test_counts_divide_among_the_replicas_of_a_batch() -> None:
    """2,304 = 9 x 256 sequences: nodes of one, three or nine times a power of two."""
    wanted = (1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 32, 36, 48, 64)
    assert counts() == wanted
    assert counts(odd=1) == (1, 2, 4, 8, 16, 32, 64)


def test_racks_come_whole() -> None:
    """An NVL72 rack is 18 nodes; its factor of nine takes up that of the batch."""
    found = sensible_counts(18, 18 * 20, gpus_per_node=4, odd=45)
    assert found == tuple(18 * racks for racks in (1, 2, 4, 5, 8, 10, 16, 20))
    assert sensible_counts(18, 17, gpus_per_node=4, odd=9) == ()


@given(st.integers(1, 10**6), st.integers(1, 1023))
def test_counts_grow_and_stay_within_the_most(most: int, odd: int) -> None:
    found = sensible_counts(1, most, gpus_per_node=8, odd=odd_part(odd))
    assert list(found) == sorted(set(found))
    assert found[0] == 1
    assert found[-1] <= most < 2 * found[-1]


class Asked:
    """A value that grows with the count, and how often it was asked for."""

    def __init__(self, at: float, power: float, dead: float) -> None:
        self.at, self.power, self.dead = at, power, dead
        self.seen: list[int] = []

    def __call__(self, count: int) -> float:
        self.seen.append(count)
        return 0.0 if count < self.dead else (count / self.at) ** self.power


def by_brute_force(counts: Sequence[int], value: Asked) -> int:
    able = (at for at, count in enumerate(counts) if value(count) >= 1)
    return next(able, len(counts))


@given(
    st.floats(0.5, 20_000),
    st.floats(0.03, 3.5),
    st.floats(0, 500),
    st.floats(1, 16_384),
    st.sampled_from([1, 3, 9, 45]),
)
def test_the_first_count_is_that_of_brute_force(
    at: float, power: float, dead: float, guess: float, odd: int
) -> None:
    """Wherever a value grows with the count, and no count is asked about twice."""
    known, value = counts(odd, 8192), Asked(at, power, dead)
    found = first_reaching(known, value, guess=guess)
    assert found == by_brute_force(known, Asked(at, power, dead))
    assert len(value.seen) == len(set(value.seen))


@pytest.mark.parametrize("power", [0.9, 1.0])
def test_a_power_law_takes_few_questions(power: float) -> None:
    """A guess, the count that the law predicts, and the one below it."""
    value = Asked(1500, power, 0)
    first_reaching(counts(45, 8192), value, guess=400)
    assert len(value.seen) <= 4
