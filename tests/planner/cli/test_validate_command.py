"""`planner validate` prints tables, JSON or a row; what does not fit is refused."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner
from typer.testing import Result as Run

from planner.calibration.accuracy.outcome import Outcome
from planner.calibration.accuracy.validation import Validation, validation
from planner.cli import app

LOG = """
 iteration 1/ 9 | elapsed time per iteration (ms): 90000.0 |
 iteration 2/ 9 | elapsed time per iteration (ms): 12000.0 |
[Rank 0] (after 2 iterations) memory (MB) | allocated: 1.0 | max allocated: 30720.0 |
"""
JOB = "llama-3-8b-8-a100"
ROWS = Path(__file__).resolve().parents[3] / "benchmarks" / "accuracy" / "rows"


def run(*arguments: str) -> Run:
    return CliRunner().invoke(app, ["validate", *arguments])


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Validation:
    made = validation(
        [
            Outcome(
                id="a-row",
                file="rows.yaml",
                source="rows",
                status="ok",
                predicted_step_s=1.2,
                measured_step_s=1.0,
            )
        ]
    )
    monkeypatch.setattr("planner.questions.validate.rows_beside", lambda *_, **__: made)
    return made


@pytest.fixture
def log(tmp_path: Path) -> str:
    file = tmp_path / "train.log"
    file.write_text(LOG)
    return str(file)


@pytest.fixture
def spec(tmp_path: Path) -> str:
    file = tmp_path / "job.yaml"
    file.write_text(
        "model: llama-3-8b\ncluster: dgx-a100-1-node\n"
        "training: {seq_len: 8192, global_batch: 64}\n"
        "layout: {tp: 4, pp: 1, dp: 2, micro_batch: 1, stages: even}\n"
    )
    return str(file)


@pytest.mark.usefixtures("answer")
def test_rows_become_a_table_and_files(tmp_path: Path) -> None:
    page, data = tmp_path / "out" / "r.html", tmp_path / "r.json"
    done = run("rows.yaml", "--json", str(data), "--report", str(page))
    assert done.exit_code == 0
    assert "+20.0%" in done.stdout
    assert json.loads(data.read_text())["rows"][0]["id"] == "a-row"
    assert "a-row" in page.read_text()
    assert [p.name for p in page.parent.iterdir()] == ["r.html"]


@pytest.mark.usefixtures("answer")
def test_a_dash_prints_json_and_nothing_else() -> None:
    done = run("rows.yaml", "--json", "-")
    assert json.loads(done.stdout)["schema"] == "planner/validation@1"


@pytest.mark.slow
def test_a_search_reports_the_gain_that_the_plan_claims(tmp_path: Path) -> None:
    rows = (ROWS / "torchtitan.yaml").read_text().split("\n- id:")
    file = tmp_path / "rows.yaml"
    file.write_text(rows[0] + "\n")
    to = tmp_path / "answer.json"
    done = run(str(file), "--search", "--time-limit", "20", "--json", str(to))
    assert done.exit_code == 0, done.output
    assert "Gain that our plans claim" in done.stdout
    data = json.loads(to.read_text())
    gain, claimed = data["summary"]["claimed_gain"], data["rows"][0]["claimed"]
    assert (gain["n"], gain["median"]) == (1, pytest.approx(claimed["gain"]))
    assert data["summary"]["by_source"]["rows"]["claimed_gain"] == gain
    predicted = data["rows"][0]["predicted"]["step_time_s"]
    assert claimed["step_time_s"] == pytest.approx(predicted * (1 - claimed["gain"]))
    assert claimed["layout"]


def test_a_log_and_a_job_are_compared(spec: str, log: str) -> None:
    done = run(spec, "--log", log, "--json", "-")
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["id"], row["status"]) == ("train", "ok")
    assert row["layout"].startswith("tp4 dp2 sp mb1")
    assert row["measured"]["step_time_s"] == 12.0
    assert row["measured"]["peak_memory_gib"] == 30.0
    assert row["measured"]["memory_counter"] == "allocated"
    predicted = row["predicted"]["step_time_s"]
    assert row["error"]["step_time"] == pytest.approx(predicted / 12.0 - 1)


def test_assignments_reach_the_job_of_a_log(spec: str, log: str) -> None:
    done = run(spec, "--log", log, "--set", "layout.tp=8", "--set", "layout.dp=1")
    assert done.exit_code == 0, done.output
    assert "tp8 sp mb1" in done.stdout


def test_a_log_alone_becomes_the_start_of_a_row(log: str) -> None:
    done = run("--log", log)
    (row,) = yaml.safe_load(done.stdout)
    assert row["measured"]["step_time_s"] == 12.0
    assert row["id"] == "train"
    assert json.loads(run("--log", log, "--json", "-").stdout) == [row]


def refused(*arguments: str) -> str:
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


def test_arguments_that_do_not_go_together_are_refused(
    spec: str, log: str, tmp_path: Path
) -> None:
    assert "PATH: no measured rows are given" in refused()
    assert "--set: does not apply" in refused("rows.yaml", "--set", "a=1")
    assert "--set: does not apply" in refused("--log", log, "--set", "a=1")
    assert "--report: does not apply" in refused("--log", log, "--report", "x.html")
    assert "one job" in refused(spec, spec, "--log", log)
    assert "--search: does not apply" in refused("--log", log, "--search")
    assert "--time-limit: does not apply" in refused("rows.yaml", "--time-limit", "1")
    assert "no layout to price" in refused(JOB, "--log", log)
    assert "cannot be read" in refused(spec, "--log", str(tmp_path))


def test_paths_that_hold_no_rows_are_refused(tmp_path: Path) -> None:
    assert "absent.yaml: no such file" in refused("absent.yaml")
    assert "the folder holds no rows" in refused(str(tmp_path))
    mapping = tmp_path / "rows.yaml"
    mapping.write_text("a: 1")
    message = refused(str(tmp_path))
    assert str(mapping) in message
    assert "list of rows" in message


def test_a_calibration_reaches_the_rows_and_the_job_of_a_log(
    spec: str, log: str, tmp_path: Path
) -> None:
    """Half the clock makes the predicted step longer."""
    file = tmp_path / "own.yaml"
    fit = "gpu: a100-sxm4-80gb, stack: {}, rows: 3, residual: 0.01"
    plain = json.loads(run(spec, "--log", log, "--json", "-").stdout)["rows"][0]
    file.write_text(
        "schema: planner/calibration@1\nstacks:\n"
        f"  - {{{fit.format(plain['stack'])}, constants: {{clock: 0.5}}}}\n"
    )
    own = ("--calibration", str(file))
    done = run(spec, "--log", log, *own, "--json", "-")
    (moved,) = json.loads(done.stdout)["rows"]
    assert moved["predicted"]["step_time_s"] > plain["predicted"]["step_time_s"]
    assert "--calibration: does not apply" in refused("--log", log, *own)


@pytest.mark.usefixtures("answer")
def test_a_page_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    message = refused("rows.yaml", "--report", str(tmp_path / "file" / "r.html"))
    assert "cannot be written" in message
