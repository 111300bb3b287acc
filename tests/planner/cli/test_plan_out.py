"""`planner plan --out` leaves a folder that starts, or says why it cannot."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli.app import app
from planner.launch import emit_own, read_plan

ROOT = Path(__file__).resolve().parents[3]
JOB = str(ROOT / "configs" / "jobs" / "tiny-llama-2-a6000.yaml")
EMIT = ROOT / "tests" / "golden" / "emit"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plan") / "out"
    done = CliRunner().invoke(app, ["plan", JOB, "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out


def test_the_files_of_the_framework_lie_beside_the_plan(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    assert {"plan.json", "accelerate.yaml", "train.py", "launch.sh"} <= names
    plan = read_plan(folder / "plan.json")
    files, lacking = emit_own(plan)
    assert lacking == ()
    assert names == {file.name for file in files}


def test_a_folder_that_holds_something_is_refused_before_the_search(
    folder: Path,
) -> None:
    done = CliRunner().invoke(app, ["plan", JOB, "--out", str(folder)])
    assert done.exit_code == 2


def test_a_plan_without_words_in_its_framework_stands_alone(tmp_path: Path) -> None:
    """Megatron-LM has no adapters; Megatron-Bridge, another target, has."""
    source = EMIT / "megatron-bridge" / "llama-3.1-8b-lora-8-a100" / "plan.json"
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(json.loads(source.read_text())))
    files, lacking = emit_own(read_plan(path))
    assert [file.name for file in files] == ["plan.json"]
    assert "spec.training.method" in {gap.field for gap in lacking}
