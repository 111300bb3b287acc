"""`planner plan --out` leaves a folder that starts, or says why it cannot."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.cli.app import app
from planner.errors import UnsupportedPlanError
from planner.job.resolve import resolve
from planner.launch import emit_own, plan_file, read_plan
from planner.planning.prediction.predict import predict
from planner.specs.reading.read import read_spec

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


def test_the_plan_file_gives_the_folder_of_the_search_again(folder: Path) -> None:
    written = {path.name: path.read_text() for path in folder.iterdir()}
    files = emit_own(read_plan(folder / "plan.json"))
    assert written == {file.name: file.text for file in files}


def test_a_folder_that_holds_something_is_refused_before_the_search(
    folder: Path,
) -> None:
    done = CliRunner().invoke(app, ["plan", JOB, "--out", str(folder)])
    assert done.exit_code == 2


def test_adapters_are_written_for_the_target_of_the_room_that_has_them(
    tmp_path: Path,
) -> None:
    """Megatron-LM has no adapters; Megatron-Bridge, another target, has."""
    source = EMIT / "megatron-bridge" / "llama-3.1-8b-lora-8-a100" / "plan.json"
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(json.loads(source.read_text())))
    names = {file.name for file in emit_own(read_plan(path))}
    assert {"overrides.yaml", "train.py", "launch.sh"} <= names


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("stack.name=unsloth", "nearest: target accelerate"),
        (
            "training.batch_ramp=[{global_batch: 1, tokens: 1024}]",
            "spec.training.batch_ramp",
        ),
    ],
)
def test_what_no_target_starts_is_refused_before_the_search(
    change: str, named: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["plan", JOB, "--set", change, "--out", str(out)])
    assert done.exit_code == UnsupportedPlanError.exit_code, done.output
    assert named in done.output
    assert not out.exists()


def test_a_plan_without_words_in_its_framework_is_refused(tmp_path: Path) -> None:
    """A plan edited into what its own framework cannot say."""
    source = EMIT / "accelerate" / "llama-3.1-8b-lora-rtx-4090" / "plan.json"
    fields = json.loads(source.read_text())
    fields["spec"]["training"]["state_bits"] = 16
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(fields, indent=2))
    found = read_plan(path)
    line = r"plan\.json:\d+: spec\.training\.state_bits"
    with pytest.raises(UnsupportedPlanError, match=line):
        emit_own(found)
    held = plan_file(found.plan, found.pricing, "job.yaml", None)
    with pytest.raises(UnsupportedPlanError, match=r"job\.yaml: spec\.training\.state"):
        emit_own(held)


@pytest.mark.parametrize("stack", ["{}", "{loss: whole}", "{loss: compiled}"])
def test_a_run_of_torchtitan_has_the_loss_of_its_price_there_and_back(
    stack: str, tmp_path: Path
) -> None:
    out, again = tmp_path / "out", tmp_path / "job.yaml"
    words = ("--set", "framework=torchtitan", "--set", f"stack={stack}")
    done = CliRunner().invoke(app, ["plan", JOB, *words, "--out", str(out)])
    assert done.exit_code == 0, done.output
    cluster = read_spec(Path(JOB), ()).cluster
    words = ("--cluster", str(cluster), "--out", str(again))
    done = CliRunner().invoke(app, ["import", str(out), *words])
    assert done.exit_code == 0, done.output
    plan, spec = read_plan(out / "plan.json"), read_spec(again, ())
    assert spec.stack == plan.spec.stack
    (workload,) = resolve(spec, file=str(again), base=tmp_path)
    priced = predict(workload, spec.layout)
    assert priced.layout == plan.plan.layout
    mine, its = plan.plan.estimate, priced.estimate
    assert its.stack["logits_bytes"] == mine.stack["logits_bytes"]
    assert its.step_time_s.value == pytest.approx(mine.step_time_s.value)
    peaks = [x.memory.peak_allocated_gib.value for x in (mine, its)]
    assert peaks[0] == pytest.approx(peaks[1])
