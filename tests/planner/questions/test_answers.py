"""Answers show themselves, errors say where, and a search ends as its caller asks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from each import each
from measured_rows import changed

import planner

TWO = {"search.pp": [1, 2], "search.micro_batch": [1, 2, 4]}
"""Limits that leave a few plans."""


@pytest.fixture
def result(fields: dict[str, Any]) -> planner.Result:
    return planner.plan(fields, set=TWO)


def test_a_plan_shows_itself(result: planner.Result, tmp_path: Path) -> None:
    card, page = result._repr_html_(), tmp_path / "plan.html"
    assert "<script" not in card
    for shown in ("GiB", "optimal", "Runners-up", "Assumptions and sources"):
        assert shown in card
    result.report(page, seconds=0)
    assert "plotly" in page.read_text()
    table = pd.DataFrame(result.table())
    assert list(table["rank"]) == [plan.rank for plan in result.plans]
    assert table["step_time_s"].is_monotonic_increasing
    assert json.loads(table.to_json())


def test_other_answers_show_themselves(
    result: planner.Result, fields: dict[str, Any]
) -> None:
    priced = planner.predict(fields, layout=result.plans[0].layout, set=TWO)
    assert priced.estimate.step_time_s == result.plans[0].estimate.step_time_s
    assert priced.table()[0]["layout"] == result.table()[0]["layout"]
    assert "As given" in priced._repr_html_()
    refused = planner.explain(fields, set={"search.tp": 3})
    assert "no legal layout" in refused._repr_html_()
    serving = {**fields, "training": None, "inference": {"batch": 1, "context": 4096}}
    serving.pop("search")
    assert "KiB a token" in planner.memory(serving)._repr_html_()


def test_nothing_that_fits_is_an_answer(fields: dict[str, Any], tmp_path: Path) -> None:
    changes = {"model": "llama-3.1-70b", "training.global_batch": 8}
    result = planner.plan(fields, set=changes)
    assert (result.status, result.plans, result.table()) == ("infeasible", (), [])
    assert "nothing fits" in result._repr_html_()
    with pytest.raises(planner.PlannerError, match="no plan") as refused:
        result.emit(tmp_path / "run")
    assert refused.value.exit_code == 2


def test_a_target_or_a_folder_that_will_not_do(
    result: planner.Result, tmp_path: Path
) -> None:
    with pytest.raises(planner.PlannerError, match="slurm") as wrong:
        result.emit(tmp_path / "run", target="slrum")
    assert wrong.value.exit_code == 2
    assert "job.sbatch" in result.emit(tmp_path / "run", target="slurm")
    with pytest.raises(planner.PlannerError, match="not empty"):
        result.emit(tmp_path / "run")
    result.emit(tmp_path / "run", force=True)


@each(
    ("call", "file", "field"),
    [
        (lambda _: planner.plan("no-such-job"), "no-such-job", None),
        (lambda _: planner.plan(3), None, None),
        (lambda _: planner.plan({1: 2}), "job", "1"),
        (lambda job: planner.plan({**job, "modle": 1}), "job", "modle"),
        (lambda job: planner.plan({**job, "model": "lama"}), "job", "model"),
        (
            lambda job: planner.plan(job, set={"training.seq_len": -1}),
            "--set",
            "training.seq_len",
        ),
        (
            lambda job: planner.plan(job, set={"stack.x": object()}),
            "--set",
            "stack.x",
        ),
        (lambda job: planner.plan(job, memory_limit="4"), None, "--memory-limit"),
        (lambda job: planner.plan(job, hardware="nowhere"), None, "--hardware"),
        (planner.predict, "job", "layout"),
        (lambda job: planner.predict(job, layout={"tq": 2}), "layout", "tq"),
        (lambda job: planner.predict(job, layout="tq=2"), "--layout", "tq"),
        (lambda job: planner.plan(job, calibration="no"), "no", None),
        (lambda _: planner.compare([]), None, "SPEC"),
        (lambda job: planner.compare(job, tolerance=1), None, "tolerance"),
        (lambda job: planner.plan(job, top=0), None, "top"),
        (lambda job: planner.compare(job, budget="5"), None, "--budget"),
        (lambda _: planner.validate(), None, "PATH"),
        (planner.validate, None, "rows"),
        (lambda _: planner.validate("a", set={"a": 1}), None, "set"),
        (lambda _: planner.validate("a", time_limit=1.0), None, "time_limit"),
        (lambda _: planner.validate("a", log="b", search=True), None, "search"),
    ],
)
def test_an_error_says_where(
    fields: dict[str, Any], call: Any, file: str | None, field: str | None
) -> None:
    with pytest.raises(planner.PlannerError) as wrong:
        call(fields)
    told = wrong.value
    assert (told.exit_code, told.file, told.field) == (2, file, field), str(told)


def test_numbers_of_numpy_and_nested_values_replace_fields(
    fields: dict[str, Any],
) -> None:
    changes = {"cluster.nodes": np.int64(2), "search": {"tp": [1], "pp": {"max": 1}}}
    assert planner.plan(fields, set=changes).plans[0].layout.gpus == 16


def test_a_caller_ends_a_search_with_the_best_so_far() -> None:
    seen: list[planner.Progress] = []

    def told(state: planner.Progress) -> None:
        seen.append(state)
        if state.incumbent_s is not None:
            raise planner.StopSearch

    result = planner.plan("llama-3-8b-8-a100", on_progress=told)
    assert (result.status, len(result.plans)) == ("feasible", 1)
    assert 0 < result.objective.gap < 1
    assert [state for state in seen if state.incumbent_s is not None] == seen[-1:]


def test_another_error_of_a_callback_is_the_caller_s_own(
    fields: dict[str, Any],
) -> None:
    def told(_: planner.Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        planner.plan(fields, on_progress=told)


@pytest.mark.slow
def test_rows_are_validated_and_fitted_to(tmp_path: Path) -> None:
    file, out = tmp_path / "rows.yaml", tmp_path / "own.yaml"
    file.write_text(yaml.safe_dump([changed(), {"id": "broken"}]))
    seen: list[tuple[int, int]] = []
    before = planner.validate(file, on_progress=lambda *at: seen.append(at))
    assert seen == [(1, 1)]
    assert "Predictions beside measured runs" in before._repr_html_()
    row, broken = before.table()
    assert (row["id"], broken["status"]) == ("mine", "invalid")
    claimed = planner.validate(file, search=True, time_limit=5.0)
    assert claimed.summary.claimed_gain.n == 1
    assert claimed.table()[0]["claimed_gain"] >= 0
    fit = planner.calibrate([file], out=out)
    assert len(fit.warnings) == 1
    for own in (fit.file, out):
        after = planner.validate([file], calibration=own)
        error = after.rows[0].error.step_time
        assert abs(error) < abs(row["error_step_time"])


@pytest.mark.parametrize("command", [planner.explain, planner.compare])
def test_commands_of_the_fastest_plan_refuse_another_objective(
    command: Callable[..., object], fields: dict[str, Any], tmp_path: Path
) -> None:
    spec = tmp_path / "job.yaml"
    spec.write_text(yaml.safe_dump({**fields, "objective": "cost"}))
    with pytest.raises(planner.PlannerError, match="fastest plan") as caught:
        command(spec)
    assert str(caught.value.field).endswith("objective")
