"""Errors of comparisons by hand, and the shipped figures from the shipped rows."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.accuracy.pairs import Pair, comparison, pairs
from benchmarks.accuracy.records import records
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.price import price_row
from planner.calibration.rows.rows import read_rows
from planner.frameworks.sanity import record_key
from planner.frameworks.sanity import records as shipped
from planner.hardware.reading.files import SHIPPED
from planner.specs.answer.comparison import differing
from planner.specs.answer.estimate import TimeBreakdown

ROWS = Path(__file__).parents[2] / "benchmarks" / "accuracy" / "rows"
DAY = {"date": "today", "source": "by hand"}


def run(
    name: str, measured: float, *, bubble: float = 0.0, **fields: object
) -> Outcome:
    """A run of 10 s of kernels, and a bubble."""
    causes = TimeBreakdown(compute=10.0, bubble=bubble)
    known: dict[str, object] = {
        "id": name,
        "file": "a.yaml",
        "source": "a",
        "status": "ok",
        "sweep": "s",
        "layout": name,
        "gpu": "a100-sxm4-80gb",
        "predicted_step_s": 10.0 + bubble,
        "measured_step_s": measured,
        "causes_s": causes,
    }
    return Outcome.model_validate(known | fields)


SWEEP = [run("1", 10.0), run("2", 10.5, bubble=1.0), run("3", 12.0, bubble=2.0)]


def test_pairs_are_those_of_one_job_measured_under_enough_layouts() -> None:
    assert pairs(SWEEP) == []
    found = pairs([*SWEEP, run("4", 13.0, bubble=3.0)])
    assert len(found) == 6
    first = found[0]
    assert first.predicted == pytest.approx(math.log(1.1))
    assert first.measured == pytest.approx(math.log(1.05))
    assert first.differing == pytest.approx(1 / math.sqrt(110))
    apart = [run("5", 9.0, sweep="t", bubble=4.0)]
    assert len(pairs([*SWEEP, *apart])) == 0


def test_a_layout_counts_once_and_the_host_not_at_all() -> None:
    four = [*SWEEP, run("4", 13.0, bubble=3.0)]
    again = run("again", 99.0, layout="1", bubble=0.0)
    third = run("third", 9.0, layout="1")
    assert [p.measured for p in pairs([*four, again, third])] == [
        p.measured for p in pairs(four)
    ]
    waits = run("5", 14.0, bubble=4.0, waiting=0.5)
    assert len(pairs([*four, waits])) == 6


def pair(error: float, apart: float, source: str = "a", predicted: float = 1.0) -> Pair:
    return Pair(source, "s", predicted, predicted + error, apart)


def test_the_spread_is_the_median_where_every_source_weighs_the_same() -> None:
    """Three pairs of one source have a third of the weight each."""
    many = [pair(0.1, 0.25), pair(0.2, 0.25), pair(0.3, 0.25)]
    assert comparison(many, **DAY).spread == pytest.approx(0.4)
    both = [*many, pair(0.9, 1.0, "b")]
    assert comparison(both, **DAY).spread == pytest.approx(0.6)
    assert comparison([*both, pair(9.0, 0.0)], **DAY).pairs == 4


def test_what_is_kept_of_predicted_differences_is_a_slope() -> None:
    """Predicted 1 and 0.5, measured 0.4 and 0.2: two fifths are kept."""
    found = [pair(-0.6, 1.0), pair(-0.3, 1.0, predicted=0.5)]
    assert comparison(found, **DAY).kept == pytest.approx(0.4)
    one_each = [pair(0.1, 1.0), pair(-1.1, 1.0, "b")]
    assert comparison(one_each, **DAY).kept == pytest.approx(0.5)


def test_the_share_that_was_measured_the_other_way_round() -> None:
    """Spread 0.3: of 0.2 predicted the order may turn, of 5 it may not."""
    found = [pair(-0.3, 1.0, predicted=0.2), pair(0.3, 1.0, predicted=5.0)]
    its = comparison(found, **DAY)
    assert (its.reversed_tied, its.reversed_apart) == (1.0, 0.0)


@given(st.lists(st.floats(0.0, 10.0), min_size=11, max_size=11))
def test_differing_is_symmetric_and_nothing_for_equal_causes(
    times: list[float],
) -> None:
    names = list(TimeBreakdown.model_fields)
    ours = TimeBreakdown(**{**dict(zip(names, times, strict=True)), "compute": 1.0})
    theirs = TimeBreakdown(compute=2.0)
    assert differing(ours, ours) == 0
    assert differing(ours, theirs) == pytest.approx(differing(theirs, ours))


def test_a_record_is_the_best_of_its_kind_that_counts() -> None:
    rated = [
        run("1", 10.0, measured_mfu=0.5, precision="bf16", method="full"),
        run("2", 10.0, measured_mfu=0.6, precision="fp16", method="full"),
        run("3", 10.0, measured_mfu=0.6, precision="bf16", method="full"),
        run(
            "4", 10.0, measured_mfu=0.9, precision="bf16", method="full", counted=False
        ),
        run("5", 10.0, measured_mfu=0.7, precision="bf16", method="qlora"),
    ]
    best = records(rated)
    assert {key: its.run for key, its in best.items()} == {
        "ampere, half, full": "2",
        "ampere, half, adapters": "5",
    }


@pytest.mark.slow
def test_every_shipped_record_is_that_of_its_row() -> None:
    named = {its.run: key for key, its in shipped().items()}
    files = sorted({ROWS / f"{its.source}.yaml" for its in shipped().values()})
    rows = [row for row in read_rows(files).rows if row.id in named]
    again = records(price_row(row, SHIPPED) for row in rows)
    assert again == shipped()
    assert record_key(arch="hopper", precision="fp8", method="full") in again
