"""Commands print on the right stream, in the right form, with the right code."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiers import some
from typer.testing import CliRunner
from typer.testing import Result as Run

from planner import __version__
from planner.cli import app
from planner.errors import InfeasibleError, PlannerError, UnsupportedPlanError
from planner.specs.answer.result import Plan, Result

JOB = "llama-3.1-405b-16k-h100"


def run(*arguments: str) -> Run:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch, result: Result) -> dict[str, Any]:
    """Puts the hand-made result in place of a search; holds what was asked."""
    asked: dict[str, Any] = {}

    def optimize(_: object, workloads: object, **options: object) -> Result:
        asked.update(options, workloads=workloads)
        return asked.get("answer", result)

    monkeypatch.setattr("planner.questions.plan.optimize_for", optimize)
    return asked


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch, result: Result) -> list[Any]:
    """Puts the second hand-made plan in place of a price; holds what was asked."""
    asked: list[Any] = []

    def price(*arguments: object) -> object:
        asked.extend(arguments)
        return result.plans[1]

    monkeypatch.setattr("planner.questions.predict.predict_within", price)
    return asked


def test_the_version_is_printed() -> None:
    assert run("--version").stdout == f"planner {__version__}\n"


@pytest.mark.slow
def test_python_m_planner_is_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "planner", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"planner {__version__}\n"


def test_plan_hands_its_options_to_the_search(searched: dict[str, Any]) -> None:
    done = run(
        "plan", JOB, "--top", "7", "--time-limit", "3", "--set", "cluster.nodes=4"
    )
    assert done.exit_code == 0
    assert searched["top"] == 7
    assert searched["stop"].left <= 3.0
    assert [w.gpus for w in searched["workloads"]] == [32]


@pytest.mark.usefixtures("searched")
def test_plan_prints_nothing_but_json_for_a_dash() -> None:
    done = run("plan", JOB, "--json", "-")
    answer = json.loads(done.stdout)
    assert answer["schema"] == "planner/result@1"
    assert answer["spec"]["cluster"]["name"] == "llama3-h100-16k"
    assert answer["plans"][0]["layout"]["tp"] == 8
    assert done.stderr == ""


@pytest.mark.usefixtures("searched")
def test_plan_writes_json_beside_its_report(tmp_path: Path) -> None:
    done = run("plan", JOB, "--json", str(tmp_path / "result.json"))
    assert "fits" in done.stdout
    written = json.loads((tmp_path / "result.json").read_text())
    assert written["status"] == "optimal"


@pytest.mark.usefixtures("searched")
def test_a_file_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("plan", JOB, "--json", str(tmp_path / "file" / "result.json"))
    assert done.exit_code == 2
    assert "cannot be written" in done.stderr


@pytest.mark.usefixtures("searched")
def test_out_holds_a_plan_that_stands_on_its_own(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    assert run("plan", JOB, "--out", str(out)).exit_code == 0
    assert "plan.json" in {p.name for p in out.iterdir()}
    plan = Plan.model_validate_json((out / "plan.json").read_text())
    assert plan.layout.tp == 8
    assert plan.versions.keys() == {"planner", "ortools", "numpy"}
    assert plan.spec["model"]["hidden_size"] == 16384


def test_an_infeasible_job_exits_with_3_and_says_why(
    searched: dict[str, Any], infeasible: Result, tmp_path: Path
) -> None:
    searched["answer"] = infeasible
    done = run("plan", JOB, "--out", str(tmp_path / "new"))
    assert done.exit_code == 3
    assert "optimizer states alone need 99 GiB" in done.stdout
    assert done.stderr.startswith("error: proven")
    assert not (tmp_path / "new").exists()


def test_an_unfinished_search_without_a_plan_exits_with_4(
    searched: dict[str, Any], infeasible: Result
) -> None:
    searched["answer"] = infeasible.model_copy(update={"status": "unknown"})
    done = run("plan", JOB, "--json", "-")
    assert done.exit_code == 4
    assert json.loads(done.stdout)["status"] == "unknown"
    assert "--time-limit" in done.stderr


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InfeasibleError("none fits"), 3, "error: none fits"),
        (UnsupportedPlanError("no words"), 5, "error: no words"),
        (PlannerError("wrong bound"), 1, "bug of planner, please report it"),
        (KeyError("oops"), 1, "please report it: KeyError: 'oops'"),
    ],
)
def test_an_error_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, said: str
) -> None:
    def optimize(*_: object, **__: object) -> Result:
        raise error

    monkeypatch.setattr("planner.questions.plan.optimize_for", optimize)
    done = run("plan", JOB)
    assert done.exit_code == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_traceback_is_there_for_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNER_DEBUG", "1")
    monkeypatch.setattr("planner.questions.plan.optimize_for", None)
    assert "Traceback" in run("plan", JOB).stderr


def test_predict_prices_the_layout_of_the_spec(priced: list[Any]) -> None:
    done = run("predict", JOB, "--json", "-")
    answer = json.loads(done.stdout)
    assert answer["schema"] == "planner/prediction@1"
    assert answer["estimate"]["memory"]["verdict"] == "at-risk"
    assert answer["layout"]["tp"] == 4
    workload, partial = priced
    assert (workload.gpus, partial.tp, partial.dp) == (16384, 8, 128)


def test_a_layout_option_takes_the_place_of_the_block(priced: list[Any]) -> None:
    assert run("predict", JOB, "--layout", "tp=4, stages=even").exit_code == 0
    assert priced[1].given() == {"tp": 4, "stages": "even"}


@pytest.mark.usefixtures("priced")
def test_a_sequence_beyond_the_model_is_a_warning() -> None:
    job = ["predict", JOB, "--set", "training.seq_len=262144"]
    assert "seq_len 262,144 is beyond" in run(*job).stdout
    assert "beyond" not in run("predict", JOB).stdout


@pytest.mark.usefixtures("searched")
def test_output_to_a_pipe_is_plain_and_100_columns_wide() -> None:
    report = run("plan", JOB).stdout
    assert "\x1b" not in report
    lines = report.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines == [line.rstrip() for line in lines]


@pytest.mark.slow
def test_every_field_of_the_interface_is_read(tmp_path: Path) -> None:
    """A spec with all fields, and a layout as `plan --json` writes it."""
    done = run("plan", "llama-3-8b-8-a100", "--json", "-")
    layout = json.loads(done.stdout)["plans"][0]["layout"]
    spec = {
        "model": "llama-3-8b",
        "cluster": "dgx-a100-1-node",
        "training": {
            "seq_len": 8192,
            "global_batch": 128,
            "tokens": 15.6e12,
            "precision": "bf16",
            "optimizer": "adamw",
            "method": "full",
        },
        "inference": {},
        "framework": "megatron",
        "stack": {},
        "objective": "throughput",
        "search": {},
        "layout": layout,
    }
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(spec))

    told = run("predict", str(file), "--json", "-")

    assert told.exit_code == 0, told.stderr
    assert json.loads(told.stdout)["layout"] == layout


OPEN_JOB: dict[str, Any] = {
    "model": "llama-2-7b",
    "cluster": "rtx-4090-4",
    "training": {"seq_len": 2048, "global_batch": 32},
    "framework": "accelerate",
    "search": {
        "offload": True,
        "method": ["full", "lora"],
        "optimizer": ["adamw-8bit", "adamw"],
        "tp": 1,
        "pp": 1,
        "cp": 1,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("method", some(("full", "lora"), 2))
def test_a_plan_of_chosen_settings_is_priced_the_same_again(
    tmp_path: Path, method: str
) -> None:
    """The spec and layout of plan.json alone lead back to its estimate.

    Full training fits by offload alone, adapters fit without.
    """
    job = OPEN_JOB | {"search": OPEN_JOB["search"] | {"method": [method]}}
    file, out = tmp_path / "job.yaml", tmp_path / "out"
    file.write_text(yaml.safe_dump(job))
    assert run("plan", str(file), "--out", str(out)).exit_code == 0
    plan = json.loads((out / "plan.json").read_text())
    assert plan["spec"]["training"]["method"] == method
    moved = plan["layout"]["offload"]
    assert method == "full" or not moved["optimizer"] + moved["parameters"]

    again = tmp_path / "again.yaml"
    again.write_text(yaml.safe_dump(plan["spec"] | {"layout": plan["layout"]}))
    told = json.loads(run("predict", str(again), "--json", "-").stdout)

    for figure in ("step_time_s", "memory"):
        assert told["estimate"][figure] == plan["estimate"][figure]


@pytest.mark.slow
def test_the_settings_of_every_plan_are_told(tmp_path: Path) -> None:
    file, told = tmp_path / "job.yaml", tmp_path / "plan.json"
    file.write_text(yaml.safe_dump(OPEN_JOB))
    done = run("plan", str(file), "-v", "--json", str(told))
    report = " ".join(done.stdout.split())
    answer = json.loads(told.read_text())
    for plan in answer["plans"]:
        assert plan["settings"].keys() == {"method", "optimizer"}
    assert answer["search"]["variants"] == 12
    best = answer["plans"][0]["settings"]
    assert f"method {best['method']}, optimizer {best['optimizer']}" in report
    assert "layouts of 12 settings" in report


def test_predict_says_that_no_writer_has_words_for_a_layout(tmp_path: Path) -> None:
    """It is priced, as any folder that is imported; no launch files are promised."""
    spec = {
        "model": "llama-2-7b",
        "cluster": {"node": "dgx-h100", "nodes": 1},
        "training": {"seq_len": 2048, "global_batch": 32, "method": "lora"},
        "framework": "megatron",
        "layout": {"tp": 8, "micro_batch": 2},
    }
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(spec))
    alone = run("predict", str(file), "--layout", "tp=8,micro_batch=1")
    told = run("predict", str(file))
    assert (alone.exit_code, told.exit_code) == (0, 0)
    assert "no launch files for this layout" not in alone.stdout
    assert "no launch files for this layout: megatron has no words" in told.stdout
