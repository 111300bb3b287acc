"""Fine-tuning starts from weights: those of the preset, the hub id or the folder."""

import json
import subprocess
from pathlib import Path

import pytest
from accelerate_plans import filed, plan_of
from golden_folders import ROOT

from planner.launch import emit, read_plan, write_folder
from planner.models import preset_names, read_config, read_preset, weights_of
from planner.models.hub import is_hub_id

BRIDGE = ROOT / "megatron-bridge" / "llama-3.1-8b-lora-8-a100" / "plan.json"
LORA = {"method": "lora", "lora": {"rank": 4}}


def launch_of(plan: Path, target: str) -> str:
    return {file.name: file.text for file in emit(read_plan(plan), target)}["launch.sh"]


def test_every_hub_id_is_one_that_the_source_of_its_preset_names_first() -> None:
    for name in preset_names():
        found = read_preset(name)
        assert found.hub_id == "" or is_hub_id(found.hub_id), name
        assert (found.hub_id != "") == found.source.startswith("Hugging Face"), name
        assert weights_of(found.config, name) == found.hub_id


def test_a_changed_preset_has_not_the_weights_of_the_preset() -> None:
    found = read_preset("llama-3-8b")
    assert weights_of(found.config, "llama-3-8b") == "meta-llama/Meta-Llama-3-8B"
    assert weights_of({**found.config, "hidden_size": 64}, "llama-3-8b") == ""


@pytest.mark.parametrize(
    ("said", "name", "weights"),
    [
        ("mistralai/Mistral-7B-v0.1", "mine", "mistralai/Mistral-7B-v0.1"),
        ("/data/model-7b", "mine", "/data/model-7b"),
        ("/data/$(reboot)", "mine", ""),
        ("./checkpoint-1000", "mine", ""),
        ("./checkpoint-1000", "owner/name", "owner/name"),
        (None, "mine", ""),
    ],
)
def test_weights_are_a_hub_id_or_a_whole_path(
    said: str | None, name: str, weights: str
) -> None:
    assert weights_of({"_name_or_path": said}, name) == weights


def test_weights_beside_a_config_are_the_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    assert "_name_or_path" not in read_config("config.json", tmp_path)
    (tmp_path / "model-00001-of-00002.safetensors").touch()
    found = read_config("config.json", tmp_path)
    assert found["_name_or_path"] == str(tmp_path.resolve())


@pytest.mark.parametrize(
    "case", ["llama-3.1-8b-lora-rtx-4090", "llama-3.1-70b-qlora-2-a6000"]
)
def test_adapters_lie_beside_the_weights_of_the_preset(case: str) -> None:
    plan = ROOT / "accelerate" / case / "plan.json"
    model = json.loads(plan.read_text())["spec"]["model"]["name"]
    hub_id = read_preset(model).hub_id
    assert f'export MODEL="${{MODEL:-{hub_id}}}"' in launch_of(plan, "accelerate")


def test_megatron_bridge_asks_for_the_weights_it_converts() -> None:
    text = launch_of(BRIDGE, "megatron-bridge")
    assert 'HF_MODEL="${HF_MODEL:-meta-llama/Llama-3.1-8B}"' in text
    assert "set PRETRAINED" in text


def test_a_full_run_starts_anew() -> None:
    plan = ROOT / "accelerate" / "llama-3.1-70b-fsdp-32-h100" / "plan.json"
    text = launch_of(plan, "accelerate")
    assert 'export MODEL="${MODEL:-}"' in text
    assert "set MODEL" not in text


def test_adapters_without_weights_refuse_to_start(tmp_path: Path) -> None:
    plan = filed(plan_of(1, {}, training=LORA), tmp_path)
    write_folder(tmp_path / "out", emit(plan, "accelerate"), force=False)
    done = subprocess.run(
        ["bash", "launch.sh"],  # the shell of the machine
        cwd=tmp_path / "out",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("launch.sh: set MODEL: ")
