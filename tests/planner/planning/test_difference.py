"""Two plans side by side: terms add up, and files, answers and jobs are the same."""

import json
from pathlib import Path
from typing import Any

import pytest
from each import each
from purchases import JOB
from rich.console import Console
from typer.testing import CliRunner

import planner
from planner.cli import app
from planner.document.screen import screen_of
from planner.planning.reasons import CATEGORIES, CAUSE_WORDS
from planner.report.difference import ENDING, difference_document
from planner.report.pages import page_html

NODE = {"name": "one-node", "node": "dgx-h100", "nodes": 1}
TRAINING: dict[str, Any] = {**JOB, "cluster": NODE}
OTHER = {"search.tp": 2, "search.recompute": "full", "training.seq_len": 1024}


@pytest.fixture(scope="module")
def pair() -> tuple[planner.Result, planner.Result]:
    return planner.plan(TRAINING), planner.plan(TRAINING, set=OTHER)


@pytest.fixture(scope="module")
def answer(pair: tuple[planner.Result, planner.Result]) -> planner.Difference:
    return planner.diff(*pair)


def test_terms_add_up_to_the_whole(answer: planner.Difference) -> None:
    time = sum(term.difference for term in answer.time_s)
    assert time == pytest.approx(answer.step_time_s.difference)
    assert time != 0
    memory = sum(term.difference for term in answer.memory_gib)
    assert memory == pytest.approx(answer.device_gib.difference)
    assert memory != 0
    for terms in (answer.time_s, answer.memory_gib):
        sizes = [abs(term.difference) for term in terms]
        assert sizes == sorted(sizes, reverse=True)
        assert all(term.difference == term.b - term.a != 0 for term in terms)


def test_fields_that_differ_are_there_and_no_others(
    answer: planner.Difference,
) -> None:
    spec = {change.field: (change.a, change.b) for change in answer.spec}
    assert spec.pop("training.seq_len") == (2048, 1024)
    assert {path.partition(".")[0] for path in spec} == {"search"}
    layout = {change.field: (change.a, change.b) for change in answer.layout}
    assert layout["tp"] == ("1", "2")
    assert layout["recompute"] == ("none", "full")
    assert "ep" not in layout


def test_the_other_way_round_turns_every_sign(
    pair: tuple[planner.Result, planner.Result], answer: planner.Difference
) -> None:
    back = planner.diff(pair[1], pair[0])
    assert back.step_time_s.difference == -answer.step_time_s.difference
    ours = {term.term: term.difference for term in answer.memory_gib}
    theirs = {term.term: -term.difference for term in back.memory_gib}
    assert ours == theirs


def test_a_plan_differs_from_itself_in_nothing(
    pair: tuple[planner.Result, planner.Result],
) -> None:
    same = planner.diff(pair[0], pair[0])
    assert (same.spec, same.layout, same.time_s, same.memory_gib) == ((), (), (), ())
    assert "the same time" in shown(same)


def test_a_file_an_answer_and_a_job_say_the_same(
    pair: tuple[planner.Result, planner.Result],
    answer: planner.Difference,
    tmp_path: Path,
) -> None:
    """A is the JSON of a result; B is a job, plan.json, or the answer itself."""
    result, job = tmp_path / "a.json", tmp_path / "b.yaml"
    result.write_text(pair[0].to_json())
    fields = planner.plan(TRAINING, set=OTHER).spec
    job.write_text(json.dumps(fields))
    pair[1].emit(tmp_path / "run")
    plan = tmp_path / "run" / "plan.json"
    wanted = figures(json.loads(answer.to_json()))
    for other in (job, plan):
        done = CliRunner().invoke(app, ["diff", str(result), str(other), "--json", "-"])
        assert done.exit_code == 0, done.output
        assert figures(json.loads(done.stdout)) == wanted
        own = planner.diff(result, other)
        assert json.loads(own.to_json()) == json.loads(done.stdout)


def figures(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without the names of its sides."""
    return {name: value for name, value in answer.items() if name not in {"a", "b"}}


def shown(answer: planner.Difference) -> str:
    console = Console(width=100)
    with console.capture() as text:
        console.print(screen_of(difference_document(answer), ENDING))
    return text.get()


def test_the_screen_the_table_and_the_page(answer: planner.Difference) -> None:
    text = shown(answer)
    assert len(text.splitlines()) <= 40
    for word in ("B takes", "recompute", "device peak", "training.seq_len"):
        assert word in text
    assert "B takes" in page_html(answer._page())
    terms = {row["term"] for row in answer.table()}
    assert terms <= {*CAUSE_WORDS, *CATEGORIES}


@each(
    ("words", "told"),
    [
        (("no-such-job", "llama-3-8b-8-a100"), "no-such-job"),
        (("empty.json", "llama-3-8b-8-a100"), "empty.json"),
        (("other.json", "llama-3-8b-8-a100"), "schema"),
    ],
)
def test_bad_input_is_named(
    words: tuple[str, str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.json").write_text("")
    Path("other.json").write_text('{"schema": "planner/memory@1"}')
    done = CliRunner().invoke(app, ["diff", *words])
    assert done.exit_code == 2, done.output
    assert told in done.output


@pytest.mark.slow
def test_an_answer_without_a_plan_is_refused(
    pair: tuple[planner.Result, planner.Result],
) -> None:
    changes = {"model": "llama-3.1-70b", "training.global_batch": 8}
    none = planner.plan(TRAINING, set=changes)
    with pytest.raises(planner.PlannerError, match="no plan"):
        planner.diff(pair[0], none)
    with pytest.raises(planner.PlannerError) as refused:
        planner.diff(pair[0], {**TRAINING, "model": "llama-3.1-70b"})
    assert refused.value.exit_code == 3
