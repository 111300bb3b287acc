"""Lengths of texts: forms that are read, distributions by hand, and refusals."""

from math import exp, log
from statistics import NormalDist
from typing import Any

import pytest
from each import each
from pydantic import ValidationError

from planner.specs.lengths import Lognormal, draws_of
from planner.specs.training import TrainingSpec

SEQ = 2048


def training(**fields: Any) -> TrainingSpec:
    return TrainingSpec.model_validate({"seq_len": SEQ, "global_batch": 8, **fields})


@each(
    "lengths",
    [
        {256: 0.7, 2048: 0.3},
        {"2048": 0.3, "256": 0.7},
        [{"length": 256, "share": 0.7}, {"length": 2048, "share": 0.3}],
        # Texts that seq_len cuts have its length, and equal lengths are one.
        [
            {"length": 9000, "share": 0.1},
            {"length": 256, "share": 0.7},
            {"length": 2048, "share": 0.2},
        ],
    ],
)
def test_a_histogram_is_read_in_each_form(lengths: object) -> None:
    found = training(lengths=lengths)
    draws = found.draws
    assert draws is not None
    assert draws.lengths == (256, 2048)
    assert draws.shares == pytest.approx((0.7, 0.3))
    assert draws.mean == pytest.approx(793.6)  # 0.7 * 256 + 0.3 * 2048
    assert draws.span == pytest.approx((0.7 * 256**2 + 0.3 * 2048**2) / 793.6)
    assert found.longest_row == SEQ
    again = TrainingSpec.model_validate(found.model_dump(mode="json"))
    assert again == found


def test_shares_of_three_digits_are_made_to_add_up() -> None:
    draws = training(lengths={100: 0.333, 200: 0.333, 300: 0.333}).draws
    assert draws is not None
    assert sum(draws.shares) == pytest.approx(1.0, abs=1e-15)


def test_a_lognormal_has_its_median_its_tenth_and_the_mean_of_the_formula() -> None:
    sigma = log(3) / NormalDist().inv_cdf(0.9)
    draws = draws_of(Lognormal(median=400, p90=1200), 10**6)
    below = [0.0, 0.0]
    for length, share in zip(draws.lengths, draws.shares, strict=True):
        below[0] += share * (length < 400)
        below[1] += share * (length < 1200)
    assert below == pytest.approx([0.5, 0.9], abs=0.01)
    assert draws.mean == pytest.approx(400 * exp(sigma**2 / 2), rel=0.005)
    whole = NormalDist().inv_cdf(1 - 1e-5)
    assert draws.longest == pytest.approx(400 * exp(sigma * whole), rel=0.001)


def test_a_lognormal_of_one_length_is_that_length() -> None:
    draws = draws_of(Lognormal(median=400, p90=400), SEQ)
    assert (draws.mean, draws.longest) == (400, 400)


@each(
    ("fields", "rows", "tokens"),
    [
        ({}, "max", 8 * SEQ),
        ({"document": 64}, "packed", 8 * SEQ),
        ({"lengths": {512: 1}}, "longest", 8 * 512),
        ({"lengths": {512: 1}, "padding": "max"}, "max", 8 * 512),
        ({"lengths": {512: 1}, "padding": "packed"}, "packed", 8 * SEQ),
        ({"padding": "longest"}, "longest", 8 * SEQ),
    ],
)
def test_rows_are_filled_as_stated(
    fields: dict[str, Any], rows: str, tokens: int
) -> None:
    found = training(**fields)
    assert (found.rows, found.step_tokens) == (rows, tokens)


@each(
    ("fields", "told"),
    [
        ({"lengths": {256: 0.5}}, "shares add up to 0.5"),
        ({"lengths": {"mean": 4}}, "mean is no length"),
        ({"lengths": {"median": 4}}, "p90"),
        ({"lengths": {"median": 400, "p90": 300}}, "p90 300 is below median 400"),
        ({"lengths": []}, "at least 1 item"),
        ({"lengths": {0: 1}}, "greater than 0"),
        ({"lengths": {10: float("nan")}}, "finite"),
        ({"lengths": "abc"}, "valid dictionary"),
        ({"padding": "short"}, "longest"),
        ({"lengths": {256: 1}, "document": 9}, "lengths or document, not both"),
        ({"document": 9, "padding": "max"}, "padding is max; allowed: packed"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        training(**fields)
