"""--report, --trace and --plot: written whole, or refused before anything is done."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli import app

JOB = "llama-3-8b-8-a100"
BAD_INPUT = 2
"""Exit code. [1]"""


def refused(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == BAD_INPUT
    assert done.stdout == ""
    return done.stderr


@pytest.fixture(autouse=True)
def no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that starts is a failure."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the search has started")

    monkeypatch.setattr("planner.questions.plan.optimize_for", never)
    monkeypatch.setattr("planner.planning.explanation.explain", never)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("plan", "--report"),
        ("plan", "--trace"),
        ("predict", "--report"),
        ("predict", "--trace"),
        ("explain", "--report"),
        ("validate", "--report"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_first(
    command: str, option: str, tmp_path: Path
) -> None:
    """A folder in its place, a file in the place of its folder, a closed folder."""
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path, tmp_path / "file" / "page", Path("/proc/none/page")):
        told = refused(command, JOB, option, place)
        assert str(place) in told
        assert option in told
        assert "cannot be written" in told
    assert (tmp_path / "file").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_two_outputs_do_not_go_to_one_file(tmp_path: Path) -> None:
    file = tmp_path / "both"
    told = refused("plan", JOB, "--report", file, "--trace", file)
    assert "--report and --trace" in told
    assert not file.exists()


def test_predict_writes_page_and_trace_and_prints_charts(tmp_path: Path) -> None:
    page, trace = tmp_path / "new" / "page.html", tmp_path / "trace.json"
    more = ["--layout", "tp=4,pp=2,stages=even", "--set", "training.global_batch=8"]
    done = CliRunner().invoke(
        app,
        ["predict", JOB, *more, "--report", str(page), "--trace", str(trace), "--plot"],
    )
    assert done.exit_code == 0, done.stderr
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert json.loads(trace.read_text())["otherData"]["operations"] == 2 * 8 * 2
    assert "Memory of every pipeline rank" in done.stdout
    assert "\x1b" not in done.stdout


def test_charts_do_not_mix_with_json(tmp_path: Path) -> None:
    more = ["--layout", "tp=8,stages=even", "--json", "-", "--plot"]
    done = CliRunner().invoke(app, ["predict", JOB, *more])
    assert json.loads(done.stdout)["schema"] == "planner/prediction@1"
    assert list(tmp_path.iterdir()) == []
