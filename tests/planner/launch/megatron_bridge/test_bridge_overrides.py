"""Overrides of Megatron-Bridge name fields that are there, and read back."""

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from golden_folders import ROOT, emitted
from many_plans import jobs, many_plans
from target_gaps import megatron_bridge as gaps

from planner.errors import BadInputError
from planner.frameworks.megatron.bridge.known import fields
from planner.frameworks.megatron.launch.known import declared
from planner.launch import emit, read_plan
from planner.launch.brief import Brief
from planner.launch.emit import CHECK, PLAN, README
from planner.launch.read_plan import PlanFile
from planner.launch.targets.megatron_bridge.paths import paths, unknown_fields
from planner.launch.targets.megatron_bridge.reader import read, reads
from planner.launch.targets.megatron_bridge.writer import overrides
from planner.planning.prediction.predict import complete
from planner.specs.layouts.layout import PartialLayout

LORA = ROOT / "megatron-bridge" / "llama-3.1-8b-lora-8-a100" / "plan.json"


def files_of(found: PlanFile) -> dict[str, str]:
    every = {file.name: file.text for file in emit(found, "megatron-bridge")}
    return {n: t for n, t in every.items() if n not in (PLAN, README, CHECK)}


def expressible(folder: Path) -> list[PlanFile]:
    return [p for p in many_plans(folder, 12) if not gaps(p.brief)]


def lora(**changes: Any) -> Brief:
    its = read_plan(LORA).brief
    adapters = its.training.lora.model_copy(update=changes)
    return replace(its, training=its.training.model_copy(update={"lora": adapters}))


def test_every_path_is_a_field() -> None:
    blocks = fields().blocks
    for every in paths().paths.values():
        for path in every:
            block, _, name = path.partition(".")
            assert name in blocks[block], path


def test_many_plans_name_known_fields_alone() -> None:
    every = [plan for job in jobs("megatron") for plan in expressible(job)]
    assert len(every) > 60
    for plan in every:
        assert unknown_fields(overrides(plan.brief)) == ()


@pytest.mark.parametrize("folder", jobs("megatron-bridge"), ids=lambda path: path.name)
def test_layouts_read_back_as_they_were_written(folder: Path) -> None:
    found = expressible(folder)
    assert len(found) >= 4
    for plan in found:
        files = files_of(plan)
        reading = read(files)
        partial = PartialLayout.model_validate(reading.layout_on(plan.brief.cluster))
        assert complete(plan.pricing, partial) == plan.plan.layout
        assert reading.unknown == ()
        assert reads(files)


def test_adapters_read_back() -> None:
    found = read_plan(LORA)
    reading = read(files_of(found))
    assert reading.training["method"] == "lora"
    assert reading.training["lora"] == {
        "rank": 16,
        "targets": ["qkv", "proj", "fc1", "fc2"],
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"targets": "all-linear"}, "these layers"),
        ({"targets": ("q_proj",)}, "these layers"),
        ({"modules_to_save": ("lm_head",)}, "beside adapters"),
        ({"precision": "fp32"}, "this format"),
        ({"dora": True}, "magnitudes"),
        ({"rslora": True}, "alpha over the rank"),
        ({"loraplus_lr_ratio": 16.0}, "one rate"),
    ],
)
def test_adapters_that_have_no_words(changes: dict[str, Any], words: str) -> None:
    found = gaps(lora(**changes))
    (gap,) = found
    assert gap.field.startswith("spec.training.lora")
    assert words in gap.feature


def test_a_model_without_a_bridge_is_refused() -> None:
    mixtral = read_plan(ROOT / "megatron" / "mixtral-8x7b-64-h100" / "plan.json")
    assert [gap.field for gap in gaps(mixtral.brief)] == ["spec.model"]


def test_a_key_that_is_skipped_is_reported() -> None:
    files = files_of(read_plan(LORA))
    body = yaml.safe_load(files["overrides.yaml"])
    body["model"]["tensor_parallel"] = 2
    reading = read({"overrides.yaml": yaml.safe_dump(body)})
    (told,) = reading.unknown
    assert str(told) == "model.tensor_parallel: not in ConfigContainer"


def test_scripts_are_python() -> None:
    for folder in jobs("megatron-bridge"):
        ast.parse(emitted("megatron-bridge", folder.name)["train.py"])


def test_sequences_are_packed_to_the_plans_length() -> None:
    its = read_plan(LORA).brief
    specs = overrides(its)["dataset"]["offline_packing_specs"]
    assert specs == {
        "packed_sequence_size": its.training.seq_len,
        "pad_seq_to_mult": 1,
    }
    layout = its.layout.model_copy(update={"micro_batch": 2})
    assert [gap.field for gap in gaps(replace(its, layout=layout))] == [
        "layout.micro_batch"
    ]


def test_stages_that_are_lists_of_layers_are_read() -> None:
    stages = [["embedding", "decoder"], ["decoder", "decoder"], ["decoder", "loss"]]
    its = {
        "tensor_model_parallel_size": 1,
        "pipeline_model_parallel_size": 3,
        "pipeline_model_parallel_layout": stages,
    }
    layout = read({"run_config.yaml": yaml.safe_dump({"model": its})}).layout
    assert layout["pp"] == 3
    assert [stage["layers"] for stage in layout["stages"]] == [1, 2, 1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", ["many", [4], -2, 0])
def test_a_degree_that_is_none_is_refused_with_its_name(value: object) -> None:
    its = {"model": {"tensor_model_parallel_size": value, "num_layers": 4}}
    with pytest.raises(BadInputError, match="tensor-model-parallel-size"):
        read({"run_config.yaml": yaml.safe_dump(its)})


def test_a_saved_configuration_is_read_as_far_as_it_is_plain() -> None:
    """Objects that were saved by their calls are reported, formats by their names."""
    its = {
        "model": {"tensor_model_parallel_size": 2, "num_layers": 4},
        "optimizer": {
            "exp_avg_dtype": "torch.bfloat16",
            "optimizer": {"_target_": "somewhere.Adam"},
        },
    }
    reading = read({"run_config.yaml": yaml.safe_dump(its)})
    assert (reading.layout["tp"], reading.training["state_bits"]) == (2, 16)
    (word,) = reading.unknown
    assert str(word).startswith("optimizer.optimizer {'_target_'")


SWITCHES = [
    path
    for option, every in paths().paths.items()
    for path in every
    if declared()[option]["nargs"] == 0
]


def overriding(path: str, value: object) -> dict[str, str]:
    """A file of overrides with one more field."""
    block, _, name = path.partition(".")
    its: dict[str, dict[str, object]] = {"model": {"tensor_model_parallel_size": 1}}
    its.setdefault(block, {})[name] = value
    return {"overrides.yaml": yaml.safe_dump(its)}


@pytest.mark.parametrize("path", [*SWITCHES, "ddp.grad_reduce_in_fp32"])
@pytest.mark.parametrize("value", [[], {}, "false", "maybe", 1, 0])
def test_a_switch_is_true_or_false(path: str, value: object) -> None:
    """An empty list and the text false were true."""
    with pytest.raises(BadInputError) as refused:
        read(overriding(path, value))
    assert refused.value.field == path
    for right in (True, False, None):
        read(overriding(path, right))


def test_two_lengths_of_sequences_are_refused() -> None:
    """Megatron-Bridge does so, too: validate() of ConfigContainer."""
    both = overriding("model.seq_length", 4096)["overrides.yaml"]
    assert read({"a.yaml": both}).training["seq_len"] == 4096
    for name in ("seq_length", "sequence_length"):
        with pytest.raises(BadInputError, match=r"is not (dataset|model)\.seq_length"):
            read({"a.yaml": both + f"dataset: {{{name}: 8192}}\n"})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model.fine_grained_activation_offloading", True),
        ("model.moe_expert_capacity_factor", 1.25),
        ("model.moe_shared_expert_overlap", True),
        ("ddp.use_megatron_fsdp", True),
        ("model.cpu_offloading", True),
        ("model.fp8", "hybrid"),
        ("model.hidden_dropout", 0.1),
        ("model.gradient_accumulation_fusion", False),
        ("optimizer.main_grads_dtype", "torch.bfloat16"),
        ("train.rampup_batch_size", [16, 16, 1000]),
        ("comm_overlap.tp_comm_overlap", True),
        ("comm_overlap.delay_wgrad_compute", True),
        ("mixed_precision.first_last_layers_bf16", True),
    ],
)
def test_a_field_that_is_not_priced_is_refused(path: str, value: object) -> None:
    """As the argument of Megatron-LM that has its name; it was harmless."""
    told = read(overriding(path, value))
    assert [its.name for its in told.unknown] == [path]
    assert path not in told.ignored
    assert read(overriding(path, None)).unknown == ()


@pytest.mark.parametrize(
    ("block", "word"),
    [
        ("peft", "lora"),
        ("mixed_precision", "foo"),
        ("mixed_precision", "bf16_with_fp8_mixed"),
    ],
)
def test_a_word_that_names_no_known_block_is_refused(block: str, word: str) -> None:
    its = yaml.safe_dump({"model": {"tensor_model_parallel_size": 2}, block: word})
    assert [its.name for its in read({"a.yaml": its}).unknown] == [block]


def test_a_field_of_no_price_is_set_aside() -> None:
    told = read(overriding("model.init_method_std", 0.01))
    assert (told.unknown, told.ignored) == ((), ("model.init_method_std",))
