"""Factors of measured jobs and of others, by hand."""

import numpy as np
import pytest

from planner.calibration.fitting.factors import (
    FREEDOM,
    MOST,
    Spread,
    job_factor,
    likeliest_factor,
    other_factor,
    spreads,
)
from planner.calibration.fitting.peaks import Peak, held_factors

SPREAD = Spread(source=0.1, job=0.2, row=0.1)
ONE = ("32 layers of 4096", "")
TWO = ("80 layers of 8192", "")


def test_rows_that_agree_are_believed() -> None:
    for rows in (1, 2, 5):
        assert job_factor(np.full(rows, 0.3), SPREAD) == pytest.approx(0.3)


def test_the_likeliest_factor_is_the_top_of_prior_and_student_errors() -> None:
    """t^2 = 0.05, row = 0.1: the slope of the log likelihood changes sign there."""
    logs = np.array([0.1, 0.2, 0.9])
    found = likeliest_factor(logs, SPREAD)

    def slope(at: float) -> float:
        away = logs - at
        errors = (FREEDOM + 1) * away / (FREEDOM * SPREAD.row**2 + away**2)
        return float(errors.sum()) - at / 0.05

    assert slope(found - 1e-6) > 0 > slope(found + 1e-6)


def test_one_odd_peak_pulls_less_than_a_row_that_agrees() -> None:
    alike, odd = np.array([0.1, 0.1, 0.15]), np.array([0.1, 0.1, 1.2])
    even = likeliest_factor(alike[:2], SPREAD)
    pulls = [likeliest_factor(logs, SPREAD) - even for logs in (alike, odd)]
    assert 0 < pulls[1] < pulls[0]
    near, far = (likeliest_factor(np.array([log]), SPREAD) for log in (1.0, 1.2))
    assert far < near


def test_one_row_pulls_no_further_than_its_cap_and_two_that_agree_do() -> None:
    assert job_factor(np.array([1.0]), SPREAD) == pytest.approx(np.log(MOST))
    assert job_factor(np.array([-1.0]), SPREAD) == pytest.approx(-np.log(MOST))
    assert job_factor(np.array([0.7, 0.7]), SPREAD) == pytest.approx(0.7)


def test_rows_that_differ_are_pulled_to_one() -> None:
    """Scatter 1.48 * 0.2; t^2 = 0.05."""
    kept = 0.05 / (0.05 + (1.48 * 0.2) ** 2 / 2)
    assert job_factor(np.array([0.1, 0.5]), SPREAD) == pytest.approx(0.3 * kept)
    assert job_factor(np.array([0.0, 0.0, 1.1]), SPREAD) == 0.0


def test_another_job_takes_the_share_of_its_source() -> None:
    """v = 0.05 / 4, kept = 0.01 / 0.0225 below 1 - 0.0125 / 0.04."""
    wide = Spread(source=0.1, job=0.2, row=0.1)
    share = 0.2 * 0.01 / 0.0225
    assert other_factor([(0.2, 1)] * 4, wide) == pytest.approx(share)
    assert other_factor([(9.0, 1)] * 4, wide) == pytest.approx(share)
    assert other_factor([], wide) == 0.0


def test_one_job_alone_moves_no_other_job() -> None:
    """It may be the job's own: its pull ends at job, and sqrt(v) is more."""
    assert other_factor([(9.0, 100)], SPREAD) == 0.0


def test_what_lies_within_an_error_moves_no_other_job() -> None:
    assert other_factor([(0.1, 1), (0.12, 1)], SPREAD) == 0.0
    assert other_factor([(0.1, 9), (-0.1, 9)], SPREAD) == 0.0


def test_more_jobs_say_more_of_the_next() -> None:
    found = [other_factor([(-0.2, 3)] * jobs, SPREAD) for jobs in (1, 2, 5, 50)]
    assert found == sorted(found, reverse=True)
    assert found[0] > -0.1
    assert found[-1] == pytest.approx(-0.2, abs=0.02)


def test_the_shipped_spreads_are_wide_as_unseen_sources_are() -> None:
    assert spreads().time.row == pytest.approx(0.13, abs=0.02)
    assert spreads().time.source > 0.1
    assert "first_contact" in spreads().source


def _kept(log: float, spread: Spread) -> float:
    return likeliest_factor(np.array([log]), spread)


def test_a_peak_of_tensors_says_less_of_its_job_than_one_with_caches() -> None:
    assert 0 < _kept(0.1, spreads().allocated) < 0.05 < _kept(0.1, spreads().reserved)


def test_an_allocated_peak_moves_tensors_and_a_reserved_one_caches() -> None:
    peaks = [
        Peak(ONE, allocated=True, log_ratio=0.1),
        Peak(TWO, allocated=False, log_ratio=0.2),
    ]
    each, others = held_factors(peaks)
    assert each[ONE].memory == pytest.approx(np.exp(_kept(0.1, spreads().allocated)))
    assert each[ONE].reserved == 1.0
    assert each[TWO].memory == 1.0
    assert each[TWO].reserved == pytest.approx(np.exp(_kept(0.2, spreads().reserved)))
    assert 1.0 <= others.memory < each[ONE].memory
    assert 1.0 <= others.reserved < each[TWO].reserved
    assert others.rows == len(peaks)


def test_a_reserved_peak_below_its_prediction_tells_of_tensors() -> None:
    each, _ = held_factors([Peak(ONE, allocated=False, log_ratio=-0.2)])
    assert each[ONE].memory == pytest.approx(np.exp(_kept(-0.2, spreads().reserved)))
    assert each[ONE].reserved == 1.0


def test_both_counters_of_a_job_each_tell_their_part() -> None:
    each, _ = held_factors(
        [
            Peak(ONE, allocated=True, log_ratio=-0.1),
            Peak(ONE, allocated=False, log_ratio=0.1),
        ]
    )
    found = each[ONE]
    assert found.memory == pytest.approx(np.exp(_kept(-0.1, spreads().allocated)))
    assert found.memory * found.reserved == pytest.approx(
        np.exp(_kept(0.1, spreads().reserved))
    )
