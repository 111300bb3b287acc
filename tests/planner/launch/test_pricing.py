"""What a launch folder predicts is what its files will run, priced when written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_folders import ROOT
from typer.testing import CliRunner

from planner.cli.app import app
from planner.launch import partial_of, read_plan
from planner.planning.prediction.predict import predict

MEGATRON = ROOT / "megatron" / "llama-3-8b-8-a100" / "plan.json"
DEEPSPEED = ROOT / "deepspeed" / "llama-3.1-70b-zero3-32-h100" / "plan.json"
STEP = json.loads(MEGATRON.read_text())["estimate"]["step_time_s"]["value"]
"""Step of the golden plan. [s]"""
runner = CliRunner()
Fields = dict[str, Any]


def run(*words: object) -> tuple[int, str]:
    result = runner.invoke(app, [str(word) for word in words])
    return result.exit_code, " ".join(result.output.split())


def edited(folder: Path, change: Callable[[Fields], None], plan: Path) -> Path:
    fields: Fields = json.loads(plan.read_text())
    change(fields)
    path = folder / "plan.json"
    path.write_text(json.dumps(fields))
    return path


def wider(times: int) -> Callable[[Fields], None]:
    """More sequences at once, and as many fewer rounds."""

    def change(fields: Fields) -> None:
        fields["layout"]["micro_batch"] *= times
        fields["layout"]["grad_accum"] //= times

    return change


def without_sp(fields: Fields) -> None:
    """A layout that DeepSpeed has words for."""
    fields["layout"]["sp"] = False
    fields["layout"]["micro_batch"] = 1
    fields["layout"]["grad_accum"] = 32


def predicted(folder: Path) -> tuple[float, float, str]:
    """Step [s], device peak [GiB] and verdict of a folder's own plan, priced anew."""
    found = read_plan(folder / "plan.json")
    its = predict(found.pricing, partial_of(found.plan.layout)).estimate
    memory = its.memory
    return its.step_time_s.value, memory.peak_device_gib.value, memory.verdict


def test_a_plan_edited_until_it_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Its file says 79.3 GiB; the message says what its layout needs, and the way."""
    plan, out = edited(tmp_path, wider(8), MEGATRON), tmp_path / "out"
    code, text = run("emit", plan, "--target", "megatron", "--out", out)
    assert code == 3
    assert "plan.json: layout: does not fit: 367.0 of 79.3 GiB (oom)" in text
    assert "--force" in text
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_force_writes_it_with_what_is_predicted_now(tmp_path: Path) -> None:
    plan, out = edited(tmp_path, wider(8), MEGATRON), tmp_path / "out"
    code, text = run("emit", plan, "--target", "megatron", "--out", out, "--force")
    assert code == 0, text
    assert f"The plan file says {STEP:.3f} s a step, 79.3 of 79.3 GiB (at-risk)" in text
    page = (out / "README.md").read_text()
    assert "367.0 GiB of 79.3 GiB: oom" in page
    assert f"The plan file says {STEP:.3f} s a step" in page
    assert "367.0 GiB" in (out / "check.sh").read_text()


@pytest.mark.parametrize("times", [1, 2, 4])
@pytest.mark.parametrize("plan", [MEGATRON, DEEPSPEED], ids=["megatron", "deepspeed"])
def test_the_folder_says_what_predict_says(
    plan: Path, times: int, tmp_path: Path
) -> None:
    """Of a plan as it was, and of an edited one."""
    path, out = edited(tmp_path, wider(times), plan), tmp_path / "out"
    target = plan.parents[1].name
    code, text = run("emit", path, "--target", target, "--out", out, "--force")
    assert code == 0, text
    step, peak, verdict = predicted(out)
    page = (out / "README.md").read_text()
    assert f"| step time | {step:.3f} s |" in page
    assert f"{peak:.1f} GiB of" in page
    assert f": {verdict} |" in page
    assert ("The plan file says" in text) == (times > 1)


def test_another_targets_folder_holds_that_targets_price(tmp_path: Path) -> None:
    """Both predictions are shown, and reading the folder back gives the new one."""
    path, out = edited(tmp_path, without_sp, MEGATRON), tmp_path / "out"
    back = tmp_path / "back.yaml"
    code, text = run("emit", path, "--target", "deepspeed", "--out", out, "--force")
    assert code == 0, text
    assert f"The plan was made for megatron: {STEP:.3f} s a step" in text
    step, _, _ = predicted(out)
    assert read_plan(out / "plan.json").spec.framework == "deepspeed"
    page = (out / "README.md").read_text()
    assert f"| step time | {step:.3f} s |" in page
    assert f"The plan was made for megatron: {STEP:.3f} s a step" in page
    told = ("--model", "llama-3-8b", "--cluster", "dgx-a100-1-node")
    code, text = run("import", out, *told, "--out", back)
    assert code == 0, text
    code, text = run("predict", back, "--json", tmp_path / "now.json")
    assert code == 0, text
    its = json.loads((tmp_path / "now.json").read_text())["estimate"]
    assert its["step_time_s"]["value"] == pytest.approx(step, rel=1e-6)
