"""Every way to state a speed becomes the same step time."""

import pytest
from measured_rows import MakeRow

from planner.calibration.mapping.cases import case_of
from planner.calibration.mapping.measurements import Measured
from planner.hardware.reading.files import SHIPPED
from planner.models import Architecture

STEP = 2.0
TOKENS = 64 * 4096
GPUS = 16


def measured(make_row: MakeRow, notes: str = "", **fields: object) -> Measured:
    said = {"step_time_s": None, **fields}
    layout = {"recompute": "full"}
    return case_of(
        make_row(measured=said, layout=layout, notes=notes), SHIPPED
    ).measured


def model(make_row: MakeRow) -> Architecture:
    return case_of(make_row(), SHIPPED).workload.model


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("step_time_s", STEP),
        ("tokens_per_s_per_gpu", TOKENS / STEP / GPUS),
        ("tokens_per_s_total", TOKENS / STEP),
        ("samples_per_s", 64 / STEP),
        ("sequences_per_s", 64 / STEP),
        ("days_for_300b_tokens", 300e9 / TOKENS * STEP / 86400),
    ],
)
def test_rates_become_a_step_time(make_row: MakeRow, field: str, value: float) -> None:
    its = measured(make_row, **{field: value})
    assert (its.step_s, its.basis) == (pytest.approx(STEP), field)


def test_tokens_come_before_flops(make_row: MakeRow) -> None:
    rate = TOKENS / STEP / GPUS
    its = measured(make_row, tokens_per_s_per_gpu=rate, model_tflops_per_gpu=1)
    assert its.basis == "tokens_per_s_per_gpu"


def tflops(flops_per_token: float) -> float:
    return flops_per_token * TOKENS / STEP / GPUS / 1e12


def test_flops_follow_the_convention_of_the_row(make_row: MakeRow) -> None:
    its = model(make_row)
    heads = its.runs[0][0].attention
    full = its.model_flops_per_token(4096, "full")
    layers = full / 3 - its.head_flops
    scores = 3 * 16 * heads.core_flops(4096)
    said = {
        "full attention (12*L*h*s)": full,
        "causal (half attention)": its.model_flops_per_token(4096, "causal"),
        "6N + 12*L*h*s (full attention)": 6 * its.parameters + scores,
    }
    for convention, flops in said.items():
        got = measured(
            make_row, model_tflops_per_gpu=tflops(flops), flops_convention=convention
        )
        assert got.step_s == pytest.approx(STEP), convention
    hardware = {"8*N*tokens": 8.0 * its.parameters, "96*B*s*L*h^2": full + layers}
    for convention, flops in hardware.items():
        got = measured(
            make_row, hardware_tflops_per_gpu=tflops(flops), flops_convention=convention
        )
        assert got.step_s == pytest.approx(STEP), convention


def test_utilisation_is_of_the_stated_peak(make_row: MakeRow) -> None:
    flops = model(make_row).model_flops_per_token(4096, "full")
    its = measured(
        make_row,
        mfu=tflops(flops) / 1979,
        mfu_peak_tflops=1979,
        mfu_convention="full attention",
    )
    assert its.step_s == pytest.approx(STEP)


def test_a_run_that_did_not_fit_has_no_step_time(make_row: MakeRow) -> None:
    its = measured(make_row, oom=True)
    assert its.oom
    assert its.step_s is None
