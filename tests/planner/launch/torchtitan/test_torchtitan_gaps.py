"""What torchtitan has no words for is refused by name."""

from dataclasses import replace
from typing import Any

import pytest
from golden_folders import ROOT
from target_gaps import torchtitan as gaps

from planner.launch import read_plan
from planner.launch.brief import Brief
from planner.models.presets import preset, read_preset

CASE = "llama-3.1-70b-32-h100"


def brief(case: str = CASE) -> Brief:
    return read_plan(ROOT / "torchtitan" / case / "plan.json").brief


def with_layout(its: Brief, **fields: Any) -> Brief:
    data = its.layout.model_dump(by_alias=True) | fields
    return replace(its, layout=type(its.layout).model_validate(data))


def with_training(its: Brief, **fields: Any) -> Brief:
    data = its.training.model_dump() | fields
    return replace(its, training=type(its.training).model_validate(data))


def with_model(its: Brief, name: str, **fields: Any) -> Brief:
    found = dict(read_preset(name).config) | {"name": name} | fields
    return replace(its, model=found, architecture=preset(name))


def fields_of(its: Brief) -> list[str]:
    return [gap.field for gap in gaps(its)]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"schedule": "zb-h1"}, "layout.schedule"),
        ({"schedule": "zb-v"}, "layout.schedule"),
        ({"cp": 2, "cp_kind": "ring"}, "layout.cp_kind"),
        ({"cp": 2, "cp_kind": "ulysses"}, "layout.cp_kind"),
        ({"tp": 16}, "layout.tp"),
        ({"comm_dtype": {"parameters": "fp8"}}, "layout.comm_dtype.parameters"),
    ],
)
def test_layouts_that_have_no_words(fields: dict[str, Any], field: str) -> None:
    assert fields_of(with_layout(brief(), **fields)) == [field]


def test_masks_of_context_ranks_are_cut_in_blocks() -> None:
    short = with_training(brief(), seq_len=384)
    assert fields_of(with_layout(short, cp=2)) == ["layout.cp"]
    assert fields_of(with_layout(short, cp=3)) == []


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"method": "lora"}, "spec.training.method"),
        ({"optimizer": "muon"}, "spec.training.optimizer"),
        ({"precision": "fp16"}, "spec.training.precision"),
        ({"precision": "nvfp4"}, "spec.training.precision"),
        ({"state_bits": 8}, "spec.training.state_bits"),
        ({"optimizer_in_backward": True}, "spec.training.optimizer_in_backward"),
    ],
)
def test_trainings_that_have_no_words(fields: dict[str, Any], field: str) -> None:
    assert fields_of(with_training(brief(), **fields)) == [field]


@pytest.mark.parametrize(
    "name",
    ["gpt2", "gemma-2-9b", "qwen2.5-7b", "falcon-7b", "gpt-oss-20b", "glm-4.5"],
)
def test_models_that_have_no_blocks(name: str) -> None:
    found = gaps(with_model(brief(), name))
    assert "spec.model" in {gap.field for gap in found}


def test_fields_of_a_model_that_have_no_words() -> None:
    gelu = with_model(brief(), "llama-3-8b", hidden_act="gelu")
    linear = {"rope_type": "linear", "factor": 2.0}
    stretched = with_model(brief(), "llama-3-8b", rope_scaling=linear)
    assert "activation gelu" in gaps(gelu)[0].feature
    assert "rotary scaling of kind linear" in gaps(stretched)[0].feature


def test_tied_embeddings_and_added_predictions_have_no_pipeline() -> None:
    tied = with_model(brief(), "llama-3.2-1b")
    assert fields_of(with_layout(tied, tp=1, pp=4)) == ["layout.pp"]
    assert fields_of(with_layout(tied, tp=1)) == []
    deep = with_model(brief(), "deepseek-v3")
    found = fields_of(with_layout(deep, pp=4, cp=2))
    assert found == ["layout.cp", "layout.pp"]


def test_experts_divide_over_one_copy_of_the_model() -> None:
    mixture = with_model(brief(), "mixtral-8x7b")
    assert fields_of(with_layout(mixture, tp=1, dp_shard=2, ep=4)) == ["layout.ep"]
    assert fields_of(with_layout(mixture, tp=2, dp_shard=2, ep=4)) == []


def test_deepep_pads_no_tokens_for_quantised_experts() -> None:
    mixture = with_training(with_model(brief(), "mixtral-8x7b"), precision="fp8")
    spec = mixture.spec.model_copy(update={"stack": {"dispatcher": "deepep"}})
    assert fields_of(mixture) == []
    assert fields_of(replace(mixture, spec=spec)) == ["spec.stack.dispatcher"]
