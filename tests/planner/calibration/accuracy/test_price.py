"""Rows get a prediction beside their measurement, or one line that says why not."""

from typing import Any

import pytest
from measured_rows import MakeRow

from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.price import invalid_outcome, peak_memory, price_row
from planner.calibration.mapping.cases import case_of
from planner.calibration.rows.rows import InvalidRow, Row
from planner.calibration.rows.sweep import sweep_of
from planner.hardware.reading.files import SHIPPED
from planner.planning.prediction.predict import predict
from planner.specs.layouts.layout import PartialLayout
from planner.specs.layouts.layout_text import packed_layout


def test_every_sample_row_is_priced(sample: tuple[Row, ...]) -> None:
    outcomes = [price_row(row, catalog=SHIPPED) for row in sample]
    assert [o.reason for o in outcomes if o.status != "ok"] == []
    for row, outcome in zip(sample, outcomes, strict=True):
        assert outcome.predicted_step_s is not None
        assert outcome.predicted_step_s > 0
        assert outcome.oom == row.measured.oom
        assert bool(outcome.memory_counter) or outcome.measured_memory_gib is None


def test_a_layout_in_short_tells_shard_groups_apart() -> None:
    whole = PartialLayout(tp=2, dp=8, micro_batch=4, zero_stage=1)
    assert packed_layout(whole) == "tp2 dp8 mb4 z1"
    assert packed_layout(whole.model_copy(update={"dp_shard": 8})) == "tp2 dp8 mb4 z1"
    parts = whole.model_copy(update={"dp_shard": 4})
    assert packed_layout(parts) == "tp2 dp8 mb4 z1 shard4"


def test_errors_are_signed_and_relative() -> None:
    outcome = Outcome(
        id="a",
        file="b.yaml",
        source="b",
        status="ok",
        predicted_step_s=1.1,
        measured_step_s=1.0,
        predicted_memory_gib=9.0,
    )
    assert outcome.step_error == pytest.approx(0.1)
    assert outcome.memory_error is None


def test_memory_is_that_of_the_rows_counter_and_rank(make_row: MakeRow) -> None:
    case = case_of(make_row(layout={"tp": 1, "pp": 4, "dp": 4}), SHIPPED)
    estimate = predict(case.workload, case.layout).estimate
    first, last = estimate.memory.stages[0], estimate.memory.stages[-1]
    assert peak_memory(estimate, "allocated", "first") == first.allocated
    assert peak_memory(estimate, "active", "last") == last.allocated
    assert peak_memory(estimate, "device", "last") == last.device
    assert peak_memory(estimate, "device", "max") == max(
        stage.device for stage in estimate.memory.stages
    )
    reserved = estimate.memory.peak_reserved_gib
    for counter, rank in (("reserved", "max"), ("unknown", "unknown")):
        assert peak_memory(estimate, counter, rank) == pytest.approx(reserved)


def test_an_unpriced_row_says_why_in_one_line(make_row: MakeRow) -> None:
    outcome = price_row(make_row(hardware={"gpu": "Abacus"}), catalog=SHIPPED)
    assert outcome.status == "unsupported"
    assert "Abacus" in outcome.reason
    assert "\n" not in outcome.reason


def test_an_illegal_layout_is_unsupported(make_row: MakeRow) -> None:
    outcome = price_row(make_row(model={"heads": 17, "head_dim": 128}), catalog=SHIPPED)
    assert outcome.status == "unsupported"
    assert "17 heads" in outcome.reason


def test_a_sweep_holds_rows_that_differ_in_layout_alone(make_row: MakeRow) -> None:
    one, other = make_row(), make_row(layout={"tp": 4, "dp": 4})
    assert sweep_of(one) == sweep_of(other)
    assert sweep_of(one) != sweep_of(make_row(job={"seq_len": 2048}))


@pytest.mark.parametrize(
    "other",
    [
        {"software": {"campaign": "after the repair"}},
        {"software": {"version": "2026-01-01"}},
        {"software": {"compile": True}},
        {"software": {"fp8": {"recipe": "rowwise"}}},
        {"software": {"moments": "8-bit"}},
        {"model": {"moe": {"experts": 8, "topk": 2}}},
        {"job": {"task": "qlora"}},
    ],
)
def test_layouts_are_compared_within_one_campaign_and_software(
    other: dict[str, Any], make_row: MakeRow
) -> None:
    assert sweep_of(make_row(**other)) != sweep_of(make_row())


def test_a_campaign_may_span_what_a_layout_chooses(make_row: MakeRow) -> None:
    overlapped = {"campaign": "c", "tp_overlap": "async", "dispatcher": "deepep"}
    plain = {"campaign": "c", "version": "1"}
    assert sweep_of(make_row(software=overlapped)) == sweep_of(make_row(software=plain))


def test_an_invalid_row_is_an_outcome_too() -> None:
    outcome = invalid_outcome(InvalidRow("some/where.yaml", "r", "no layout"))
    assert (outcome.status, outcome.source, outcome.counted) == (
        "invalid",
        "where",
        False,
    )
