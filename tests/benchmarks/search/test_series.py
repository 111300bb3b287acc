"""What a series of moments says: first plan, proof, gap, and with fewer points."""

import pytest

from benchmarks.search.series import (
    Point,
    Watch,
    gap_at,
    gap_of,
    proof,
    thinned,
)
from planner.search.outcome import Progress

SERIES: list[Point] = [
    (0.5, None, 8.0),
    (1.0, 10.0, 8.0),
    (2.0, 10.0, 9.0),
    (4.0, 9.5, 9.5),
]


def test_the_gap_is_what_the_bound_leaves() -> None:
    assert gap_of((0.0, 10.0, 8.0)) == pytest.approx(0.2)
    assert gap_of((0.0, 10.0, 11.0)) == 0.0
    assert gap_of((0.0, None, 8.0)) is None


def test_a_moment_has_the_gap_of_the_last_report() -> None:
    told = [gap_at(SERIES, time) for time in (0.1, 0.7, 1.0, 1.9, 2.0, 60.0)]
    assert told[:2] == [None, None]
    assert told[2:] == pytest.approx([0.2, 0.2, 0.1, 0.0])


def test_the_proof_is_when_the_gap_closes() -> None:
    assert (proof(SERIES), proof(SERIES[:3])) == (4.0, None)


def test_a_watch_notes_changes_alone() -> None:
    watch = Watch(started=0.0)
    for best, bound in ((None, 1.0), (None, 1.0), (2.0, 1.0), (2.0, 1.0), (2.0, 2.0)):
        watch(Progress(1, 1, best, bound))
    assert [point[1:] for point in watch.points] == [(None, 1.0), (2.0, 1.0), (2.0, 2)]


def test_a_thinned_series_keeps_the_curve() -> None:
    long: list[Point] = [(0.0, None, 1.0)]
    long += [(1.0 + k, 100.0, 60.0 + k / 100) for k in range(4000)]
    few = thinned(long, most=50)
    assert 20 < len(few) <= 50
    assert (few[0], few[-1]) == (long[0], long[-1])
    assert long[1] in few
    worst = max(abs(gap_at(few, p[0]) - gap_of(p)) for p in long[1:])
    assert worst < 0.02


def test_a_short_series_stays_whole() -> None:
    assert thinned(SERIES) == SERIES
