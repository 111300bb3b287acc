"""The attention that is priced is the one that is written, and the model has it."""

import json
from pathlib import Path

import pytest
import yaml
from accelerate_plans import CLUSTERS
from golden_folders import ROOT
from small_models import one_of_each_family, small_fields
from typer.testing import CliRunner

from planner.cli.app import app
from planner.frameworks.transformers import ROOMS, implementations
from planner.hardware.kernels.attention import attention_word
from planner.job.resolve import resolve
from planner.launch import emit
from planner.launch.importing import read_launch
from planner.launch.read_plan import PlanFile, read_plan
from planner.models import preset
from planner.planning.prediction.predict import predict
from planner.specs.answer.result import Plan
from planner.specs.job import JobSpec
from planner.specs.layouts.layout import PartialLayout

FAMILIES = {implementations(family): family for family in one_of_each_family()}
"""A family for each choice of implementations. [text]"""
runner = CliRunner()


def planned(family: str, room: str, folder: Path, **stack: str) -> PlanFile:
    """A tiny plan of a family in a room."""
    model = {"name": "tiny", **small_fields(one_of_each_family()[family])}
    spec = JobSpec.model_validate(
        {
            "model": model,
            "cluster": CLUSTERS[2],
            "training": {"seq_len": 32, "global_batch": 2},
            "framework": room,
            "stack": stack,
        }
    )
    (workload,) = resolve(spec, file=family, base=Path())
    given = {"micro_batch": 1, "recompute": "none", "zero_stage": 3}
    given["stages"] = "even"
    priced = predict(workload, PartialLayout.model_validate(given))
    plan = Plan.model_validate(
        {
            "schema": "planner/plan@1",
            "spec": spec.model_dump(mode="json", by_alias=True) | {"model": model},
            "layout": priced.layout.model_dump(mode="json", by_alias=True),
            "estimate": priced.estimate.model_dump(mode="json", by_alias=True),
            "versions": {"planner": "0"},
        }
    )
    path = folder / "plan.json"
    path.write_text(plan.model_dump_json(by_alias=True))
    return read_plan(path)


def attention_of(files: dict[str, str]) -> str:
    if "run.yaml" in files:
        return str(yaml.safe_load(files["run.yaml"])["attention"])
    words = files["launch.sh"].split()
    return words[words.index("--attention") + 1]


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_every_family_gets_attention_that_it_has(room: str, tmp_path: Path) -> None:
    """Eager where scores were priced in memory, a fused kernel elsewhere."""
    for family in FAMILIES.values():
        found = planned(family, room, tmp_path)
        files = {file.name: file.text for file in emit(found, room)}
        word = attention_of(files)
        assert word in implementations(family), family
        unfused = found.brief.stack["attention_kernel"] == "unfused"
        assert (word == "eager") == unfused, family


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("word", ["sdpa", "flash_attention_2", "eager"])
def test_attention_that_is_asked_for_is_written_and_read_back(
    room: str, word: str, tmp_path: Path
) -> None:
    found = planned("llama", room, tmp_path, attention=word)
    out = tmp_path / "out"
    out.mkdir()
    for file in emit(found, room):
        (out / file.name).write_text(file.text)
    assert attention_of({p.name: p.read_text() for p in out.iterdir()}) == word
    back = read_launch([out], None).stack.get("attention", "sdpa")
    assert back == attention_word(word)


@pytest.mark.parametrize(
    ("model", "word"), [("gemma-2-9b", "sdpa"), ("bloom-7.1b", "flash_attention_2")]
)
def test_attention_that_the_family_lacks_is_refused(model: str, word: str) -> None:
    words = ["--set", f"model={model}", "--set", f"stack.attention={word}"]
    words += ["--set", "framework=accelerate", "--layout", "zero_stage=3"]
    done = runner.invoke(app, ["predict", "llama-3-8b-8-a100", *words])
    text = " ".join(done.output.split())
    assert done.exit_code == 2, text
    assert f"stack.attention: {preset(model).family} has no such attention" in text
    assert f"given: '{word}'" in text
    assert "unfused" in text


def test_gemma_2_is_written_with_what_it_was_priced_with(tmp_path: Path) -> None:
    """transformers refuses sdpa for Gemma 2."""
    found = planned("gemma2", "accelerate", tmp_path)
    run = next(f.text for f in emit(found, "accelerate") if f.name == "run.yaml")
    assert found.brief.stack["attention_kernel"] == "fa2"
    assert yaml.safe_load(run)["attention"] == "flash_attention_2"


def test_a_kernel_that_transformers_lacks_is_a_gap(tmp_path: Path) -> None:
    golden = ROOT / "accelerate" / "llama-3.1-70b-fsdp-32-h100" / "plan.json"
    fields = json.loads(golden.read_text())
    fields["spec"]["stack"]["attention"] = "cudnn9"
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(fields))
    done = runner.invoke(
        app,
        ["emit", str(path), "--target", "accelerate", "--out", str(tmp_path / "o")],
    )
    assert done.exit_code == 5, done.output
    assert "no such attention" in done.output
