"""`planner predict --why` prints the terms of a number, or writes them as JSON."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner
from typer.testing import Result as Run

from planner.cli import app
from planner.cost.why.terms import Term, Why

JOB = "llama-3.1-405b-16k-h100"
PHASES = "llama-3.1-405b-two-phases"


def run(*arguments: str, job: str = JOB) -> Run:
    return CliRunner().invoke(app, ["predict", job, *arguments])


def depth_of(term: Term) -> int:
    return 1 + max(map(depth_of, term.parts)) if term.parts else 0


def test_three_levels_lead_to_the_gemms_and_six_to_their_rate() -> None:
    short = run("--why", "compute")
    assert short.exit_code == 0
    assert short.stdout.startswith("4.873 s 100.0%  compute\n")
    assert "GEMM fc1" in short.stdout
    assert "multiplication" not in short.stdout
    whole = run("--why", "compute", "--depth", "6").stdout
    assert "2 * (M * N + lost) * (K + ramp) / (P * efficiency * clock)" in whole
    assert "calibration/h100-sxm5-80gb.yaml gemm.bf16" in whole
    assert max(map(len, whole.splitlines())) <= 100


def test_json_has_the_whole_tree_whatever_is_printed() -> None:
    written = run("--why", "step_time", "--depth", "1", "--json", "-").stdout
    assert json.loads(written)["schema"] == "planner/why@1"
    ((only),) = Why.model_validate_json(written).terms
    assert depth_of(only.term) == 6
    answer = json.loads(run("--json", "-").stdout)
    step = answer["estimate"]["step_time_s"]["value"]
    assert only.term.value == pytest.approx(step, rel=1e-9)


def test_each_phase_has_its_tree(tmp_path: Path) -> None:
    to = tmp_path / "why.json"
    printed = run("--why", "memory", "--json", str(to), job=PHASES)
    assert printed.exit_code == 0
    terms = Why.model_validate_json(to.read_text()).terms
    assert [bool(each.phase) for each in terms] == [True, True]
    assert all(each.phase in printed.stdout for each in terms)


def test_an_unknown_number_ends_with_2_before_any_work() -> None:
    refused = run("--why", "step_tme")
    assert refused.exit_code == 2
    assert "did you mean step_time" in refused.stderr
    assert refused.stdout == ""


def test_terms_stand_in_place_of_the_answer() -> None:
    assert run("--why", "memory", "-q").exit_code == 2
    assert run("--why", "memory", "--depth", "0").exit_code == 2
