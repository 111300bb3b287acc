"""TRL's YAML reads back as its plan, and what it would train otherwise is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from accelerate_plans import drawn_plans, filed, jobs, plan_of
from target_gaps import trl as gaps

from planner.errors import BadInputError, UnsupportedPlanError
from planner.frameworks.accelerate.launch.known import keys
from planner.launch import emit
from planner.launch.emit import CHECK, PLAN, README
from planner.launch.importing import UserOverrides, import_spec, read_texts
from planner.launch.read_plan import PlanFile
from planner.launch.targets.trl.reader import read, reads
from planner.planning.prediction.predict import complete
from planner.specs.layouts.layout import Offload, PartialLayout

COUNT = 5
WIDE: dict[str, Any] = {"method": "lora", "lora": {"rank": 4, "precision": "fp32"}}
NARROW: dict[str, Any] = {"method": "lora", "lora": {"rank": 4}}
QUANTISED: dict[str, Any] = {"method": "qlora", "lora": {"rank": 4}}
DEEPSPEED = {"name": "hf-trainer", "loss": "chunked"}
CHUNKED = {"loss": "chunked"}


def files_of(found: PlanFile) -> dict[str, str]:
    """Files that `planner import` sees of the folder."""
    every = {file.name: file.text for file in emit(found, "trl")}
    return {n: t for n, t in every.items() if n not in (PLAN, README, CHECK)}


def train(found: PlanFile) -> dict[str, Any]:
    given: dict[str, Any] = yaml.safe_load(files_of(found)["train.yaml"])
    return given


@pytest.fixture(scope="module", params=jobs("trl"), ids=lambda path: path.name)
def plans(request: pytest.FixtureRequest) -> list[PlanFile]:
    folder: Path = request.param
    return drawn_plans(folder, COUNT, gaps=gaps)


def test_layouts_read_back_as_they_were_written(plans: list[PlanFile]) -> None:
    assert plans
    for plan in plans:
        reading = read_texts(files_of(plan), None, "the folder")
        assert reading.target == "trl"
        partial = PartialLayout.model_validate(reading.layout_on(plan.brief.cluster))
        fresh = replace(plan.pricing, offload=Offload())
        assert complete(fresh, partial) == plan.plan.layout
        assert reading.unknown == ()


def test_every_argument_is_one_that_the_script_has(plans: list[PlanFile]) -> None:
    its = keys()
    known = its.sft_config | its.of_weights | its.of_script | its.of_mixture
    for plan in plans:
        assert train(plan).keys() <= known


@pytest.mark.parametrize(
    ("gpus", "layout", "spec"),
    [
        (1, {}, {"stack": CHUNKED}),
        (1, {"recompute": "full"}, {"training": WIDE, "stack": CHUNKED}),
        (1, {}, {"training": QUANTISED, "stack": CHUNKED}),
        (1, {}, {"stack": {"name": "hf-amp", "loss": "chunked"}}),
        (1, {}, {"stack": {"name": "hf-bf16", "loss": "chunked"}}),
        (1, {}, {"training": {"optimizer": "paged-adamw-8bit"}, "stack": CHUNKED}),
        (2, {"zero_stage": 3}, {"training": QUANTISED, "stack": CHUNKED}),
        (2, {"zero_stage": 3}, {"training": NARROW, "stack": DEEPSPEED}),
        (2, {"zero_stage": 2}, {"stack": DEEPSPEED}),
        (1, {}, {"stack": {"attention": "fa2", "loss": "chunked"}}),
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
    assert reading.stack == spec["stack"]
    assert reading.unknown == ()


@pytest.mark.parametrize(
    ("gpus", "layout", "spec", "field"),
    [
        (1, {}, {}, "spec.stack.loss"),
        (1, {}, {"stack": {"loss": "liger"}}, "spec.stack.loss"),
        (1, {}, {"training": NARROW, "stack": CHUNKED}, "spec.training.lora.precision"),
        (
            2,
            {"zero_stage": 2},
            {"training": WIDE, "stack": DEEPSPEED},
            "spec.training.lora.precision",
        ),
        (
            1,
            {},
            {"training": WIDE, "stack": {"name": "hf-amp", "loss": "chunked"}},
            "spec.stack",
        ),
        (
            1,
            {},
            {
                "training": {
                    "method": "lora",
                    "lora": {"precision": "fp32", "modules_to_save": ["lm_head"]},
                },
                "stack": CHUNKED,
            },
            "spec.training.lora.modules_to_save",
        ),
        (2, {"tp": 2}, {"stack": CHUNKED}, "layout.tp"),
        (2, {"cp": 2, "zero_stage": 3}, {"stack": CHUNKED}, "layout.cp"),
    ],
)
def test_what_it_would_train_otherwise_is_refused(
    gpus: int, layout: dict[str, Any], spec: dict[str, Any], field: str, tmp_path: Path
) -> None:
    found = filed(plan_of(gpus, layout, **spec), tmp_path)
    assert field in {gap.field for gap in gaps(found.brief)}
    with pytest.raises(UnsupportedPlanError, match=field):
        emit(found, "trl")


def test_adapters_under_zero_3_checkpoint_as_its_trainer_sets_it(
    tmp_path: Path,
) -> None:
    """SFTTrainer makes checkpoints re-entrant there, and nowhere else."""
    spec = {"training": NARROW, "stack": DEEPSPEED}
    for stage in (2, 3):
        layout = {"zero_stage": stage, "recompute": "full"}
        given = train(filed(plan_of(2, layout, **spec), tmp_path))
        kwargs = given["gradient_checkpointing_kwargs"]
        assert kwargs == {"use_reentrant": stage == 3}


PUBLIC = """model_name_or_path: Qwen/Qwen2.5-7B
dtype: bfloat16
dataset_name: trl-lib/Capybara
learning_rate: 2.0e-4
packing: true
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
use_peft: true
lora_r: 32
lora_alpha: 16
lora_target_modules: [q_proj, v_proj]
"""


def test_a_file_alone_is_read_with_what_trl_takes_where_it_is_silent() -> None:
    reading = read_texts({"a.yaml": PUBLIC}, None, "a.yaml")
    assert reading.target == "trl"
    assert reading.layout["recompute"] == "full"
    assert (reading.layout["micro_batch"], reading.layout["grad_accum"]) == (2, 8)
    assert reading.training["seq_len"] == 1024
    assert reading.training["precision"] == "bf16"
    assert reading.training["lora"] == {
        "rank": 32,
        "targets": ["q_proj", "v_proj"],
        "dropout": 0.05,
        "precision": "fp32",
    }
    assert reading.stack == {"loss": "chunked", "accumulation": "no_sync"}
    assert reading.unknown == ()
    assert import_spec(reading, UserOverrides(cluster="rtx-4090-1"), ())["model"] == (
        "qwen2.5-7b"
    )


def test_whole_weights_are_loaded_in_fp32_unless_told() -> None:
    kept = [x for x in PUBLIC.splitlines() if not x.startswith(("dtype", "use_peft"))]
    assert read({"a.yaml": "\n".join(kept)}).stack["name"] == "hf-amp"


def test_frozen_weights_in_fp32_are_refused() -> None:
    """TRL's default costs twice the memory that is priced."""
    text = PUBLIC.replace("dtype: bfloat16\n", "")
    with pytest.raises(BadInputError, match=r"a\.yaml: dtype: .*bfloat16"):
        read({"a.yaml": text})


def test_adapters_of_a_file_that_names_none_are_those_of_peft() -> None:
    kept = [x for x in PUBLIC.splitlines() if "target_modules" not in x]
    reading = read({"a.yaml": "\n".join(kept)})
    lora: Any = reading.training["lora"]
    assert lora["targets"] == ["q_proj", "v_proj"]
    assert reading.unknown == ()


def test_batches_that_are_not_packed_are_padded_to_their_longest() -> None:
    text = PUBLIC.replace("packing: true", "packing: false")
    assert read({"a.yaml": text}).training["padding"] == "longest"
    assert read({"a.yaml": PUBLIC}).training["padding"] == "packed"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("lora_target_parameters: [experts]", "lora_target_parameters"),
        ("lora_rank: 8", "lora_rank: no argument"),
        ("attn_implementation: flex_attention", "is not priced"),
        ("loss_type: dft", "loss_type"),
    ],
)
def test_what_changes_the_price_and_is_not_read_is_told(line: str, told: str) -> None:
    (said,) = read({"a.yaml": PUBLIC + line + "\n"}).unknown
    assert told in str(said)


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("per_device_train_batch_size: many", "per_device_train_batch_size"),
        ("lora_r: 0", "lora_r"),
        ("lora_dropout: 2", "lora_dropout"),
        ("max_length: -1", "max_length"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_file_and_field(
    line: str, field: str
) -> None:
    name = line.partition(":")[0]
    kept = [x for x in PUBLIC.splitlines() if not x.startswith(f"{name}:")]
    with pytest.raises(BadInputError, match=rf"a\.yaml.*{field}"):
        read({"a.yaml": "\n".join([*kept, line])})


def test_quantised_weights_without_adapters_are_refused() -> None:
    text = PUBLIC.replace("use_peft: true", "load_in_4bit: true")
    with pytest.raises(BadInputError, match="only beside adapters"):
        read({"a.yaml": text})


@pytest.mark.parametrize("other", ["base_model: x", "finetuning_type: lora"])
def test_files_of_others_are_not_trls(other: str) -> None:
    assert not reads({"a.yaml": PUBLIC + other})
    with pytest.raises(BadInputError, match="trl sft"):
        read({"a.yaml": PUBLIC + other})


@pytest.mark.parametrize(
    ("gpus", "layout", "training"),
    [
        (2, {"zero_stage": 3}, {"reference": "copy"}),
        (1, {}, WIDE | {"reference": "adapters"}),
        (1, {}, {"reference": "precomputed"}),
    ],
)
def test_pairs_are_those_of_trl_dpo(
    gpus: int, layout: dict[str, Any], training: dict[str, Any], tmp_path: Path
) -> None:
    two = layout | {"micro_batch": 2}
    found = filed(plan_of(gpus, two, training=training, stack=CHUNKED), tmp_path)
    assert "trl dpo --config train.yaml" in "".join(files_of(found).values())
    its = train(found)
    assert its["per_device_train_batch_size"] == 1
    assert its["precompute_ref_log_probs"] is (training["reference"] == "precomputed")
    assert "packing" not in its
    reading = read_texts(files_of(found), "trl", "the folder")
    assert reading.training["reference"] == training["reference"]
    assert reading.layout["micro_batch"] == 2
    assert reading.unknown == ()


@pytest.mark.parametrize("target", ["accelerate", "llamafactory", "axolotl"])
def test_no_other_target_has_pairs(target: str, tmp_path: Path) -> None:
    plan = plan_of(1, {"micro_batch": 2}, training={"reference": "copy"}, stack=CHUNKED)
    with pytest.raises(UnsupportedPlanError, match="no pairs with a reference"):
        emit(filed(plan, tmp_path), target)
