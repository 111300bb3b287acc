"""What accelerate has no words for is named, with the field that asks for it."""

from dataclasses import replace
from typing import Any

import pytest
from accelerate_plans import plan_of
from golden_folders import ROOT
from target_gaps import accelerate as gaps

from planner.cost.pricing import Pricing
from planner.job.resolve import resolve
from planner.launch.brief import Brief
from planner.launch.read_plan import PlanFile, read_plan
from planner.specs.layouts.layout import Layout

LORA: dict[str, Any] = {"method": "lora", "lora": {"rank": 4}}
FSDP = {"zero_stage": 3}


def brief_of(gpus: int, layout: dict[str, Any], **spec: Any) -> Brief:
    from planner.specs.job import JobSpec  # noqa: PLC0415  # beside its only use

    plan = plan_of(gpus, layout, **spec)
    job = JobSpec.model_validate(plan.spec)
    (workload,) = resolve(job, file="tiny", base=ROOT)
    return PlanFile("plan.json", "", plan, job, Pricing.of(workload, plan.layout)).brief


@pytest.mark.parametrize(
    ("gpus", "layout", "spec", "field"),
    [
        (2, FSDP, {"stack": {"name": "unsloth"}}, "spec.stack"),
        (1, {}, {"training": {"precision": "fp16"}}, "spec.training.precision"),
        (2, FSDP, {"training": {"optimizer": "lion"}}, "spec.training.optimizer"),
        (2, FSDP, {"training": {"optimizer": "muon"}}, "spec.training.optimizer"),
        (
            1,
            {},
            {"training": {**LORA, "precision": "fp16"}},
            "spec.training.precision",
        ),
        (
            4,
            FSDP,
            {"training": {"precision": "fp8"}, "stack": {"name": "hf-trainer"}},
            "spec.training.precision",
        ),
        (2, FSDP, {"training": {"freeze": {"layers": 1}}}, "spec.training.freeze"),
        (2, FSDP, {"training": {"document": 16}}, "spec.training.document"),
        (
            2,
            FSDP,
            {"training": {"optimizer_in_backward": True}},
            "spec.training.optimizer_in_backward",
        ),
        (2, {"tp": 2}, {"training": LORA}, "layout.tp"),
        (2, {"cp": 2, **FSDP}, {"training": LORA}, "layout.cp"),
        (
            2,
            {"cp": 2, **FSDP},
            {"stack": {"attention": "eager"}},
            "spec.stack.attention",
        ),
        (
            2,
            {"cp": 2, "cp_kind": "ulysses", "zero_stage": 1},
            {"stack": {"name": "hf-trainer"}},
            "layout.zero_stage",
        ),
        (
            2,
            {**FSDP, "offload": {"optimizer": 1.0}},
            {"stack": {"name": "hf-trainer"}, "training": {"optimizer": "lion"}},
            "spec.training.optimizer",
        ),
    ],
)
def test_what_has_no_words_is_named(
    gpus: int, layout: dict[str, Any], spec: dict[str, Any], field: str
) -> None:
    assert field in {gap.field for gap in gaps(brief_of(gpus, layout, **spec))}


@pytest.mark.parametrize(
    ("gpus", "layout", "spec"),
    [
        (1, {}, {}),
        (2, FSDP, {}),
        (2, {"tp": 2}, {}),
        (2, FSDP, {"training": LORA}),
        (2, FSDP, {"training": {"optimizer": "adamw-8bit"}}),
        (1, {}, {"training": {"optimizer": "lion"}}),
        (2, {"zero_stage": 1}, {"stack": {"name": "hf-trainer"}}),
        (1, {}, {"training": {"precision": "fp16"}, "stack": {"name": "hf-amp"}}),
    ],
)
def test_what_has_words_has_no_gap(
    gpus: int, layout: dict[str, Any], spec: dict[str, Any]
) -> None:
    assert gaps(brief_of(gpus, layout, **spec)) == ()


def test_a_model_that_transformers_lacks_is_named() -> None:
    its = brief_of(2, FSDP)
    other = replace(its, model={**its.model, "model_type": "grok-1"})
    assert "spec.model" in {gap.field for gap in gaps(other)}


def test_a_model_without_a_plan_for_tensor_ranks_is_named() -> None:
    its = brief_of(2, {"tp": 2})
    other = replace(its, model={**its.model, "model_type": "gpt2"})
    assert "layout.tp" in {gap.field for gap in gaps(other)}


def test_tensor_ranks_beside_context_ranks_are_named() -> None:
    its = brief_of(4, {"tp": 2, **FSDP})
    both = its.layout.model_copy(update={"cp": 2, "dp": 1})
    assert "layout.cp" in {gap.field for gap in gaps(replace(its, layout=both))}


def test_a_recompute_that_checkpoints_some_layers_is_named() -> None:
    found = read_plan(ROOT / "accelerate" / "llama-3.1-8b-lora-rtx-4090" / "plan.json")
    fields = found.plan.layout.model_dump(mode="json", by_alias=True)
    (stage,) = fields["stages"]
    half = stage["layers"] // 2
    stage["recompute"] = [
        {"from": 0, "to": half, "kind": "full"},
        {"from": half, "to": stage["layers"], "kind": "none"},
    ]
    brief = replace(found.brief, layout=Layout.model_validate(fields))
    assert "layout.stages.recompute" in {gap.field for gap in gaps(brief)}


def test_adapters_on_routed_experts_are_named() -> None:
    found = read_plan(ROOT / "accelerate" / "mixtral-8x7b-fsdp-64-h100" / "plan.json")
    training = found.brief.training
    for targets, named in (("all", True), ("attention", False)):
        lora = training.lora.model_copy(update={"targets": targets})
        its = training.model_copy(update={"method": "lora", "lora": lora})
        fields = {gap.field for gap in gaps(replace(found.brief, training=its))}
        assert ("spec.training.lora" in fields) is named
