"""A call from Python and the command give equal answers, and a call prints nothing."""

import json
from collections.abc import Iterator
from filecmp import dircmp
from pathlib import Path
from typing import Any

import pytest
import yaml
from each import each
from purchases import CANDIDATES, JOB
from typer.testing import CliRunner

import planner
from planner.cli import app

NODE = {"name": "one-node", "node": "dgx-h100", "nodes": 1}
TRAINING: dict[str, Any] = {**JOB, "cluster": NODE}
SERVING = {
    "model": "llama-3.1-8b",
    "cluster": NODE,
    "inference": {"batch": 4, "context": 4096},
}
PURCHASE = {"job": JOB, "candidates": [{**CANDIDATES[0], "nodes": 1}]}
CHANGES = {"training.seq_len": 1024, "training.tokens": 1e9, "search.pp": [1, 2]}
SET = ("--set", "training.seq_len=1024", "--set", "training.tokens=1e9")
SET += ("--set", "search.pp=[1, 2]")


@pytest.fixture(autouse=True)
def _silent(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def job(tmp_path: Path) -> str:
    return written(tmp_path / "job.yaml", TRAINING)


def written(file: Path, fields: dict[str, Any]) -> str:
    file.write_text(yaml.safe_dump(fields))
    return str(file)


def printed(*words: str, code: int = 0) -> dict[str, Any]:
    """JSON of a command."""
    done = CliRunner().invoke(app, [*words, "--json", "-"])
    assert done.exit_code == code, done.output
    return untimed(done.stdout)


def untimed(text: str) -> dict[str, Any]:
    """An answer without the one field that a clock fills."""
    answer: dict[str, Any] = json.loads(text)
    answer.pop("seconds", None)
    answer.get("search", {}).pop("seconds", None)
    return answer


@pytest.mark.slow
def test_a_plan_and_its_launch_files(job: str, tmp_path: Path) -> None:
    own, told = tmp_path / "own", tmp_path / "told"
    result = planner.plan(job, set=CHANGES)
    files = result.emit(own)
    command = printed("plan", job, *SET, "--out", str(told))
    assert untimed(result.to_json()) == command
    assert result.plans[0].layout.dp == command["plans"][0]["layout"]["dp"]
    same = dircmp(own, told)
    assert (same.left_only, same.right_only, same.diff_files) == ([], [], [])
    assert {*files} == {*same.common_files} > {"plan.json", "launch.sh"}


def test_a_prediction_of_a_file_a_mapping_or_a_model(job: str) -> None:
    kinds = (job, Path(job), TRAINING, planner.Job(**TRAINING))
    before = json.dumps(TRAINING)
    answers = [planner.predict(each, layout={"pp": 2}, set=CHANGES) for each in kinds]
    command = printed("predict", job, "--layout", "pp=2", *SET)
    assert [untimed(each.to_json()) for each in answers] == [command] * len(kinds)
    again = planner.predict(job, layout=answers[0].layout, set=CHANGES)
    assert again.layout == answers[0].layout
    assert json.dumps(TRAINING) == before


def test_the_memory_of_a_server(tmp_path: Path) -> None:
    file = written(tmp_path / "job.yaml", SERVING)
    assert untimed(planner.memory(SERVING).to_json()) == printed("memory", file)


@pytest.mark.slow
def test_limits_that_contradict_each_other_are_an_answer_of_explain(job: str) -> None:
    """The command prints the answer too, and leaves with 2."""
    answer = planner.explain(job, set={"search": {"tp": 3}})
    command = printed("explain", job, "--set", "search={tp: 3}", code=2)
    assert answer.status == "no legal layout"
    assert untimed(answer.to_json()) == command


@pytest.mark.slow
@each("name", ["memory", "explain"])
def test_memory_and_reasons_of_a_job(name: str, tmp_path: Path) -> None:
    job = written(tmp_path / "job.yaml", TRAINING)
    answer = getattr(planner, name)(TRAINING)
    assert untimed(answer.to_json()) == printed(name, job)
    assert answer.table()


@pytest.mark.slow
def test_a_comparison(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    answer = planner.compare(PURCHASE, on_progress=lambda *at: seen.append(at))
    command = printed("compare", written(tmp_path / "purchase.yaml", PURCHASE))
    assert untimed(answer.to_json()) == command
    assert seen[-1] == (1, 1)
    assert [row["name"] for row in answer.table()] == ["rented"]
