"""axolotl's YAML reads back as its plan, and what it has no words for is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from accelerate_plans import drawn_plans, filed, jobs, plan_of
from target_gaps import axolotl as gaps

from planner.errors import BadInputError, UnsupportedPlanError
from planner.frameworks.accelerate.axolotl.known import unknown_keys
from planner.launch import emit
from planner.launch.emit import CHECK, PLAN, README
from planner.launch.importing import UserOverrides, import_spec, read_texts
from planner.launch.read_plan import PlanFile
from planner.launch.targets.axolotl.reader import read, reads
from planner.planning.prediction.predict import complete
from planner.specs.layouts.layout import Offload, PartialLayout

COUNT = 5
WIDE: dict[str, Any] = {"method": "lora", "lora": {"rank": 4, "precision": "fp32"}}
NARROW: dict[str, Any] = {"method": "lora", "lora": {"rank": 4}}
QUANTISED: dict[str, Any] = {"method": "qlora", "lora": {"rank": 4}}
EIGHT: dict[str, Any] = QUANTISED | {"quantization": "int8"}
FLASH = {"attention": "fa2"}
PURE = {"name": "hf-bf16"}
DEEPSPEED = {"name": "hf-trainer"}


def files_of(found: PlanFile) -> dict[str, str]:
    """Files that `planner import` sees of the folder."""
    every = {file.name: file.text for file in emit(found, "axolotl")}
    return {n: t for n, t in every.items() if n not in (PLAN, README, CHECK)}


def train(found: PlanFile) -> dict[str, Any]:
    given: dict[str, Any] = yaml.safe_load(files_of(found)["train.yaml"])
    return given


@pytest.fixture(scope="module", params=jobs("axolotl"), ids=lambda path: path.name)
def plans(request: pytest.FixtureRequest) -> list[PlanFile]:
    folder: Path = request.param
    return drawn_plans(folder, COUNT, gaps=gaps)


def test_layouts_read_back_as_they_were_written(plans: list[PlanFile]) -> None:
    assert plans
    for plan in plans:
        reading = read_texts(files_of(plan), None, "the folder")
        assert reading.target == "axolotl"
        partial = PartialLayout.model_validate(reading.layout_on(plan.brief.cluster))
        fresh = replace(plan.pricing, offload=Offload())
        assert complete(fresh, partial) == plan.plan.layout
        assert reading.unknown == ()


def test_every_key_is_one_of_the_schema(plans: list[PlanFile]) -> None:
    for plan in plans:
        assert list(unknown_keys(train(plan))) == []


@pytest.mark.parametrize(
    ("gpus", "layout", "spec"),
    [
        (1, {}, {"stack": FLASH}),
        (1, {"recompute": "full"}, {"training": WIDE}),
        (1, {}, {"training": NARROW, "stack": {"loss": "liger"}}),
        (1, {}, {"training": QUANTISED}),
        (1, {}, {"training": EIGHT}),
        (1, {}, {"training": {"optimizer": "paged-adamw-8bit"}, "stack": FLASH}),
        (1, {}, {"stack": PURE | FLASH}),
        (2, {"zero_stage": 3}, {"stack": PURE}),
        (2, {"zero_stage": 3}, {"training": QUANTISED, "stack": PURE}),
        (4, {"zero_stage": 2, "dp_shard": 2}, {"stack": PURE}),
        (2, {"zero_stage": 3}, {"training": NARROW, "stack": DEEPSPEED}),
        (2, {"zero_stage": 2}, {"stack": DEEPSPEED}),
    ],
)
def test_the_training_block_and_the_stack_read_back(
    gpus: int, layout: dict[str, Any], spec: dict[str, Any], tmp_path: Path
) -> None:
    found = filed(plan_of(gpus, layout, **spec), tmp_path)
    reading, its = read(files_of(found)), found.pricing.training
    assert reading.training["seq_len"] == its.seq_len
    assert reading.training["precision"] == its.precision
    assert reading.training["optimizer"] == its.optimizer
    assert reading.training.get("method", "full") == its.method
    lora: Any = reading.training.get("lora", {})
    assert lora.get("rank", its.lora.rank) == its.lora.rank
    assert lora.get("precision", "bf16") == its.lora.precision
    assert reading.training.get("quantization") == its.weight_format
    assert reading.stack == spec.get("stack", {})
    assert reading.unknown == ()


@pytest.mark.parametrize(
    ("gpus", "layout", "spec", "field"),
    [
        (1, {}, {}, "spec.stack.attention"),
        (2, {"zero_stage": 3}, {"stack": FLASH}, "layout.zero_stage"),
        (1, {}, {"training": WIDE, "stack": {"loss": "chunked"}}, "spec.stack.loss"),
        (1, {}, {"training": WIDE, "stack": {"name": "hf-amp"}}, "spec.stack"),
        (1, {}, {"training": {"precision": "fp16"}}, "spec.training.precision"),
        (
            2,
            {"zero_stage": 3},
            {"training": WIDE, "stack": PURE},
            "spec.training.lora.precision",
        ),
        (
            2,
            {"zero_stage": 2},
            {"training": WIDE, "stack": DEEPSPEED},
            "spec.training.lora.precision",
        ),
        (2, {}, {"training": QUANTISED, "stack": DEEPSPEED}, "spec.stack"),
        (
            1,
            {},
            {"training": {"method": "lora", "lora": {"modules_to_save": ["lm_head"]}}},
            "spec.training.lora.modules_to_save",
        ),
        (2, {"tp": 2}, {"stack": FLASH}, "layout.tp"),
        (2, {"cp": 2, "zero_stage": 3}, {"stack": PURE}, "layout.cp"),
        (1, {"offload": {"activations": 1.0}}, {"training": WIDE}, "layout.offload"),
    ],
)
def test_what_it_would_train_otherwise_is_refused(
    gpus: int, layout: dict[str, Any], spec: dict[str, Any], field: str, tmp_path: Path
) -> None:
    found = filed(plan_of(gpus, layout, **spec), tmp_path)
    assert field in {gap.field for gap in gaps(found.brief)}
    with pytest.raises(UnsupportedPlanError, match=field):
        emit(found, "axolotl")


def test_shards_of_quantised_weights_are_read_on_every_rank(tmp_path: Path) -> None:
    """The schema refuses 4-bit weights that rank 0 reads alone."""
    spec = {"training": QUANTISED, "stack": PURE}
    given = train(filed(plan_of(2, {"zero_stage": 3}, **spec), tmp_path))
    assert given["fsdp_config"]["cpu_ram_efficient_loading"] is False
    assert given["bnb_config_kwargs"]["bnb_4bit_quant_storage"] == "bfloat16"


def test_kernels_for_adapters_are_switched_off(tmp_path: Path) -> None:
    """They are on unless a file says otherwise, and are not priced."""
    given = train(filed(plan_of(1, {}, training=WIDE), tmp_path))
    kernels = {k: v for k, v in given.items() if k.endswith("_kernel")}
    assert len(kernels) == 4
    assert not any(kernels.values())


PUBLIC = """base_model: NousResearch/Llama-3.2-1B
load_in_8bit: false
load_in_4bit: true
datasets:
  - path: teknium/GPT4-LLM-Cleaned
    type: alpaca
val_set_size: 0.1
output_dir: ./outputs/qlora-out
adapter: qlora
sequence_len: 2048
sample_packing: true
eval_sample_packing: true
lora_r: 32
lora_alpha: 16
lora_dropout: 0.05
lora_target_modules:
  - gate_proj
  - down_proj
  - up_proj
  - q_proj
  - v_proj
  - k_proj
  - o_proj
gradient_accumulation_steps: 4
micro_batch_size: 2
num_epochs: 1
optimizer: adamw_bnb_8bit
lr_scheduler: cosine
learning_rate: 0.0002
bf16: auto
tf32: false
gradient_checkpointing: true
flash_attention: true
warmup_ratio: 0.1
special_tokens:
  pad_token: "<|end_of_text|>"
"""
"""axolotl 0.9 examples/llama-3/qlora-1b.yml, by its values."""


def test_a_public_file_is_read() -> None:
    reading = read_texts({"a.yml": PUBLIC}, None, "a.yml")
    assert reading.target == "axolotl"
    assert reading.layout["zero_stage"] == 0
    assert reading.layout["recompute"] == "full"
    assert (reading.layout["micro_batch"], reading.layout["grad_accum"]) == (2, 4)
    its: Any = reading.training
    assert its["seq_len"] == 2048
    assert (its["precision"], its["optimizer"]) == ("bf16", "adamw-8bit")
    assert (its["method"], its["quantization"]) == ("qlora", "nf4")
    assert its["lora"]["targets"][0] == "gate_proj"
    assert its["lora"]["dropout"] == 0.05
    assert its["lora"]["precision"] == "fp32"
    assert reading.stack == {
        "attention": "fa2",
        "accumulation": "no_sync",
    }
    assert reading.unknown == ()
    told = UserOverrides(model="llama-3.2-1b", cluster="rtx-4090-1")
    assert import_spec(reading, told, ())["training"]


def test_shards_of_fsdp2_stay_in_bf16_and_those_of_fsdp1_do_not() -> None:
    """axolotl prepares FSDP2 itself, and raises nothing to fp32."""
    block = "fsdp_config: {reshard_after_forward: false}\n"
    second = read({"a.yml": PUBLIC + block + "fsdp_version: 2\n"})
    assert second.stack["name"] == "hf-bf16"
    assert second.layout["zero_stage"] == 2
    first = "fsdp_config: {fsdp_sharding_strategy: FULL_SHARD}\n"
    assert "name" not in read({"a.yml": PUBLIC + first}).stack


@pytest.mark.parametrize(
    ("file", "stage", "offload"),
    [
        ("deepspeed_configs/zero2.json", 2, None),
        ("zero3_bf16_cpuoffload_all.json", 3, 2),
        ("zero3_bf16_cpuoffload_params.json", 3, 1),
    ],
)
def test_a_file_of_deepspeed_that_axolotl_brings_is_read_by_its_name(
    file: str, stage: int, offload: int | None
) -> None:
    reading = read({"a.yml": PUBLIC + f"deepspeed: {file}\n"})
    assert reading.layout["zero_stage"] == stage
    moved: Any = reading.layout.get("offload", {})
    assert sum(share == 1.0 for share in moved.values()) == (offload or 0)
    assert reading.unknown == ()


def test_short_texts_that_nothing_fills_up_are_padded_to_their_longest() -> None:
    text = PUBLIC.replace("sample_packing: true", "sample_packing: false")
    assert read({"a.yml": text}).training["padding"] == "longest"
    filled = text + "pad_to_sequence_len: true\n"
    assert read({"a.yml": filled}).training["padding"] == "max"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("peft_layers_to_transform: [1]", "peft_layers_to_transform"),
        ("lora_rank: 8", "lora_rank: no key of axolotl 0.19.0"),
        ("attn_implementation: sage_attention", "is not priced"),
        ("plugins: [a.CutCrossEntropyPlugin]", "CutCrossEntropy"),
        ("trainer_cls: a.Mine", "trainer_cls"),
        ("context_parallel_size: 2", "is not priced without fsdp_config"),
        ("deepspeed: mine.json", "mine.json"),
        ("fsdp_config: {fsdp_reshard: true}", "fsdp_config.fsdp_reshard"),
    ],
)
def test_what_changes_the_price_and_is_not_read_is_told(line: str, told: str) -> None:
    (said,) = read({"a.yml": PUBLIC + line + "\n"}).unknown
    assert told in str(said)


@pytest.mark.parametrize(
    "line",
    [
        "micro_batch_size: many",
        "lora_r: 0",
        "lora_dropout: 2",
        "sequence_len: -1",
        "gradient_accumulation_steps: 1.5",
        "context_parallel_size: x",
    ],
)
def test_a_value_that_cannot_be_is_refused_with_file_and_field(line: str) -> None:
    name = line.partition(":")[0]
    kept = [x for x in PUBLIC.splitlines() if not x.startswith(f"{name}:")]
    with pytest.raises(BadInputError, match=rf"a\.yml: {name}"):
        read({"a.yml": "\n".join([*kept, line])})


def test_a_version_of_fsdp_that_is_not_known_is_refused() -> None:
    shards = ["fsdp_version: 3", "fsdp_config: {reshard_after_forward: true}"]
    with pytest.raises(BadInputError, match=r"a\.yml: fsdp_version") as told:
        read({"a.yml": "\n".join([*PUBLIC.splitlines(), *shards])})
    assert told.value.allowed == "1 or 2"


def test_quantised_weights_without_adapters_are_refused() -> None:
    text = PUBLIC.replace("adapter: qlora\n", "")
    with pytest.raises(BadInputError, match="only beside adapters"):
        read({"a.yml": text})


def test_files_of_others_are_not_axolotls() -> None:
    text = "base_model: x\nlora_r: 8\n"
    assert not reads({"a.yaml": text})
    with pytest.raises(BadInputError, match="axolotl"):
        read({"a.yaml": text})
