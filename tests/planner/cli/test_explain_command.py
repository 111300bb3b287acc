"""`planner explain` on the command line: exit codes, JSON, what is printed."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli import app
from planner.specs.answer.explanation import Explained

CARDS = "configs/jobs/llama-2-7b-4-rtx-4090.yaml"
"""Full training of 7B on four cards of 24 GiB; nothing fits."""


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["explain", *arguments])
    return done.exit_code, " ".join(done.stdout.split()), done.stderr


@pytest.mark.slow
def test_a_job_that_cannot_fit_leaves_with_3_and_says_what_helps() -> None:
    code, out, error = run(CARDS, "--time-limit", "30")
    assert code == 3
    assert "no offload, 24.0 GiB a GPU: stage 0 needs at least" in out
    assert "--set search.offload=true" in out
    assert "no legal layout fits" in error


@pytest.mark.slow
def test_a_job_without_a_legal_layout_leaves_with_2_and_prints_pure_json() -> None:
    job = ("--set", "search.tp=3", "--set", "search.pp=1", "--time-limit", "10")
    done = CliRunner().invoke(app, ["explain", CARDS, *job, "--json", "-"])
    assert done.exit_code == 2
    told = json.loads(done.stdout)
    assert told["schema"] == "planner/explanation@1"
    assert told["feasible"] is False
    assert [limit["limit"] for limit in told["conflict"]] == ["tp = 3"]
    assert Explained.model_validate(told).need is None
    assert "no layout is legal; what would go: tp = 1 or 2 or 4" in done.stderr


@pytest.mark.slow
def test_a_job_without_a_legal_layout_leaves_no_file(tmp_path: Path) -> None:
    kept = [str(tmp_path / "o.json"), str(tmp_path / "o.html")]
    job = (CARDS, "--set", "search.tp=3", "--set", "search.pp=1")
    code, out, _ = run(*job, "--json", kept[0], "--report", kept[1])
    assert code == 2
    assert "tp = 3" in out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_job_that_can_be_is_told_all_that_the_schema_names() -> None:
    changes = (
        "search.offload=true",
        "search.tp=2",
        "search.pp=1",
        "search.micro_batch=1",
    )
    given = [part for change in changes for part in ("--set", change)]
    code, out, _ = run(CARDS, *given, "--time-limit", "20", "--layout", "tp=4")
    assert code == 0
    for title in (
        "The given layout",
        "The best plan is",
        "What binds it",
        "Why not a neighbour",
        "What each limit costs",
        "On a better machine",
        "Trade-offs",
        "Step time against free memory",
    ):
        assert title in out


@pytest.mark.parametrize(
    ("layout", "told"), [("tp=3", "tp"), ("wings=2", "wings"), ("tp=4,tp=2", "twice")]
)
def test_an_impossible_layout_is_bad_input(layout: str, told: str) -> None:
    code, _, error = run(CARDS, "--set", "search.offload=true", "--layout", layout)
    assert code == 2
    assert told in error
