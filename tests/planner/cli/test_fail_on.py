"""`--fail-on` goes by the probability of running out of memory, not by a band."""

import json
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from planner.cli import app
from planner.cli.verdicts import EXIT_DOES_NOT_FIT, fail_over, failing_risk
from planner.errors import BadInputError
from planner.specs.answer.estimate import MemoryEstimate
from planner.specs.answer.result import Result

LIKELY = (
    *("--model", "llama-3.1-8b", "--on", "8xh100"),
    *("--seq-len", "16384", "--global-batch", "8"),
)
LAYOUT = "dp=8,micro_batch=1,zero_stage=3,recompute=none"
"""Needs 140 of 79.6 GiB, 92 % likely not to fit; the lower end of its band fits."""


def exit_code(*arguments: str) -> int:
    return CliRunner().invoke(app, list(arguments)).exit_code


@pytest.mark.parametrize(
    ("limit", "code"), [("oom", 3), ("at-risk", 3), ("0.05", 3), ("0.95", 0)]
)
@pytest.mark.parametrize("command", ["predict", "memory"])
def test_a_job_that_likely_runs_out_fails(command: str, limit: str, code: int) -> None:
    asked = (*LIKELY, "--layout", LAYOUT, "--fail-on", limit)
    assert exit_code(command, *asked) == code


def test_the_verdict_stays_that_of_the_band() -> None:
    done = CliRunner().invoke(
        app, ["predict", *LIKELY, "--layout", LAYOUT, "--json", "-"]
    )
    memory = json.loads(done.stdout)["estimate"]["memory"]
    assert memory["verdict"] == "at-risk"
    assert memory["oom_probability"] == pytest.approx(0.92, abs=0.02)


@pytest.mark.parametrize(("limit", "code"), [("0.3", 0), ("0.2", 3), ("oom", 0)])
def test_a_plan_has_the_same_gate(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    result: Result,
    limit: str,
    code: int,
) -> None:
    risky = with_risk(result.plans[0].estimate.memory, 0.25)
    its = result.plans[0].estimate.model_copy(update={"memory": risky})
    first = result.plans[0].model_copy(update={"estimate": its})
    answer = result.model_copy(update={"plans": (first, result.plans[1])})
    monkeypatch.setattr("planner.questions.plan.optimize_for", lambda *_, **__: answer)
    out = tmp_path / "run"
    asked = ("llama-3.1-405b-16k-h100", "--fail-on", limit, "--out", str(out))
    assert exit_code("plan", *asked) == code
    assert out.exists() == (code == 0)


def with_risk(memory: MemoryEstimate, risk: float | None) -> MemoryEstimate:
    return memory.model_copy(update={"oom_probability": risk})


@given(limit=st.floats(0, 1, exclude_max=True), risk=st.floats(0, 1))
def test_a_number_is_the_most_risk_that_passes(limit: float, risk: float) -> None:
    memory = MemoryEstimate.model_construct(oom_probability=risk)
    if risk > limit:
        with pytest.raises(typer.Exit) as ended:
            fail_over(failing_risk(str(limit)), [memory])
        assert ended.value.exit_code == EXIT_DOES_NOT_FIT
    else:
        fail_over(failing_risk(str(limit)), [memory])


@pytest.mark.parametrize("text", ["fits", "", "5%", "1", "-0.1", "nan", "inf", "50"])
def test_what_is_no_risk_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match=r"--fail-on.*oom, at-risk"):
        failing_risk(text)


def test_nothing_fails_unasked() -> None:
    fail_over(failing_risk(None), [MemoryEstimate.model_construct(oom_probability=1.0)])
