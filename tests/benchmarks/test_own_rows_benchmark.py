"""A few rows of a source improve the others, on sources whose truth is known."""

import numpy as np
import pytest

from benchmarks.accuracy.calibration import OTHER, SAME, Known, errors_of
from benchmarks.accuracy.spreads import ledgered, spreads_of
from planner.calibration.fitting.factors import likeliest_factor, spreads


def rows(
    campaign: str, log: float, count: int = 6, source: str = "a", models: str = "m"
) -> list[Known]:
    return [
        Known(source, "h100, s", models[at % len(models)], campaign, log)
        for at in range(count)
    ]


def test_rows_of_a_campaign_that_is_slower_alike_are_met() -> None:
    table = errors_of(rows("may", np.log(1.25)), memory=False)
    assert set(table) == {(1, SAME), (2, SAME), (3, SAME)}
    for ((before, after),) in table.values():
        assert before == pytest.approx(0.2)
        assert after == pytest.approx(0, abs=1e-9)


def test_another_campaign_takes_a_part_once_several_jobs_tell() -> None:
    months = ("may", "june")
    found = [row for month in months for row in rows(month, 0.25, models="abcdef")]
    table = errors_of(found, memory=False)
    ((before, one),) = table[1, OTHER]
    ((_, three),) = table[3, OTHER]
    assert one == pytest.approx(before)
    assert 0.1 < three < before


def test_memory_is_calibrated_by_its_counter() -> None:
    caches = [Known("a", "g, s", "m", "", 0.3) for _ in range(4)]
    tensors = [Known("b", "g, s", "m", "", 0.3, allocated=True) for _ in range(4)]
    for its, spread in ((caches, spreads().reserved), (tensors, spreads().allocated)):
        ((_, after),) = errors_of(its, memory=True)[1, SAME]
        left = 0.3 - likeliest_factor(np.array([0.3]), spread)
        assert after == pytest.approx(1 - np.exp(-left), rel=0.01)


def test_three_rows_are_no_source() -> None:
    assert errors_of(rows("may", 0.1, count=3), memory=False) == {}


def test_draws_are_the_same_every_time() -> None:
    random = np.random.default_rng(5)
    found = [Known("a", "g, s", "m", "", float(random.normal())) for _ in range(9)]
    assert errors_of(found, memory=False) == errors_of(found, memory=False)


@pytest.mark.slow
def test_spreads_of_made_sources_are_found() -> None:
    random = np.random.default_rng(7)
    made = []
    for _ in range(300):
        jobs = np.repeat(np.arange(3), 4)
        own, job = random.normal(0, 0.2), random.normal(0, 0.1, 3)
        same = jobs[:, None] == jobs[None, :]
        made.append((own + job[jobs] + random.normal(0, 0.05, 12), same))
    assert spreads_of(made) == pytest.approx((0.2, 0.1, 0.05), rel=0.1)


@pytest.mark.slow
def test_the_shipped_spreads_are_those_of_the_ledger() -> None:
    for name, found in ledgered().items():
        its = getattr(spreads(), name)
        known = (its.source, its.job, its.row)
        assert spreads_of(found) == pytest.approx(known, abs=0.005)
