"""Stated probabilities by tenths, and the section that is made from the bins."""

import pytest

from benchmarks.accuracy import chances
from benchmarks.accuracy.chances import OOM, Bin, binned, comparisons
from benchmarks.accuracy.pairs import Pair


def test_statements_are_sorted_into_tenths() -> None:
    stated = [(0.05, False), (0.0, True), (0.1, True), (1.0, True), (0.95, False)]
    assert binned(OOM, stated, least=0.0) == [
        Bin(OOM, 0.0, pytest.approx(0.1), 2, pytest.approx(0.025), 0.5),
        Bin(OOM, pytest.approx(0.1), pytest.approx(0.2), 1, 0.1, 1.0),
        Bin(OOM, pytest.approx(0.9), 1.0, 2, pytest.approx(0.975), 0.5),
    ]


def test_the_scale_may_begin_at_even_chances() -> None:
    (first, last) = binned("A", [(0.5, True), (0.54, False), (0.97, True)], least=0.5)
    assert (first.low, first.n, last.low, last.n) == (0.5, 2, pytest.approx(0.95), 1)


def test_half_of_the_errors_are_within_a_tie() -> None:
    """A difference as wide as a tie is right in three cases of four."""
    others = [Pair("o", "job", 0.0, 0.2, 1.0), Pair("o", "job", 0.0, 0.2, 1.0)]
    right = Pair("s", "job", 0.1, 0.3, 0.25)
    wrong = Pair("s", "job", -0.1, 0.3, 0.25)
    same = Pair("s", "job", 0.1, 0.0, 0.25)
    alike = Pair("s", "job", 0.0, 0.1, 0.0)
    found = comparisons([*others, right, wrong, same, alike])
    assert found[-2:] == [(pytest.approx(0.75), True), (pytest.approx(0.75), False)]
    assert len(found) == 4


def test_the_section_is_that_of_the_recorded_bins() -> None:
    assert chances.chances_section() in chances.README.read_text()


def test_likely_statements_come_true_more_often_than_unlikely_statements() -> None:
    for kind in (chances.FASTER, OOM):
        bins = [one for one in chances.read() if one.kind == kind]
        assert bins[0].happened < 2 / 3 < bins[-1].happened
        assert bins == sorted(bins, key=lambda one: one.low)
