"""A study of five rows by hand: its intervals, figures and report."""

import json

import numpy as np
import pytest

from benchmarks.accuracy.crossval import Residuals
from benchmarks.accuracy.intervals import shipped
from benchmarks.accuracy.price_for_fit import Observation
from benchmarks.accuracy.report import report
from benchmarks.accuracy.results import figures, table
from benchmarks.accuracy.study import Study, outcomes_of
from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.fitting.fit_columns import Observed, Tags
from planner.frameworks.fitted import Fit, time_keys
from planner.specs.answer.estimate import TimeBreakdown
from planner.specs.frameworks.deviation import CONSTANTS, Deviation

STACK, GPU, ARCH = "megatron-2024", "h100-sxm5-80gb", "hopper"
LEFT = np.log([0.9, 1.0, 1.1, 1.2, 5.0])


def observation(number: int, device_gib: float) -> Observation:
    """A row that was measured at 10 s, in a sweep; priced with a device memory."""
    name, source = f"row-{number}", "megatron-kwai" if number < 4 else "elsewhere"
    outcome = Outcome(
        id=name,
        file=f"{source}.yaml",
        source=source,
        status="ok",
        gpu=GPU,
        gpus=8,
        framework="megatron",
        stack=STACK,
        layout=f"tp{number}",
        sweep=source,
        precision="bf16",
        method="full",
        predicted_step_s=11.0 + number,
        measured_step_s=10.0,
        causes_s=TimeBreakdown(compute=11.0, bubble=number),
        predicted_memory_gib=50.0,
        measured_memory_gib=51.0,
        memory_counter="allocated",
        predicted_device_gib=device_gib,
        capacity_gib=80.0,
        oom=device_gib > 100,
    )
    return Observation(outcome, Tags(name, source, name, ARCH, STACK), np.zeros(6))


@pytest.fixture
def done() -> Study:
    rows = tuple(map(observation, range(5), (20.0, 70.0, 81.0, 30.0, 500.0)))
    tags = tuple(row.tags for row in rows if row.tags)
    return Study(
        fit=Fit(date="today", source="", stacks={STACK: Deviation(clock=0.9)}),
        observations=rows,
        observed=Observed(tags, LEFT, np.zeros((5, len(CONSTANTS)))),
        residuals=Residuals(LEFT, LEFT, LEFT),
        linearisation=(0.001, 0.0),
    )


def test_a_row_has_the_interval_that_other_sources_give(done: Study) -> None:
    first, *_, last = outcomes_of(done, "without_source")
    others = shipped(without="megatron-kwai").time
    band = others.band(time_keys("megatron", STACK), ARCH)
    assert first.predicted_step_s == pytest.approx(10 / 0.9)
    assert first.step_low_s == pytest.approx(10 / 0.9 * band.low)
    assert last.step_high_s == pytest.approx((last.step_low_s or 0) * _ratio())


def _ratio() -> float:
    band = shipped().time.band(time_keys("megatron", STACK), ARCH)
    return band.high / band.low


def test_verdicts_are_those_of_the_ledger_s_memory(done: Study) -> None:
    verdicts = [row.verdict for row in outcomes_of(done, "in_sample")]
    assert verdicts == ["fits", "at-risk", "at-risk", "fits", "oom"]


@pytest.mark.slow
def test_the_report_and_the_figures_are_of_all_rows(done: Study) -> None:
    text = report(done)
    assert "Of 4 rows that ran, 0 are called `oom` and 2 `at-risk`" in text
    assert f"| {STACK} | {GPU} | 5 | clock x 0.9 |" in text
    assert text.index("## At first contact") < text.index("## Step time, tuned")
    assert "| step time, tuned | 5 | 2 | 80.0 % | 50.0 % | - |" in text
    assert set(json.loads(json.dumps(figures(done)))["first_contact"]) == {
        "coverage",
        "half_width",
    }
    assert len(table(done).splitlines()) == 6
