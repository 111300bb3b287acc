"""torchtune's YAML reads back as its plan, and what it has no words for is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from accelerate_plans import MODEL, drawn_plans, filed, jobs, plan_of
from hypothesis import given
from hypothesis import strategies as st
from target_gaps import torchtune as gaps
from typer.testing import CliRunner

from planner.cli.app import app
from planner.errors import BadInputError, UnsupportedPlanError
from planner.frameworks.accelerate.torchtune.known import family_of
from planner.launch import emit
from planner.launch.emit import CHECK, PLAN, README
from planner.launch.importing import UserOverrides, import_spec, read_texts
from planner.launch.read_plan import PlanFile
from planner.launch.targets.torchtune.reader import read, reads
from planner.launch.targets.torchtune.references import resolved
from planner.launch.targets.torchtune.words import presets
from planner.models import preset_names
from planner.planning.prediction.predict import complete
from planner.specs.layouts.layout import Offload, PartialLayout

COUNT = 5
PURE = {"name": "hf-bf16"}
LORA: dict[str, Any] = {"method": "lora", "lora": {"rank": 4}}
QLORA: dict[str, Any] = {"method": "qlora", "lora": {"rank": 4, "targets": "all"}}
WIDE: dict[str, Any] = {"method": "lora", "lora": {"rank": 4, "precision": "fp32"}}


def files_of(found: PlanFile) -> dict[str, str]:
    """Files that `planner import` sees of the folder."""
    every = {file.name: file.text for file in emit(found, "torchtune")}
    return {n: t for n, t in every.items() if n not in (PLAN, README, CHECK)}


def train(found: PlanFile) -> dict[str, Any]:
    given: dict[str, Any] = yaml.safe_load(files_of(found)["train.yaml"])
    return given


@pytest.fixture(scope="module", params=jobs("torchtune"), ids=lambda path: path.name)
def plans(request: pytest.FixtureRequest) -> list[PlanFile]:
    folder: Path = request.param
    return drawn_plans(folder, COUNT, gaps=gaps)


def test_layouts_read_back_as_they_were_written(plans: list[PlanFile]) -> None:
    assert plans
    for plan in plans:
        reading = read_texts(files_of(plan), None, "the folder")
        assert reading.target == "torchtune"
        partial = PartialLayout.model_validate(reading.layout_on(plan.brief.cluster))
        fresh = replace(plan.pricing, offload=Offload())
        assert complete(fresh, partial) == plan.plan.layout
        assert reading.unknown == ()


@pytest.mark.parametrize(
    ("gpus", "layout", "spec"),
    [
        (1, {}, {}),
        (1, {"recompute": "full"}, {"training": LORA}),
        (1, {}, {"training": {"method": "lora", "lora": {"targets": ["q_proj"]}}}),
        (1, {}, {"training": QLORA}),
        (1, {}, {"training": {"optimizer": "paged-adamw-8bit"}}),
        (1, {}, {"training": {"optimizer": "sgd-momentum"}}),
        (1, {}, {"stack": PURE | {"loss": "chunked_logits"}}),
        (2, {"zero_stage": 2}, {}),
        (4, {"zero_stage": 3, "recompute": "full"}, {}),
    ],
)
def test_the_training_block_and_the_stack_read_back(
    gpus: int, layout: dict[str, Any], spec: dict[str, Any], tmp_path: Path
) -> None:
    spec = {"stack": PURE} | spec
    found = filed(plan_of(gpus, layout, **spec), tmp_path)
    reading, its = read(files_of(found)), found.pricing.training
    assert reading.training["seq_len"] == its.seq_len
    assert reading.training["precision"] == its.precision
    assert reading.training["optimizer"] == its.optimizer
    assert reading.training.get("method", "full") == its.method
    lora: Any = reading.training.get("lora", {})
    assert lora.get("rank", its.lora.rank) == its.lora.rank
    assert reading.training.get("quantization") == its.weight_format
    assert reading.stack == spec["stack"]
    assert reading.layout["recompute"] == layout.get("recompute", "none")
    assert reading.unknown == ()


@pytest.mark.parametrize(
    ("gpus", "layout", "spec", "field"),
    [
        (1, {}, {"stack": {}}, "spec.stack"),
        (1, {}, {"stack": PURE | {"loss": "liger"}}, "spec.stack.loss"),
        (1, {}, {"stack": PURE | {"loss": "chunked"}}, "spec.stack.loss"),
        (1, {}, {"stack": PURE | {"loss": "chunked_head"}}, "spec.stack.loss"),
        (
            1,
            {},
            {"stack": PURE | {"attention": "flash_attention_2"}},
            "spec.stack.attention",
        ),
        (1, {}, {"training": {"precision": "fp16"}}, "spec.training.precision"),
        (1, {}, {"training": {"optimizer": "adafactor"}}, "spec.training.optimizer"),
        (1, {}, {"training": WIDE}, "spec.training.lora.precision"),
        (
            1,
            {},
            {"training": QLORA | {"quantization": "int8"}},
            "spec.training.quantization",
        ),
        (
            1,
            {},
            {"training": {"method": "lora", "lora": {"targets": ["gate_proj"]}}},
            "spec.training.lora.targets",
        ),
        (2, {"zero_stage": 3}, {"training": LORA}, "layout.zero_stage"),
        (2, {"zero_stage": 0}, {}, "layout.zero_stage"),
        (4, {"zero_stage": 3, "dp_shard": 2}, {}, "layout.dp_shard"),
        (2, {"tp": 2}, {}, "layout.tp"),
    ],
)
def test_what_it_would_train_otherwise_is_refused(
    gpus: int, layout: dict[str, Any], spec: dict[str, Any], field: str, tmp_path: Path
) -> None:
    found = filed(plan_of(gpus, layout, **{"stack": PURE} | spec), tmp_path)
    assert field in {gap.field for gap in gaps(found.brief)}
    with pytest.raises(UnsupportedPlanError, match=field):
        emit(found, "torchtune")


LLAMA_31 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


@pytest.mark.parametrize(
    ("fields", "builder"),
    [
        ({}, "llama2"),
        ({"rope_theta": 500000.0}, "llama3"),
        ({"rope_scaling": LLAMA_31}, "llama3_1"),
        ({"rope_scaling": LLAMA_31, "tie_word_embeddings": True}, "llama3_2"),
        ({"tie_word_embeddings": True}, None),
        ({"rope_scaling": LLAMA_31 | {"high_freq_factor": 2.0}}, None),
        ({"rope_scaling": {"rope_type": "yarn"}}, None),
        ({"attention_bias": True}, None),
        ({"head_dim": 32}, None),
        ({"model_type": "mistral"}, "mistral"),
        ({"model_type": "mistral", "sliding_window": 32}, None),
        ({"model_type": "qwen2", "tie_word_embeddings": True}, "qwen2"),
        ({"model_type": "gemma"}, None),
    ],
)
def test_a_model_has_the_builder_that_makes_its_layers(
    fields: dict[str, Any], builder: str | None
) -> None:
    family = family_of(MODEL | fields)
    assert (family.builder if family else None) == builder


def test_every_preset_of_a_builder_is_one_of_ours() -> None:
    assert set(presets().values()) <= set(preset_names())


def test_ranks_start_the_recipe_that_has_shards(tmp_path: Path) -> None:
    alone = files_of(filed(plan_of(1, {}, stack=PURE), tmp_path))["launch.sh"]
    assert "tune run full_finetune_single_device" in alone
    tuned = filed(plan_of(1, {}, stack=PURE, training=LORA), tmp_path)
    assert "tune run lora_finetune_single_device" in files_of(tuned)["launch.sh"]
    two = filed(plan_of(2, {"zero_stage": 3}, stack=PURE), tmp_path)
    assert "full_finetune_distributed" in files_of(two)["launch.sh"]
    assert train(two)["custom_sharded_layers"] == ["tok_embeddings", "output"]


PUBLIC = """output_dir: /tmp/torchtune/llama3_1_8B/lora_single_device
model:
  _component_: torchtune.models.llama3_1.lora_llama3_1_8b
  lora_attn_modules: ['q_proj', 'v_proj', 'output_proj']
  apply_lora_to_mlp: True
  apply_lora_to_output: False
  lora_rank: 8
  lora_alpha: 16
  lora_dropout: 0.0
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  path: /tmp/tokenizer.model
  max_seq_len: 2048
dataset:
  _component_: torchtune.datasets.alpaca_cleaned_dataset
  packed: True
seed: null
shuffle: True
batch_size: 2
optimizer:
  _component_: torch.optim.AdamW
  fused: True
loss:
  _component_: torchtune.modules.loss.CEWithChunkedOutputLoss
epochs: 1
gradient_accumulation_steps: 8
compile: False
device: cuda
dtype: bf16
enable_activation_checkpointing: True
enable_activation_offloading: False
"""
"""torchtune 0.6.1 recipes/configs/llama3_1/8B_lora_single_device.yaml, by its values;
the length and the packing are set."""
LAUNCH = "tune run lora_finetune_single_device --config a.yaml\n"


def test_a_public_file_is_read() -> None:
    reading = read_texts({"a.yaml": PUBLIC, "go.sh": LAUNCH}, None, "a.yaml")
    assert reading.target == "torchtune"
    assert reading.layout["zero_stage"] == 0
    assert reading.layout["recompute"] == "full"
    assert (reading.layout["micro_batch"], reading.layout["grad_accum"]) == (2, 8)
    its: Any = reading.training
    assert (its["seq_len"], its["optimizer"]) == (2048, "adamw")
    attention, mlp = ["q_proj", "v_proj", "o_proj"], ["down_proj", "gate_proj"]
    assert its["lora"]["targets"] == [*attention, *mlp, "up_proj"]
    assert reading.stack == PURE | {"loss": "chunked_logits"}
    assert reading.unknown == ()
    fields = import_spec(reading, UserOverrides(cluster="rtx-4090-1"), ())
    assert fields["model"] == "llama-3.1-8b"


@pytest.mark.parametrize(("on", "stage"), [("1xh100", 0), ("8xh100", 3)])
def test_the_recipe_of_a_file_alone_follows_from_the_ranks(
    on: str, stage: int, tmp_path: Path
) -> None:
    """torchtune has recipes for one GPU, and others that shard; none copies states."""
    file, out = tmp_path / "a.yaml", tmp_path / "job.yaml"
    file.write_text(PUBLIC)
    words = ["import", str(file), "--out", str(out)]
    alone = CliRunner().invoke(app, words)
    assert alone.exit_code == 2
    assert "recipe: is named by no file" in alone.output
    assert "the number of ranks" in alone.output
    assert CliRunner().invoke(app, [*words, "--on", on]).exit_code == 0
    assert yaml.safe_load(out.read_text())["layout"]["zero_stage"] == stage


def test_what_only_recipes_with_shards_have_says_the_recipe() -> None:
    other = LAUNCH.replace("single_device", "distributed")
    assert read({"a.yaml": PUBLIC, "go.sh": other}).layout["zero_stage"] == 3
    sharded = PUBLIC + "fsdp_reshard_after_forward: False\n"
    assert read({"a.yaml": sharded}).layout["zero_stage"] == 2


def test_quantised_builders_and_memory_switches_are_read() -> None:
    text = PUBLIC.replace("lora_llama", "qlora_llama")
    its: Any = read({"a.yaml": text}).training
    assert (its["method"], its["quantization"]) == ("qlora", "nf4")
    moved = PUBLIC + "fsdp_cpu_offload: True\n"
    layout: Any = read({"a.yaml": moved}).layout
    assert layout["offload"]["optimizer"] == 1.0
    full = PUBLIC.replace("lora_llama", "llama") + "optimizer_in_bwd: True\n"
    full = full.replace("steps: 8", "steps: 1")
    assert read({"a.yaml": full}).training["optimizer_in_backward"] is True


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ac_mode: selective", "ac_mode selective"),
        ("learning_rate: 0.1", "no setting of a recipe of torchtune 0.6.1"),
        ("compile: True", "compile True"),
    ],
)
def test_what_changes_the_price_and_is_not_read_is_told(line: str, told: str) -> None:
    name = line.partition(":")[0]
    kept = [x for x in PUBLIC.splitlines() if not x.startswith(f"{name}:")]
    files = {"a.yaml": "\n".join([*kept, line]), "go.sh": LAUNCH}
    assert any(told in str(said) for said in read(files).unknown)


def test_a_component_that_the_command_changes_counts() -> None:
    """optimizer=X is optimizer._component_=X in torchtune."""
    command = LAUNCH.strip() + " optimizer=torch.optim.SGD model.lora_rank=16\n"
    its = read_texts({"a.yaml": PUBLIC, "go.sh": command}, None, "a.yaml").training
    assert its["optimizer"] == "sgd"
    assert its["lora"]["rank"] == 16  # type: ignore[index]


@pytest.mark.parametrize(
    ("component", "word"),
    [
        ("torch.nn.CrossEntropyLoss", "hf"),
        ("torchtune.modules.loss.CEWithChunkedOutputLoss", "chunked_logits"),
        ("torchtune.modules.loss.LinearCrossEntropyLoss", "chunked_head"),
    ],
)
def test_losses_of_both_releases_are_read(component: str, word: str) -> None:
    """CEWithChunkedOutputLoss is of 0.6.1, LinearCrossEntropyLoss of its main."""
    text = PUBLIC.replace("torchtune.modules.loss.CEWithChunkedOutputLoss", component)
    its = read({"a.yaml": text, "go.sh": LAUNCH})
    assert its.stack.get("loss", "hf") == word
    assert its.unknown == ()


def test_pieces_of_another_number_are_not_priced_as_eight() -> None:
    text = PUBLIC.replace("OutputLoss\n", "OutputLoss\n  num_output_chunks: 4\n")
    (told,) = read({"a.yaml": text, "go.sh": LAUNCH}).unknown
    assert told.setting == "loss.num_output_chunks 4"


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("batch_size: 2", "batch_size: many", "batch_size"),
        ("lora_rank: 8", "lora_rank: 0", "lora_rank"),
        ("lora_dropout: 0.0", "lora_dropout: 2", "lora_dropout"),
        ("max_seq_len: 2048", "max_seq_len: -1", "max_seq_len"),
        ("['q_proj', 'v_proj', 'output_proj']", "q_proj", "lora_attn_modules"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_file_and_field(
    old: str, new: str, field: str
) -> None:
    with pytest.raises(BadInputError, match=rf"a\.yaml: {field}"):
        read({"a.yaml": PUBLIC.replace(old, new)})


@pytest.mark.parametrize("text", ["", "model: llama", "model: {_component_: other.x}"])
def test_files_of_others_are_not_torchtunes(text: str) -> None:
    assert not reads({"a.yaml": text})
    with pytest.raises(BadInputError, match="torchtune"):
        read({"a.yaml": text})


@pytest.mark.parametrize(
    ("value", "read_as"),
    [
        ("${batch_size}", 2),
        ("${tokenizer.steps}", 4),
        ("${twice}", 2),
        ("${oc.env:STEPS}", None),
    ],
)
def test_a_reference_is_the_value_that_it_names(
    value: str, read_as: int | None
) -> None:
    """As OmegaConf has it: type and all, also through another reference."""
    text = PUBLIC.replace("_steps: 8", f"_steps: {value}\nname: ${{batch_size}}")
    text = text.replace("  max_seq_len", "  steps: 4\n  max_seq_len")
    text = text.replace("name:", "twice:")
    if read_as is None:
        with pytest.raises(BadInputError, match="gradient_accumulation_steps"):
            read_texts({"a.yaml": text, "go.sh": LAUNCH}, None, "a.yaml")
        return
    its = read_texts({"a.yaml": text, "go.sh": LAUNCH}, None, "a.yaml")
    assert its.layout["grad_accum"] == read_as


def test_a_reference_counts_what_the_command_changes() -> None:
    text = PUBLIC.replace("_steps: 8", "_steps: ${batch_size}")
    command = LAUNCH.strip() + " batch_size=3\n"
    its = read_texts({"a.yaml": text, "go.sh": command}, None, "a.yaml")
    assert (its.layout["micro_batch"], its.layout["grad_accum"]) == (3, 3)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("${batch_sze}", "names no setting of the file.*batch_size"),
        ("${gradient_accumulation_steps}", "names itself"),
        ("${seed.inner}", "names no setting"),
    ],
)
def test_a_reference_to_nothing_is_refused_with_its_line(value: str, says: str) -> None:
    text = PUBLIC.replace("_steps: 8", f"_steps: {value}")
    line = text[: text.index(value)].count("\n") + 1
    with pytest.raises(BadInputError, match=rf"a\.yaml:{line}: gradient_.*{says}"):
        read_texts({"a.yaml": text, "go.sh": LAUNCH}, None, "a.yaml")


@given(
    st.recursive(
        st.integers() | st.booleans() | st.text("ab$ {}", max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_any_value_by_its_name_is_the_value(value: object) -> None:
    given = {"x": {"y": value}, "z": "${x.y}", "w": {"v": "${..x.y}", "u": "${.v}"}}
    found = resolved(given, "a.yaml")
    assert found["z"] == value
    assert found["w"] == {"v": value, "u": value}
