"""The published 405B layouts, priced under the stack that their job files name.

Constants come from kernel and network measurements; none was fitted to these rows.
Source: The Llama 3 Herd of Models, arXiv:2407.21783, table 4. [TFLOP/s, full attention]
"""

from pathlib import Path

import pytest

from planner.calibration.accuracy.price import price_row
from planner.calibration.rows.rows import Row, read_rows
from planner.hardware.reading.files import SHIPPED
from planner.job.resolve import resolve
from planner.planning.prediction.predict import predict
from planner.specs.answer.result import RankedPlan
from planner.specs.reading.read import read_spec

TOP = Path(__file__).parents[4]
JOBS = TOP / "configs" / "jobs"
ROWS = read_rows([TOP / "benchmarks" / "accuracy" / "rows" / "llama3-paper.yaml"]).rows
PUBLISHED = {
    "llama-3.1-405b-16k-h100": 400.0,
    "llama-3.1-405b-8k-h100": 430.0,
    "llama-3.1-405b-128k-16k-h100": 380.0,
}


def predicted(name: str) -> RankedPlan:
    """Price the layout block of a job file."""
    file = JOBS / f"{name}.yaml"
    spec = read_spec(file)
    workload = resolve(spec, file=str(file), base=file.parent)[0]
    assert spec.layout is not None
    return predict(workload, spec.layout)


def tflops(name: str) -> float:
    """Model TFLOP/s per GPU, full attention, recompute not counted."""
    return predicted(name).estimate.model_tflops_per_gpu.full_attention


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_layout_is_within_8_percent(name: str) -> None:
    error = PUBLISHED[name] / tflops(name) - 1

    assert abs(error) < 0.08, f"{name}: {error:+.1%}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_published_row_is_within_8_percent_and_fits(row: Row) -> None:
    """Linears keep their shard of the inputs; whole inputs would take 130 GiB."""
    outcome = price_row(row, catalog=SHIPPED)

    assert outcome.predicted_step_s == pytest.approx(outcome.measured_step_s, rel=0.08)
    assert outcome.verdict in ("fits", "at-risk")


def test_the_ratio_of_the_two_scales_is_within_8_percent() -> None:
    large, small = "llama-3.1-405b-16k-h100", "llama-3.1-405b-8k-h100"
    ours = tflops(small) / tflops(large)

    assert ours == pytest.approx(PUBLISHED[small] / PUBLISHED[large], rel=0.08)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_run_that_existed_is_not_called_oom(name: str) -> None:
    estimate = predicted(name).estimate

    assert estimate.memory.verdict in ("fits", "at-risk")
    assert any(sentence.startswith("left out:") for sentence in estimate.assumptions)


def test_the_published_layout_is_filled_in_as_published() -> None:
    """126 layers on 128 virtual stages: embedding alone first, head alone last."""
    layout = predicted("llama-3.1-405b-16k-h100").layout

    assert layout.layers_per_stage == (0, *[1] * 126, 0)
    assert (layout.tp, layout.pp, layout.vpp, layout.dp) == (8, 16, 8, 128)


def test_time_and_memory_add_up() -> None:
    """Causes add up to the step; categories add up to the device peak."""
    estimate = predicted("llama-3.1-405b-16k-h100").estimate

    causes = estimate.time_breakdown_s.model_dump().values()
    assert sum(causes) == pytest.approx(estimate.step_time_s.value, rel=1e-9)
    peak = max(stage.device for stage in estimate.memory.stages)
    assert peak == pytest.approx(estimate.memory.peak_device_gib.value, rel=1e-12)
