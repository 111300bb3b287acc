"""`--robust` reaches the search, and doubts reach report and JSON."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner
from typer.testing import Result as Run

from planner.cli import app
from planner.specs.answer.result import Result

JOB = "llama-3.1-405b-16k-h100"


def run(*arguments: str) -> Run:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, result: Result) -> dict[str, Any]:
    """What the search was asked, a hand-made result in its place."""
    options: dict[str, Any] = {}

    def optimize(*_: object, **given: object) -> Result:
        options.update(given)
        return result

    monkeypatch.setattr("planner.questions.plan.optimize_for", optimize)
    return options


def test_robust_is_on_unless_turned_off(asked: dict[str, Any]) -> None:
    assert run("plan", JOB).exit_code == 0
    assert asked["robust"] is True
    assert run("plan", JOB, "--robust", "off").exit_code == 0
    assert asked["robust"] is False


def test_another_word_is_bad_input() -> None:
    done = run("plan", JOB, "--robust", "perhaps")
    assert done.exit_code == 2
    assert "perhaps" in done.stderr


def test_a_prediction_below_the_floor_is_warned_of_in_text_and_json() -> None:
    """Two micro-batches on eight stages: most of the step is bubble."""
    job = ("llama-3-8b-8-a100", "--layout", "pp=8,micro_batch=64,recompute=full")
    told = run("predict", *job).stdout
    assert "experience looks for a mistake" in " ".join(told.split())
    (said,) = [
        text
        for text in json.loads(run("predict", *job, "--json", "-").stdout)["warnings"]
        if "experience" in text
    ]
    assert "115 on an A100" in said
    assert "loses most to pipeline bubble" in said
