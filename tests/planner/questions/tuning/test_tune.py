"""Folders of short runs: written, made by the one script, read back to a verdict."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_runs import fake_launch, log_of, true_step
from typer.testing import CliRunner

import planner
from planner.cli import app
from planner.launch.emit import emit
from planner.launch.read_plan import read_plan
from planner.questions.tuning.readings import LOG

JOB: dict[str, Any] = {
    "model": "llama-3-8b",
    "cluster": {"name": "one-node", "node": "dgx-h100", "nodes": 1},
    "training": {"seq_len": 2048, "global_batch": 64},
    "framework": "megatron",
    "search": {"tp": [2, 4], "pp": [1, 2], "cp": 1, "recompute": ["none"]},
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tune") / "runs"
    planner.tune(JOB, out=folder, top=4, runs=3)
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    copy = tmp_path / "runs"
    subprocess.run(["cp", "-r", written, copy], check=True)
    return copy


def names(folder: Path) -> list[str]:
    return [
        run["name"] for run in json.loads((folder / "tune.json").read_text())["runs"]
    ]


def told(folder: Path) -> str:
    """The one line that a command says of a bad folder."""
    done = CliRunner().invoke(app, ["tune", str(folder)])
    assert done.exit_code == 2, done.output
    (line,) = done.stderr.splitlines()
    return line


def test_every_run_is_a_launch_folder_of_its_own(written: Path) -> None:
    assert len(names(written)) > 1
    for name in names(written):
        files = emit(read_plan(written / name / "plan.json"), "slurm")
        held = {file.name: file.text for file in files}
        for file in ("launch.sh", "check.sh", "job.sbatch", "arguments.sh"):
            assert (written / name / file).read_text() == held[file]


@pytest.mark.slow
def test_the_script_makes_all_runs_and_the_logs_lead_to_a_verdict(folder: Path) -> None:
    """Runs that ended are not made again; the chosen one is the fastest measured."""
    for name in names(folder):
        fake_launch(folder / name)
    script = str(folder / "run-all.sh")
    subprocess.run([script, "run-01"], check=True, capture_output=True)
    assert [name for name in names(folder) if (folder / name / LOG).is_file()] == [
        "run-01"
    ]
    first = planner.tune(folder)
    assert (first.status, first.best, first.spent) == ("measuring", "run-01", 1)
    while first.next is not None:
        fake_launch(folder / first.next)
        subprocess.run([script, first.next], check=True, capture_output=True)
        first = planner.tune(folder)
    steps = {run.name: run.measured_s for run in first.runs if run.measured_s}
    assert first.status == "settled"
    assert 1 < len(steps) <= 3
    assert first.best == min(steps, key=lambda name: steps[name])
    assert steps[first.best] == pytest.approx(true_step(folder / first.best), rel=1e-4)
    rows = yaml.safe_load((folder / "rows.yaml").read_text())
    assert [row["measured"]["step_time_s"] for row in rows] == pytest.approx(
        [steps[name] for name in sorted(steps)], rel=1e-3
    )
    fit = planner.plan(JOB, calibration=first.calibration, top=1)
    shipped = planner.plan(JOB, top=1)
    assert fit.plans[0].estimate.step_time_s.value > (
        1.02 * shipped.plans[0].estimate.step_time_s.value
    )


def test_without_names_the_script_makes_what_has_not_ended(folder: Path) -> None:
    for name in names(folder):
        fake_launch(folder / name)
    (folder / "run-01" / "launch.sh").write_text("#!/bin/sh\nexit 3\n")
    done = subprocess.run(
        [str(folder / "run-all.sh")], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "run-01 ended with 3" in done.stderr
    ended = {
        name: (folder / name / "ended").read_text().strip() for name in names(folder)
    }
    assert ended == {name: "3" if name == "run-01" else "0" for name in names(folder)}
    again = subprocess.run(
        [str(folder / "run-all.sh")], check=True, capture_output=True
    )
    assert again.stdout == b""
    wrong = subprocess.run([str(folder / "run-all.sh"), "run-77"], check=False)
    assert wrong.returncode == 2


@pytest.mark.slow
def test_a_run_without_memory_is_out_of_the_race(folder: Path) -> None:
    lost = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"
    (folder / "run-01" / LOG).write_text(lost)
    found = planner.tune(folder)
    assert (found.runs[0].state, found.runs[0].reason) == (
        "failed",
        "ran out of memory",
    )
    safest = min(found.runs[1:], key=lambda run: run.oom_probability)
    assert (found.next, found.best, found.spent) == (safest.name, None, 1)
    assert found.calibration == ""


@pytest.mark.slow
def test_command_and_call_say_the_same(folder: Path) -> None:
    (folder / "run-01" / LOG).write_text(log_of(true_step(folder / "run-01")))
    called = json.loads(planner.tune(folder).to_json())
    done = CliRunner().invoke(app, ["tune", str(folder), "--json", "-"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == called | {"added": []}
    quiet = CliRunner().invoke(app, ["tune", str(folder), "-q"])
    assert quiet.stdout.strip() == called["next"]
    screen = CliRunner().invoke(app, ["tune", str(folder)])
    assert "run-01 is measured best" in screen.stdout
    assert len(screen.stdout.splitlines()) <= 40


def test_a_folder_without_logs_is_refused(folder: Path) -> None:
    assert "holds no logs yet" in told(folder)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    assert "planner tune did not make it" in told(tmp_path)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("step:  1  loss: 2  memory: 9GiB  tps: 900  tflops: 3\n" * 3, "program"),
        (log_of(900.0), "step"),
        ("  seq_length .................. 4096\n" + log_of(1.0), "job.seq_len"),
        ("  tensor_model_parallel_size .. 8\n" + log_of(1.0), "layout.tp"),
    ],
)
def test_the_log_of_another_job_is_refused(folder: Path, text: str, field: str) -> None:
    (folder / "run-01" / LOG).write_text(text)
    line = told(folder)
    assert "of another job or layout" in line
    assert f": {field}" in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tune", "llama-3-8b-8-a100"], "a job needs a new folder"),
        (["tune", "{folder}", "--set", "training.seq_len=1"], "does not apply"),
        (["tune", "llama-3-8b-8-a100", "--out", "{folder}"], "is not empty"),
        (["tune", "llama-3.1-405b-two-phases", "--out", "{folder}/x"], "phase"),
    ],
)
def test_wrong_words_are_told_in_a_line(
    written: Path, words: list[str], said: str
) -> None:
    done = CliRunner().invoke(app, [word.format(folder=written) for word in words])
    assert done.exit_code == 2, done.output
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def tight(tmp_path: Path) -> Path:
    """Runs of a job whose limit on the risk costs speed."""
    planner.tune("llama-3.1-70b-32-h100", out=tmp_path / "tight", top=4)
    return tmp_path / "tight"


@pytest.mark.slow
def test_faster_plans_beyond_the_limit_on_the_risk_are_runs_too(tmp_path: Path) -> None:
    """The plans that the answer names under more risk, by layout."""
    folder = tight(tmp_path)
    answer = planner.plan("llama-3.1-70b-32-h100")
    assert answer.fastest is not None
    named = [*(one.layout for one in answer.riskier), answer.fastest.layout]
    runs = [read_plan(folder / name / "plan.json").plan for name in names(folder)]
    assert [run.layout for run in runs[1 : 1 + len(named)]] == named[: len(runs) - 1]
    assert runs[0].estimate.memory.oom_probability == pytest.approx(
        answer.plans[0].estimate.memory.oom_probability
    )


@pytest.mark.slow
def test_a_run_out_of_memory_is_the_last_of_its_risk(tmp_path: Path) -> None:
    folder = tight(tmp_path)
    (folder / "run-01" / LOG).write_text(log_of(true_step(folder / "run-01")))
    before = planner.tune(folder)
    bold = before.next
    assert bold is not None
    its = next(run for run in before.runs if run.name == bold)
    assert its.oom_probability > 0.05
    (folder / bold / LOG).write_text("torch.OutOfMemoryError: CUDA out of memory.\n")
    after = {run.name: run for run in planner.tune(folder).runs}
    assert after[bold].reason == "ran out of memory"
    for run in before.runs:
        if run.oom_probability >= its.oom_probability:
            assert after[run.name].oom_probability == 1.0
