"""What calibrate finds in rows whose truth is known, and what it refuses."""

import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import yaml
from tiers import some
from typer.testing import CliRunner

from planner.calibration.fitting.calibrate import Calibrated, calibrate, posterior
from planner.calibration.fitting.sensitivity import Run
from planner.calibration.fitting.user_fit import (
    Collected,
    collect,
    contradictions,
    file_of,
    fit_pairs,
)
from planner.calibration.rows.rows import read_rows
from planner.cli.app import app
from planner.hardware.reading.files import SHIPPED
from planner.job.calibrated import calibrated, shipped_profile
from planner.job.calibration_file import (
    CalibrationFile,
    JobFit,
    StackFit,
    read_calibration,
)
from planner.specs.frameworks.deviation import Deviation

GPU, STACK = "a100-sxm4-80gb", "megatron-2024"
LAYOUTS = ((1, 1, 1), (2, 1, 2), (4, 1, 4), (2, 4, 1), (1, 2, 1), (8, 1, 4))


def row(name: str, tp: int, pp: int, mb: int, step: float, layers: int = 32) -> dict:
    return {
        "id": name,
        "model": {
            "name": "llama-like", "layers": layers, "hidden": 4096, "heads": 32,
            "kv_heads": 32, "ffn_hidden": 11008, "vocab": 32000, "gated_mlp": True,
        },
        "hardware": {"gpu": "A100-80GB", "gpus": 8, "gpus_per_node": 8},
        "job": {
            "seq_len": 4096, "global_batch": 64, "precision": "bf16",
            "framework": "Megatron-LM", "framework_version": "core 0.8.0",
        },
        "layout": {"tp": tp, "pp": pp, "dp": 8 // tp // pp, "micro_batch": mb},
        "measured": {"step_time_s": step},
        "check": "ok",
    }  # fmt: skip


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Rows of one job in several layouts and with two batches, as runs."""
    items = [row(str(n), *layout, 10.0) for n, layout in enumerate(LAYOUTS)]
    small = [row(f"small {n}", *layout, 1.4) for n, layout in enumerate(LAYOUTS[:4])]
    for item in small:
        item["job"]["global_batch"] = 8
    items += small
    file = tmp_path_factory.mktemp("own") / "rows.yaml"
    file.write_text(yaml.safe_dump(items))
    (runs,) = collect(read_rows([file]).rows, catalog=SHIPPED).runs.values()
    return runs


def under(truth: Deviation, runs: list[Run], noise: float = 0.0) -> list[Run]:
    """Runs whose measured step is the price under some constants."""
    random = np.random.default_rng(0)
    return [
        replace(run, measured_s=run.step_s(truth) * np.exp(noise * random.normal()))
        for run in runs
    ]


def fitted(runs: list[Run]) -> Calibrated:
    return calibrate(runs, runs[0].workload.framework.profile)


@pytest.mark.parametrize(
    ("times", "rows"), some(product((0.7, 1.0, 1.5), (1, 2, len(LAYOUTS))), 4)
)
def test_rows_that_are_all_slower_alike_give_one_factor(
    rows: int, times: float, shipped: list[Run]
) -> None:
    runs = under(Deviation(), shipped[:rows])
    fit = fitted([replace(run, measured_s=run.measured_s * times) for run in runs])
    (own,) = fit.jobs.values()
    assert own.factor == pytest.approx(times, rel=1e-6)
    assert (fit.residual, fit.fitted) == (pytest.approx(0, abs=1e-6), {})
    assert own.low < own.factor < own.high
    assert sorted((1, fit.others.factor, times))[1] == fit.others.factor


def test_one_odd_row_among_three_pulls_nothing(shipped: list[Run]) -> None:
    runs = under(Deviation(), shipped[:3])
    odd = replace(runs[0], measured_s=runs[0].measured_s * 3)
    (own,) = fitted([odd, *runs[1:]]).jobs.values()
    assert own.factor == pytest.approx(1.0)


def test_one_odd_row_alone_is_capped(shipped: list[Run]) -> None:
    (run,) = under(Deviation(), shipped[:1])
    (own,) = fitted([replace(run, measured_s=run.measured_s * 3)]).jobs.values()
    assert own.factor == pytest.approx(1.5)


def test_each_job_has_its_own_factor(shipped: list[Run]) -> None:
    runs = under(Deviation(), shipped[:2])
    slow = replace(runs[1], measured_s=runs[1].measured_s * 1.3, job=("other", "may"))
    fit = fitted([runs[0], slow])
    first, second = (own.factor for own in fit.jobs.values())
    assert (first, second) == (pytest.approx(1.0), pytest.approx(1.3))
    assert 1.0 <= fit.others.factor < 1.1


@pytest.mark.slow
def test_a_constant_is_freed_that_rows_left_out_ask_for(shipped: list[Run]) -> None:
    fit = fitted(under(Deviation(clock=0.85, step_overhead=0.15), shipped))
    assert fit.residual < 0.03 < fit.before
    (added,) = (one for one in fit.constants if one.name == "step_overhead")
    assert 0.05 < added.value - added.default < 0.15
    assert added.low < added.value < added.high
    (network,) = (one for one in fit.constants if one.name == "network")
    assert network.value == network.default
    assert "condition number" in network.refused
    assert "network" not in fit.fitted


@pytest.mark.slow
def test_noise_frees_no_constant(shipped: list[Run]) -> None:
    fit = fitted(under(Deviation(clock=0.9), shipped, noise=0.05))
    assert fit.fitted == {}
    assert all(one.refused for one in fit.constants)


def test_a_row_of_another_job_is_left_out_by_name(tmp_path: Path) -> None:
    file = tmp_path / "rows.yaml"
    file.write_text(yaml.safe_dump([row("far", 2, 1, 1, 1e4), row("b", 2, 1, 1, 16)]))
    found = collect(read_rows([file]).rows, catalog=SHIPPED)
    assert "4 times apart" in found.skipped["far"]
    assert [len(runs) for runs in found.runs.values()] == [1]


def test_a_constant_that_no_row_depends_on_keeps_its_prior() -> None:
    spread = posterior(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0.1, 0.2]), 0.05)
    assert spread[1] == pytest.approx(0.2)
    assert spread[0] == pytest.approx(1 / np.sqrt(2 / 0.05**2 + 100))


def test_rows_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    file = tmp_path / "rows.yaml"
    file.write_text(yaml.safe_dump([row("a", 2, 1, 1, 10.0), row("b", 2, 1, 1, 16.0)]))
    (told,) = collect(read_rows([file]).rows, catalog=SHIPPED).contradictions
    assert "a (10 s) and b (16 s)" in told
    assert contradictions([]) == []


def test_the_file_prices_as_fitted(shipped: list[Run]) -> None:
    runs = under(Deviation(clock=0.85), shipped)
    found = Collected(runs={(GPU, "megatron", STACK): runs})
    held = file_of(fit_pairs(found, catalog=SHIPPED))
    own = CalibrationFile.model_validate(held.model_dump())
    documented = replace(
        runs[0].workload,
        framework=replace(
            runs[0].workload.framework,
            profile=_documented(runs[0]),
        ),
    )
    priced = calibrated(documented, own)
    (fit,) = held.stacks
    (job,) = fit.jobs
    assert priced.framework.profile.step_factor == job.step_factor > 1.1
    assert "your own" in priced.uncertainty.why
    larger = replace(documented, model=replace(documented.model, hidden=8192))
    other = calibrated(larger, own)
    assert other.framework.profile.step_factor == fit.step_factor
    assert fit.step_factor == 1 < job.step_factor  # one job tells nothing of others
    assert "your own" not in other.uncertainty.why


def test_another_campaign_of_a_row_takes_the_factors_of_other_jobs() -> None:
    job = JobFit(model="m", campaign="may", step_factor=1.3, rows=2, residual=0.0)
    fit = StackFit(gpu=GPU, stack=STACK, jobs=(job,), rows=2, residual=0.0)
    assert fit.of("m") is fit.of("m", "may") is job
    assert fit.of("m", "june") is fit.of("n") is fit
    june = job.model_copy(update={"campaign": "june", "rows": 5})
    both = fit.model_copy(update={"jobs": (job, june)})
    assert both.of("m") is june
    assert both.of("m", "may") is job


def test_own_rows_narrow_the_band_to_what_they_leave(shipped: list[Run]) -> None:
    """The first row already tells what the user's cluster differs by."""
    run = shipped[0]
    documented = replace(run.workload.framework, profile=_documented(run))
    workload = replace(run.workload, framework=documented)

    def half(rows: int, residual: float) -> float:
        fit = StackFit(gpu=GPU, stack=STACK, rows=rows, residual=residual)
        own = calibrated(workload, CalibrationFile(stacks=(fit,)))
        return float(np.log(own.uncertainty.time.high))

    before = float(np.log(calibrated(workload).uncertainty.time.high))
    halves = [half(rows, 0.01) for rows in (1, 2, 4, 1000)]
    assert [*halves, 0.0] == sorted([*halves, 0.0], reverse=True)
    assert halves[0] < before
    assert halves[-1] == pytest.approx(2.44 * 0.01, rel=0.1)
    assert half(8, 0.2) > half(8, 0.01)


def _documented(run: Run):  # noqa: ANN202
    from planner.frameworks.megatron import FRAMEWORK  # noqa: PLC0415
    from planner.frameworks.stacks import with_stack  # noqa: PLC0415

    assert run.workload.framework.profile.name == STACK
    return with_stack(FRAMEWORK, STACK).profile


def test_a_fit_replaces_the_shipped_value(shipped: list[Run]) -> None:
    run = shipped[0]
    fit = StackFit(
        gpu=GPU, stack=STACK, constants={"clock": 0.7}, rows=3, residual=0.01
    )
    documented = replace(run.workload.framework, profile=_documented(run))
    workload = replace(run.workload, framework=documented)
    priced = calibrated(workload, CalibrationFile(stacks=(fit,)))
    assert priced.framework.profile.clock == pytest.approx(0.7)
    ours = shipped_profile("megatron", STACK, "ampere")
    assert calibrated(workload).framework.profile.clock == pytest.approx(ours.clock)


def test_the_command_writes_what_it_prints(tmp_path: Path) -> None:
    file, out = tmp_path / "rows.yaml", tmp_path / "mine.yaml"
    items = [row(str(n), *LAYOUTS[n], 10.0) for n in range(2)]
    file.write_text(yaml.safe_dump(items))
    answer = CliRunner().invoke(app, ["calibrate", str(file), "--out", str(out)])
    assert answer.exit_code == 0, answer.output
    assert STACK in answer.stdout
    (fit,) = read_calibration(out, catalog=SHIPPED).stacks
    assert (fit.gpu, fit.stack, fit.rows) == (GPU, STACK, len(items))


def test_rows_without_a_time_are_bad_input(tmp_path: Path) -> None:
    one = row("a", 2, 1, 1, 10.0) | {"measured": {"oom": True}}
    file = tmp_path / "rows.yaml"
    file.write_text(yaml.safe_dump([one]))
    answer = CliRunner().invoke(app, ["calibrate", str(file), "--out", "x.yaml"])
    assert answer.exit_code == 2
    assert "step time" in answer.stderr


@pytest.mark.parametrize("command", ["calibrate .", "tune llama-3-8b-8-a100"])
def test_without_scipy_one_message_before_any_work(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, [*command.split(), "--out", "x"])
    assert answer.exit_code == 2
    assert not list(tmp_path.iterdir())
    assert "trainplan[calibrate]" in answer.stderr
