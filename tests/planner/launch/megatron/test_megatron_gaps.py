"""What Megatron-LM has no words for is refused by name, with a plan that it can say."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from golden_folders import ROOT
from target_gaps import megatron as gaps
from test_megatron_arguments import brief, stage, with_layout, with_training
from typer.testing import CliRunner

from planner.cli.app import app
from planner.cost.workload import Workload
from planner.errors import BadInputError, UnsupportedPlanError
from planner.launch import read_plan
from planner.models.presets import preset, read_preset
from planner.questions import nearest
from planner.questions.emit import Emit


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"zero_stage": 3}, "layout.zero_stage"),
        ({"schedule": "zb-h1"}, "layout.schedule"),
        ({"offload": {"parameters": 1.0}}, "layout.offload"),
        ({"offload": {"optimizer": 1.0, "device": "nvme"}}, "layout.offload"),
        ({"offload": {"activations": 0.5}}, "layout.offload"),
        ({"offload": {"gradients": 0.5}}, "layout.offload"),
    ],
)
def test_layouts_that_have_no_words(fields: dict[str, Any], field: str) -> None:
    found = gaps(with_layout(brief(), **fields))
    assert [gap.field for gap in found] == [field]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"method": "lora"}, "spec.training.method"),
        ({"optimizer": "adafactor"}, "spec.training.optimizer"),
        ({"optimizer": "muon"}, "layout.zero_stage"),
        ({"precision": "fp32"}, "spec.training.precision"),
        ({"state_bits": 8}, "spec.training.state_bits"),
        ({"optimizer_in_backward": True}, "spec.training.optimizer_in_backward"),
    ],
)
def test_trainings_that_have_no_words(fields: dict[str, Any], field: str) -> None:
    found = gaps(with_training(brief(), **fields))
    assert [gap.field for gap in found] == [field]


@pytest.mark.parametrize(
    "parts",
    [
        [(10, "none"), (10, "full")],
        [(3, "full"), (17, "selective")],
        [(20, "attention")],
    ],
)
def test_recompute_that_has_no_words(parts: list[tuple[int, str]]) -> None:
    stages = [stage(20, *parts)] * 4
    its = with_layout(brief(), pp=4, vpp=1, schedule="1f1b", stages=stages)
    assert [gap.field for gap in gaps(its)] == ["layout.stages.recompute"]


def test_blocks_of_different_depth_have_no_words() -> None:
    stages = [stage(20, (n, "full"), (20 - n, "none")) for n in (1, 2, 2, 2)]
    its = with_layout(brief(), pp=4, vpp=1, schedule="1f1b", stages=stages)
    assert [gap.field for gap in gaps(its)] == ["layout.stages.recompute"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gemma-2-9b", "families"),
        ("falcon-40b", "families"),
        ("olmo-2-7b", "families"),
        ("bloom-7.1b", "families"),
    ],
)
def test_blocks_that_gpt_model_lacks(name: str, words: str) -> None:
    fields = read_preset(name).config
    its = replace(brief(), architecture=preset(name), model=fields)
    found = gaps(its)
    assert [gap.field for gap in found] == ["spec.model"]
    assert words in found[0].allowed


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"hidden_act": "gelu"}, "activation gelu"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4}}, "scaling of kind yarn"),
        (
            {"rope_scaling": {"rope_type": "llama3", "low_freq_factor": 2}},
            "low_freq_factor 2",
        ),
    ],
)
def test_models_that_have_no_words(fields: dict[str, Any], words: str) -> None:
    found = gaps(replace(brief(), model={**brief().model, **fields}))
    assert len(found) == 1
    assert words in found[0].feature


def test_copies_of_the_optimizer_divide_the_replicas_of_experts() -> None:
    its = read_plan(ROOT / "megatron" / "mixtral-8x7b-64-h100" / "plan.json").brief
    layout = its.layout
    shard = layout.dp * layout.cp // 8
    found = gaps(with_layout(its, dp_shard=shard))
    assert [gap.field for gap in found] == ["layout.dp_shard"]


def test_the_command_exits_5_with_the_line_and_the_nearest_plan(
    tmp_path: Path,
) -> None:
    text = (ROOT / "megatron" / "llama-3-8b-8-a100" / "plan.json").read_text()
    plan = tmp_path / "plan.json"
    plan.write_text(text.replace('"optimizer": "adamw"', '"optimizer": "lion"'))
    out = tmp_path / "out"
    words = ["emit", str(plan), "--target", "megatron", "--out", str(out)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 5, result.output
    flat = " ".join(result.output.split())
    assert "spec.training.optimizer = lion" in flat
    line = next(
        number
        for number, row in enumerate(plan.read_text().splitlines(), start=1)
        if '"optimizer"' in row
    )
    assert f":{line}:" in flat.replace(" ", "")
    assert "nearest" in flat
    assert not out.exists()


def inexpressible(folder: Path, stack: dict[str, str]) -> Path:
    """A plan on a stack whose offload Megatron-LM has no words for."""
    fields = json.loads(
        (ROOT / "megatron" / "llama-3-8b-8-a100" / "plan.json").read_text()
    )
    fields["spec"]["stack"] = stack
    fields["layout"]["offload"]["activations"] = 1.0
    for part in fields["layout"]["stages"]:
        part["recompute"] = []
    plan = folder / "plan.json"
    plan.write_text(json.dumps(fields, indent=2))
    return plan


def test_the_nearest_plan_runs_on_the_stack_of_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job of the refused plan is searched as it was resolved."""
    stacks = []

    def searched(workloads: Sequence[Workload], **_: object) -> None:
        stacks.extend(its.framework.profile.name for its in workloads)
        raise BadInputError("no plan is asked for here")

    monkeypatch.setattr(nearest, "optimize", searched)
    plan = read_plan(inexpressible(tmp_path, {"name": "megatron-2024"}))
    with pytest.raises(UnsupportedPlanError, match="nearest: no layout"):
        Emit(plan, "megatron").answer()
    assert set(stacks) == {"megatron-2024"}


def test_the_nearest_plan_is_priced(tmp_path: Path) -> None:
    plan = inexpressible(tmp_path, {})
    words = ["emit", str(plan), "--target", "megatron", "--out", str(tmp_path / "o")]
    result = CliRunner().invoke(app, words)
    flat = " ".join(result.output.split())
    assert result.exit_code == 5, result.output
    assert "the last layer's activations stay on the GPU" in flat
    assert "nearest plan that Megatron-LM can express: tp=" in flat
    assert "s a step" in flat
