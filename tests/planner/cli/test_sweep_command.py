"""`planner sweep` plans every combination, as `planner plan` does one by one."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from typer.testing import Result as Run

import planner
from planner.cli import app

JOB = "tiny-llama-2-a6000"
FEW = ("--set", "search.micro_batch=1", "--set", "search.recompute=none")
OVER = ("--over", "training.global_batch=8,16", "--over", "search.zero_stage=[0],[2]")


def run(*words: str) -> Run:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def answer(kept: Path) -> dict[str, Any]:
    done = run("sweep", JOB, *FEW, *OVER, "--resume", str(kept), "--json", "-")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_every_combination_is_there_in_order(answer: dict[str, Any]) -> None:
    assert answer["schema"] == "planner/sweep@1"
    values = [tuple(cell["values"].values()) for cell in answer["cells"]]
    assert values == [(8, [0]), (8, [2]), (16, [0]), (16, [2])]
    assert {cell["status"] for cell in answer["cells"]} == {"optimal"}


@pytest.mark.slow
def test_a_cell_is_the_plan_of_its_values(answer: dict[str, Any]) -> None:
    cell = answer["cells"][1]
    sets = (*FEW, "--set", "training.global_batch=8", "--set", "search.zero_stage=[2]")
    (best, *_) = json.loads(run("plan", JOB, *sets, "--json", "-").stdout)["plans"]
    assert cell["plan"]["layout"] == best["layout"]
    assert cell["plan"]["estimate"] == best["estimate"]


@pytest.mark.slow
def test_finished_cells_are_read_again(answer: dict[str, Any], kept: Path) -> None:
    assert len(list(kept.iterdir())) == len(answer["cells"])
    done = run("sweep", JOB, *FEW, *OVER, "--resume", str(kept), "--json", "-")
    assert json.loads(done.stdout)["cells"] == answer["cells"]


@pytest.mark.slow
def test_the_table_and_the_page_have_every_row(
    answer: dict[str, Any], kept: Path, tmp_path: Path
) -> None:
    page = tmp_path / "sweep.html"
    words = (*FEW, *OVER, "--resume", str(kept), "--report", str(page))
    done = run("sweep", JOB, *words)
    rows = [line for line in done.stdout.splitlines() if "tokens" not in line]
    rows = [line for line in rows if "dp=2" in line or "cp=2" in line]
    assert len(rows) == len(answer["cells"])
    assert "trains most" in page.read_text()


def test_a_value_that_no_job_may_have_keeps_its_row() -> None:
    done = run("sweep", JOB, *FEW, "--over", "cluster=a6000-2,nowhere", "--json", "-")
    there, refused = json.loads(done.stdout)["cells"]
    assert there["status"] == "optimal"
    assert (refused["status"], refused["plan"]) == ("refused", None)
    assert "no cluster of this name" in refused["reason"]


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ("training.seq_lenn=128", "did you mean seq_len"),
        ("training.seq_len", "no field with values"),
        ("training.seq_len=", "no field with values"),
        ("training.seq_len=[1", "no field with values"),
        ("cluster=nowhere,nothing", "no combination can be planned"),
        (
            f"training.seq_len={','.join(map(str, range(1, 1200)))}",
            "1,199 combinations",
        ),
    ],
)
def test_a_sweep_over_nothing_is_refused(over: str, message: str) -> None:
    done = run("sweep", JOB, "--over", over)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


@pytest.mark.slow
def test_python_gives_the_same_answer(answer: dict[str, Any], kept: Path) -> None:
    found = planner.sweep(
        JOB,
        over={"training.global_batch": [8, 16], "search.zero_stage": [[0], [2]]},
        set={"search.micro_batch": 1, "search.recompute": "none"},
        resume=kept,
    )
    told = json.loads(found.to_json())
    assert told["cells"] == answer["cells"]
    assert [row["training.global_batch"] for row in found.table()] == [8, 8, 16, 16]
