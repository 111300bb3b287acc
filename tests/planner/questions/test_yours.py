"""A spec's layout takes part in the search: the answer is never worse."""

from typing import Any

import pytest
from typer.testing import CliRunner

import planner
from planner.cli import app
from planner.hardware.reading.files import SHIPPED
from planner.planning.prediction.beside import plain_layouts, with_yours
from planner.questions.inputs.given import looked_up
from planner.specs.answer.result import Result

JOB: dict[str, Any] = {
    "model": "llama-3-8b",
    "cluster": {"name": "one-node", "node": "dgx-h100", "nodes": 1},
    "training": {"seq_len": 2048, "global_batch": 64},
    "framework": "megatron",
    "search": {"pp": 1, "cp": 1, "tp": [2, 8], "recompute": ["none"]},
}
GIVEN = {"tp": 8, "pp": 1, "micro_batch": 1}


@pytest.fixture(scope="module")
def answer() -> planner.Result:
    return planner.plan({**JOB, "layout": GIVEN})


def test_a_slower_layout_stands_beside_the_answer(answer: planner.Result) -> None:
    """Its terms add up to the distance, and the search is what it was without it."""
    assert answer.yours is not None
    mine, ours = answer.yours.given, answer.plans[0].estimate.step_time_s.value
    alone = planner.predict(JOB, layout=GIVEN).estimate.step_time_s.value
    assert mine.estimate.step_time_s.value == pytest.approx(alone)
    assert mine.slower == pytest.approx(alone / ours - 1)
    assert sum(term.difference for term in mine.time_s) == pytest.approx(alone - ours)
    assert 0.5 < mine.likely <= 1
    assert 0 < mine.expected
    assert not answer.yours.is_answer
    without = planner.plan(JOB)
    assert without.yours is None
    assert [plan.layout for plan in without.plans] == [p.layout for p in answer.plans]


def test_the_plain_layout_is_the_simplest_that_fits(answer: planner.Result) -> None:
    """Data parallelism alone holds 8B of parameters on 80 GB, with recompute."""
    assert answer.yours is not None
    assert answer.yours.plain is not None
    plain = answer.yours.plain.layout
    assert (plain.tp, plain.pp, plain.cp, plain.dp) == (1, 1, 1, 8)
    job = looked_up(JOB, None, SHIPPED, None)
    (first, second, *_) = plain_layouts(job.workloads[0])
    assert (first.tp, first.pp, first.recompute) == (1, 1, "none")
    assert (second.tp, second.pp, second.recompute) == (1, 1, "full")


def test_a_faster_layout_becomes_the_answer(answer: planner.Result) -> None:
    """Where only slower plans were found, as when time is short."""
    job = looked_up({**JOB, "layout": GIVEN}, None, SHIPPED, None)
    slow = answer.plans[0].estimate
    late = slow.step_time_s.model_copy(update={"value": 9 * slow.step_time_s.value})
    estimate = slow.model_copy(update={"step_time_s": late})
    plan = answer.plans[0].model_copy(update={"estimate": estimate})
    objective = answer.objective.model_copy(update={"value": 1.0})
    fields = {"plans": (plan,), "yours": None, "objective": objective}
    found = with_yours(job, answer.model_copy(update=fields), robust=False)
    assert found.yours is not None
    assert found.yours.is_answer
    assert (found.plans[0].layout.tp, found.plans[0].rank) == (8, 1)
    assert [plan.rank for plan in found.plans] == [1, 2]
    assert found.plans[1].slower > 0
    assert found.objective.bound >= found.objective.value > 1


def test_a_search_that_found_nothing_answers_with_yours(
    answer: planner.Result,
) -> None:
    job = looked_up({**JOB, "layout": GIVEN}, None, SHIPPED, None)
    empty = answer.model_copy(
        update={"plans": (), "status": "unknown", "yours": None, "tie": None}
    )
    found: Result = with_yours(job, empty, robust=False)
    assert found.status == "feasible"
    assert found.plans[0].layout.tp == 8


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ({"tp": 3}, "tp 3"),
        ({"tp": 2, "micro_batch": 16, "recompute": "none"}, "it does not fit"),
        ({"tp": 2, "pp": 2}, "the search block limits pp to 1"),
    ],
)
def test_a_layout_that_may_not_run_is_told_in_a_line(
    layout: dict[str, Any], said: str
) -> None:
    found = planner.plan({**JOB, "layout": layout}, top=1)
    assert found.yours is not None
    assert said in found.yours.refused
    assert (found.yours.given is None) == ("tp 3" in said)
    (warning,) = [each for each in found.warnings if found.yours.refused in each]
    assert "\n" not in warning


@pytest.mark.slow
def test_screen_and_full_report_compare_them() -> None:
    words = ["plan", "llama-3-8b-8-a100", "--set", "layout={tp: 4, pp: 1}"]
    words += ["--set", "search={tp: [2, 4], pp: 1, cp: 1}"]
    screen = CliRunner().invoke(app, words)
    assert screen.exit_code == 0, screen.output
    assert "against ours" in screen.stdout
    assert "likely slower" in screen.stdout
    full = CliRunner().invoke(app, [*words, "-v"])
    assert "Your layout" in full.stdout
    assert "The plain layout" in full.stdout
