"""Launch files start with a published learning rate, or ask for one."""

import subprocess
from pathlib import Path

import pytest
from golden_folders import ROOT, cases, emitted

from planner.launch import emit, read_plan, write_folder
from planner.launch.text.rates import published
from planner.models import preset_names


def started(plan: Path, target: str, out: Path, **given: str) -> str:
    """Errors of launch.sh, with more nodes than planned so that it never starts."""
    write_folder(out, emit(read_plan(plan), target), force=True)
    done = subprocess.run(
        ["bash", "launch.sh"],  # the shell of the machine
        cwd=out,
        env={"PATH": "/usr/bin:/bin", "NNODES": "99999", **given},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    return done.stderr


def test_published_rates_are_of_models_that_are_known() -> None:
    assert set(published()) <= set(preset_names())
    assert published()["llama-3.1-405b"][0] == pytest.approx(8e-5)
    assert published()["deepseek-v3"][0] == pytest.approx(2.2e-4)


def test_the_largest_model_starts_with_the_rate_of_its_report(tmp_path: Path) -> None:
    plan = ROOT / "megatron" / "llama-3.1-405b-16k-h100" / "plan.json"
    files = {file.name: file.text for file in emit(read_plan(plan), "megatron")}
    assert 'LEARNING_RATE="${LEARNING_RATE:-8e-05}"' in files["launch.sh"]
    assert "| `LEARNING_RATE` | `8e-05` |" in files["README.md"]
    assert "--lr " not in files["arguments.sh"]
    assert "are not the plan's" in started(plan, "megatron", tmp_path)


def test_a_model_without_a_report_asks_for_its_rate(tmp_path: Path) -> None:
    plan = ROOT / "megatron" / "qwen3-235b-mxfp8-256-b200" / "plan.json"
    said = started(plan, "megatron", tmp_path)
    assert said.startswith("launch.sh: set LEARNING_RATE: ")
    for way in ({"LEARNING_RATE": "1e-4"}, {"DEVICE": "cpu"}):
        assert "are not the plan's" in started(plan, "megatron", tmp_path, **way)


@pytest.mark.parametrize(("target", "case"), cases())
def test_no_folder_has_a_rate_of_its_own(target: str, case: str) -> None:
    """The rate is a variable of launch.sh, and no number of another file."""
    files = emitted(target, case)
    launch = files["launch.sh"]
    assert 'export LEARNING_RATE="${LEARNING_RATE:-' in launch
    assert "$LEARNING_RATE" in launch.replace("${", "$")
    if "plan_config.py" in files:
        assert 'os.environ.get("LEARNING_RATE") or' in files["plan_config.py"]
    else:
        assert '"${LEARNING_RATE:-1e-5}"' in launch
