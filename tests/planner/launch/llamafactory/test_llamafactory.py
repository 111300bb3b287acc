"""LLaMA-Factory's YAML reads back as its plan, and what it would change is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from accelerate_plans import drawn_plans, filed, jobs, plan_of
from target_gaps import llamafactory as gaps

from planner.errors import UnsupportedPlanError
from planner.frameworks.accelerate.llamafactory.known import unknown_arguments
from planner.launch import emit
from planner.launch.emit import CHECK, PLAN, README
from planner.launch.importing import read_texts
from planner.launch.read_plan import PlanFile
from planner.launch.targets.llamafactory.reader import read, reads
from planner.planning.prediction.predict import complete
from planner.specs.layouts.layout import Offload, PartialLayout

COUNT = 5
ADAPTERS: dict[str, Any] = {"method": "lora", "lora": {"rank": 4, "precision": "fp32"}}
DEEPSPEED = {"name": "hf-trainer"}


def files_of(found: PlanFile) -> dict[str, str]:
    """Files that `planner import` sees of the folder."""
    every = {file.name: file.text for file in emit(found, "llamafactory")}
    return {n: t for n, t in every.items() if n not in (PLAN, README, CHECK)}


def train(found: PlanFile) -> dict[str, Any]:
    given: dict[str, Any] = yaml.safe_load(files_of(found)["train.yaml"])
    return given


@pytest.fixture(scope="module", params=jobs("llamafactory"), ids=lambda path: path.name)
def plans(request: pytest.FixtureRequest) -> list[PlanFile]:
    folder: Path = request.param
    return drawn_plans(folder, COUNT, gaps=gaps)


def test_layouts_read_back_as_they_were_written(plans: list[PlanFile]) -> None:
    assert plans
    for plan in plans:
        files = files_of(plan)
        reading = read_texts(files, None, "the folder")
        assert reading.target == "llamafactory"
        partial = PartialLayout.model_validate(reading.layout_on(plan.brief.cluster))
        fresh = replace(plan.pricing, offload=Offload())
        assert complete(fresh, partial) == plan.plan.layout
        assert reading.unknown == ()
        assert reads(files)


def test_the_training_block_and_the_stack_read_back(plans: list[PlanFile]) -> None:
    plan = plans[0]
    reading, its = read(files_of(plan)), plan.pricing.training
    assert reading.training["seq_len"] == its.seq_len
    assert reading.training["precision"] == its.precision
    assert reading.training["optimizer"] == its.optimizer
    assert reading.training.get("method", "full") == its.method
    lora: Any = reading.training.get("lora", {})
    assert lora.get("rank", 16) == its.lora.rank
    assert lora.get("precision", "bf16") == its.lora.precision
    assert reading.training.get("quantization", "nf4") == (its.weight_format or "nf4")
    given = {k: v for k, v in plan.spec.stack.items() if v != "hf-fsdp2"}
    assert reading.stack == given


def test_every_argument_is_one_that_the_parser_accepts(plans: list[PlanFile]) -> None:
    for plan in plans:
        given = train(plan)
        assert list(unknown_arguments(given)) == []
        command = files_of(plan)["launch.sh"].rpartition("train.yaml ")[2]
        overrides = {word.partition("=")[0]: "" for word in _pairs(command)}
        assert {"model_name_or_path", "dataset", "max_steps"} <= overrides.keys()
        assert list(unknown_arguments(overrides)) == []


def _pairs(command: str) -> list[str]:
    return [word for word in command.split() if "=" in word]


def test_the_parser_refuses_other_words() -> None:
    given = {"finetuning_type": "full", "lora_r": 8, "packing_strategy": "bfd"}
    assert list(unknown_arguments(given)) == ["lora_r", "packing_strategy"]


@pytest.mark.parametrize(
    ("gpus", "layout", "spec", "field"),
    [
        (2, {"zero_stage": 3}, {}, "layout.zero_stage"),
        (2, {"tp": 2}, {}, "layout.tp"),
        (2, {"cp": 2, "zero_stage": 3}, {}, "layout.cp"),
        (1, {}, {"training": {"precision": "fp16"}}, "spec.training.precision"),
        (1, {}, {"training": {"precision": "fp8"}}, "spec.training.precision"),
        (
            2,
            {"zero_stage": 2},
            {"training": {"precision": "fp16"}, "stack": DEEPSPEED},
            "spec.training.precision",
        ),
        (
            1,
            {},
            {"training": {"method": "lora", "lora": {"rank": 4}}},
            "spec.training.lora.precision",
        ),
        (
            2,
            {"zero_stage": 2},
            {"training": ADAPTERS, "stack": DEEPSPEED},
            "spec.training.lora.precision",
        ),
        (1, {}, {"training": ADAPTERS, "stack": {"name": "hf-amp"}}, "spec.stack"),
        (
            2,
            {"zero_stage": 2},
            {"training": {"optimizer": "galore-adamw"}, "stack": DEEPSPEED},
            "spec.training.optimizer",
        ),
        (1, {}, {"stack": {"loss": "liger"}}, "spec.stack.loss"),
        (1, {}, {"stack": {"loss": "chunked"}}, "spec.stack.loss"),
        (1, {"offload": {"activations": 1.0}}, {}, "layout.offload"),
    ],
)
def test_what_it_would_train_otherwise_is_refused(
    gpus: int, layout: dict[str, Any], spec: dict[str, Any], field: str, tmp_path: Path
) -> None:
    found = filed(plan_of(gpus, layout, **spec), tmp_path)
    assert field in {gap.field for gap in gaps(found.brief)}
    with pytest.raises(UnsupportedPlanError, match=field):
        emit(found, "llamafactory")


def test_a_checkpoint_in_another_format_stays_in_it(tmp_path: Path) -> None:
    plan = plan_of(1, {})
    fields = plan.spec["model"] | {"torch_dtype": "float16"}
    other = plan.model_copy(update={"spec": plan.spec | {"model": fields}})
    (gap,) = gaps(filed(other, tmp_path).brief)
    assert gap.field == "spec.training.precision"
    assert "float16" not in gap.feature
    assert "fp16" in gap.feature


@pytest.mark.parametrize(
    ("gpus", "layout", "spec", "pure"),
    [
        (1, {}, {}, True),
        (1, {}, {"stack": {"name": "hf-amp"}}, False),
        (1, {}, {"stack": {"name": "hf-bf16"}}, True),
        (1, {}, {"training": ADAPTERS}, False),
        (2, {"zero_stage": 2}, {"stack": DEEPSPEED}, True),
        (2, {"zero_stage": 3}, {"stack": DEEPSPEED}, False),
    ],
)
def test_trained_weights_are_raised_to_fp32_where_they_are_priced_so(
    gpus: int,
    layout: dict[str, Any],
    spec: dict[str, Any],
    pure: object,
    tmp_path: Path,
) -> None:
    """pure_bf16 keeps them; at ZeRO 3 the parser refuses it, and nothing is raised."""
    found = filed(plan_of(gpus, layout, **spec), tmp_path)
    assert train(found)["pure_bf16"] is pure
    stack = read(files_of(found)).stack.get("name", "hf-fsdp2")
    assert stack == spec.get("stack", {}).get("name", "hf-fsdp2")


def test_blocks_are_checkpointed_by_its_own_switch(tmp_path: Path) -> None:
    """Gradient checkpointing is on unless it is switched off."""
    for kind in ("none", "full"):
        found = filed(plan_of(1, {"recompute": kind}), tmp_path)
        assert train(found)["disable_gradient_checkpointing"] is (kind == "none")
        assert "gradient_checkpointing" not in train(found)
        assert read(files_of(found)).layout["recompute"] == kind


def test_one_gpu_is_no_rank_of_torchrun(tmp_path: Path) -> None:
    """torchrun would wrap the model in DDP, whose buckets are not priced."""
    alone = files_of(filed(plan_of(1, {}), tmp_path))["launch.sh"]
    assert "FORCE_TORCHRUN=0" in alone
    two = filed(plan_of(2, {"zero_stage": 0}), tmp_path)
    several = files_of(two)["launch.sh"]
    assert "FORCE_TORCHRUN=1 NNODES" in several


PUBLIC = """### model
model_name_or_path: Qwen/Qwen3-4B-Instruct-2507
quantization_bit: 4  # choices: [8 (bnb/hqq/eetq), 4 (bnb/hqq), 3 (hqq), 2 (hqq)]
quantization_method: bnb  # choices: [bnb, hqq, eetq]
trust_remote_code: true

### method
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all

### dataset
dataset: identity,alpaca_en_demo
template: qwen3_nothink
cutoff_len: 2048
max_samples: 1000

### train
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 1.0e-4
num_train_epochs: 3.0
warmup_ratio: 0.1
bf16: true
ddp_timeout: 180000000
"""
"""LLaMA-Factory 0.9.5 examples/train_qlora/qwen3_lora_sft_otfq.yaml."""


def test_a_public_file_is_read() -> None:
    reading = read_texts({"a.yaml": PUBLIC}, None, "a.yaml")
    assert reading.target == "llamafactory"
    assert reading.layout == {
        "pp": 1,
        "ep": 1,
        "tp": 1,
        "cp": 1,
        "zero_stage": 0,
        "micro_batch": 1,
        "grad_accum": 8,
        "recompute": "full",
    }
    assert reading.training == {
        "precision": "bf16",
        "seq_len": 2048,
        "method": "qlora",
        "quantization": "nf4",
        "double_quantization": True,
        "lora": {
            "rank": 8,
            "targets": "all-linear",
            "dropout": 0.0,
            "precision": "fp32",
        },
        "padding": "longest",
    }
    assert reading.stack == {"accumulation": "no_sync"}
    assert reading.unknown == ()


def test_what_changes_the_price_and_is_not_read_is_told() -> None:
    more = "use_unsloth: true\nuse_adam_mini: true\nlora_r: 8\nshift_attn: false\n"
    text = PUBLIC.replace("bnb  #", "hqq  #")
    text += more
    told = " ".join(map(str, read({"a.yaml": text}).unknown))
    for name in ("use_unsloth", "use_adam_mini", "lora_r", "method hqq"):
        assert name in told
    assert "shift_attn" not in told


@pytest.mark.parametrize(
    ("told", "tokens"),
    [
        ({"stage": "pt"}, 768),
        ({"stage": "pt", "packing": True}, 767),
        ({"stage": "sft", "packing": True}, 768),
        ({"stage": "sft", "packing": True, "neat_packing": True}, 768),
    ],
)
def test_packing_that_is_asked_for_shortens_rows_of_pre_training(
    told: dict[str, Any], tokens: int
) -> None:
    """As its processors cut a stream of texts, which the frameworks' suite runs."""
    given = {"finetuning_type": "full", "cutoff_len": 768} | told
    reading = read({"train.yaml": yaml.safe_dump(given)})
    assert reading.training["seq_len"] == tokens


@pytest.mark.parametrize("word", ["galore", "apollo"])
def test_projected_gradients_are_written_and_read_back(
    word: str, tmp_path: Path
) -> None:
    training = {"optimizer": f"{word}-adamw", "projection_rank": 8}
    plan = plan_of(1, {}, training=training, stack={"name": "hf-bf16"})
    found = filed(plan, tmp_path)
    told = {"optim": "adamw_torch", f"use_{word}": True, f"{word}_rank": 8}
    assert told.items() <= train(found).items()
    reading = read(files_of(found))
    assert training.items() <= reading.training.items()
    assert reading.unknown == ()
    readme = next(file for file in emit(found, "llamafactory") if file.name == README)
    assert f"{word}-torch" in readme.text
    with pytest.raises(UnsupportedPlanError, match="target llamafactory has it"):
        emit(found, "accelerate")


def test_projections_that_are_priced_otherwise_are_told() -> None:
    given = {"finetuning_type": "full", "use_galore": True, "galore_layerwise": True}
    given |= {"galore_target": "q_proj", "optim": "adamw_8bit"}
    reading = read({"train.yaml": yaml.safe_dump(given)})
    assert reading.training["projection_rank"] == 16
    assert [told.setting for told in reading.unknown] == [
        "optim adamw_8bit",
        "galore_target q_proj",
        "galore_layerwise",
    ]


def test_a_file_of_a_trainer_alone_stays_accelerates() -> None:
    text = "per_device_train_batch_size: 1\nmax_length: 512\n"
    assert not reads({"a.yaml": text})
    assert read_texts({"a.yaml": text}, None, "a.yaml").target == "accelerate"


@pytest.mark.parametrize("liger", [False, True])
def test_pairs_take_whole_logits(*, liger: bool) -> None:
    """DPO raises all logits to fp32; Liger's fused loss is for SFT alone."""
    fields = yaml.safe_load(PUBLIC) | {"stage": "dpo", "enable_liger_kernel": liger}
    reading = read_texts({"a.yaml": yaml.safe_dump(fields)}, None, "a.yaml")
    assert reading.stack["loss"] == "hf"
