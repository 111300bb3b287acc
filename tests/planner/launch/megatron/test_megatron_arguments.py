"""Arguments that are written are ones that Megatron-LM's own parser declares."""

from dataclasses import replace
from typing import Any

import pytest
from golden_folders import ROOT
from many_plans import jobs, many_plans
from target_gaps import megatron as gaps

from planner.frameworks.megatron.launch.known import VERSIONS, declared, given, parse
from planner.launch import read_plan
from planner.launch.brief import Brief
from planner.launch.targets.megatron.arguments import arguments, command_line
from planner.launch.targets.megatron.placed import USED
from planner.launch.targets.megatron.reader import OTHERS, SIZES, TRAINED
from planner.specs.layouts.layout import Layout

DENSE = ROOT / "megatron" / "llama-3.1-70b-32-h100" / "plan.json"


def brief() -> Brief:
    return read_plan(DENSE).brief


def with_layout(its: Brief, **fields: Any) -> Brief:
    data = its.layout.model_dump(by_alias=True) | fields
    return replace(its, layout=Layout.model_validate(data))


def with_training(its: Brief, **fields: Any) -> Brief:
    return replace(its, training=its.training.model_copy(update=fields))


def words_of(its: Brief) -> list[str]:
    return command_line(arguments(its))


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_many_plans_are_accepted_to_the_last_word(version: str) -> None:
    checked = 0
    for folder in jobs("megatron"):
        for plan in many_plans(folder, 12):
            if gaps(plan.brief):
                continue
            _, left = parse(words_of(plan.brief), version)
            assert left == []
            checked += 1
    assert checked > 60


def test_another_padding_of_the_vocabulary_is_written() -> None:
    its = brief()
    stack = {**its.spec.stack, "recipe": {"vocab_multiple": 1024}}
    padded = replace(its, spec=its.spec.model_copy(update={"stack": stack}))
    assert given(words_of(padded))["make_vocab_size_divisible_by"] == 1024
    assert "make_vocab_size_divisible_by" not in given(words_of(its))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_compiled_loss_is_written_where_a_job_names_it(version: str) -> None:
    its = brief()
    stack = {**its.spec.stack, "loss": "fused"}
    fused = replace(its, spec=its.spec.model_copy(update={"stack": stack}))
    words = words_of(fused)
    assert words[words.index("--cross-entropy-fusion-impl") + 1] == "native"
    assert parse(words, version)[1] == []
    assert "--cross-entropy-loss-fusion" not in words_of(its)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (["--tensor-model-parallel-size", "two"], "invalid int value: 'two'"),
        (["--optimizer", "adamw"], "invalid choice: 'adamw'"),
        (["--recompute-method", "blocks"], "invalid choice: 'blocks'"),
        (["--fp8-recipe", "current"], "invalid choice: 'current'"),
        (["--moe-token-dispatcher-type", "deepep"], "invalid choice: 'deepep'"),
        (["--micro-batch-size"], "expected one argument"),
        (["--lr", "fast"], "invalid float value: 'fast'"),
    ],
)
def test_wrong_values_are_refused(version: str, wrong: list[str], why: str) -> None:
    right = words_of(brief())
    assert parse(right, version)[1] == []
    with pytest.raises(ValueError, match=f"^argument {wrong[0]}: {why}"):
        parse([*right, *wrong], version)


@pytest.mark.parametrize("version", VERSIONS)
def test_unknown_options_are_left_over(version: str) -> None:
    words = [*words_of(brief()), "--tensor-parallel-size", "4"]
    assert parse(words, version)[1] == ["--tensor-parallel-size", "4"]


def test_every_argument_that_is_read_exists() -> None:
    dests = {one["dest"] for v in VERSIONS for one in declared(v).values()}
    assert (USED | TRAINED | OTHERS | set(SIZES)) <= dests


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"precision": "bf16"}, {"bf16": True}),
        ({"precision": "fp16"}, {"fp16": True}),
        (
            {"precision": "fp8"},
            {"bf16": True, "fp8": "hybrid", "fp8_recipe": "tensorwise"},
        ),
        ({"precision": "mxfp8"}, {"fp8": "hybrid", "fp8_recipe": "mxfp8"}),
        ({"precision": "nvfp4"}, {"fp4": "e2m1", "fp4_recipe": "nvfp4"}),
        ({"optimizer": "sgd"}, {"optimizer": "sgd", "sgd_momentum": 0.0}),
        ({"optimizer": "sgd-momentum"}, {"sgd_momentum": 0.9}),
        (
            {"state_bits": 16},
            {"exp_avg_dtype": "bf16", "use_precision_aware_optimizer": True},
        ),
    ],
)
def test_training_settings_have_their_words(
    fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = given(words_of(with_training(brief(), **fields)))
    assert expected.items() <= found.items()


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        ({"tp_overlap": True}, {"tp_comm_overlap": True}),
        ({"overlap_grad_reduce": True}, {"overlap_grad_reduce": True}),
    ],
)
def test_the_stack_has_its_words(
    stack: dict[str, Any], expected: dict[str, Any]
) -> None:
    its = replace(brief(), stack={**brief().stack, **stack})
    assert expected.items() <= given(words_of(its)).items()


@pytest.mark.parametrize(
    ("recipe", "word"),
    [("delayed", "delayed"), ("current", "tensorwise"), ("blockwise", "blockwise")],
)
def test_fp8_recipes_have_megatrons_names(recipe: str, word: str) -> None:
    its = replace(
        with_training(brief(), precision="fp8"),
        stack={**brief().stack, "fp8_recipe": recipe},
    )
    assert given(words_of(its))["fp8_recipe"] == word


def test_tokens_are_sent_once_to_a_node_by_deepep() -> None:
    its = read_plan(ROOT / "megatron" / "mixtral-8x7b-64-h100" / "plan.json").brief
    its = replace(its, stack={**its.stack, "expert_dispatch": "deduplicated"})
    found = given(words_of(its))
    sent = {
        "moe_token_dispatcher_type": "flex",
        "moe_flex_dispatcher_backend": "deepep",
    }
    assert sent.items() <= found.items()


def test_fp8_weights_are_gathered_as_they_are() -> None:
    its = with_training(brief(), precision="mxfp8")
    its = with_layout(its, comm_dtype={"parameters": "fp8", "gradients": "bf16"})
    found = given(words_of(its))
    assert found["fp8_param_gather"]
    assert found["grad_reduce_in_bf16"]
    assert found["reuse_grad_buf_for_mxfp8_param_ag"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("full", {"recompute_granularity": "full", "recompute_method": "uniform"}),
        ("selective", {"recompute_modules": ["core_attn"]}),
        ("layernorm+mlp", {"recompute_modules": ["layernorm", "mlp"]}),
    ],
)
def test_recompute_has_its_words(kind: str, expected: dict[str, Any]) -> None:
    its = with_layout(brief(), pp=1, vpp=1, stages=[stage(80, (80, kind))])
    assert expected.items() <= given(words_of(its)).items()


def stage(layers: int, *parts: tuple[int, str]) -> dict[str, Any]:
    """A stage of runs of (layers, kind)."""
    ranges, at = [], 0
    for count, kind in parts:
        ranges.append({"from": at, "to": at + count, "kind": kind})
        at += count
    return {"layers": layers, "recompute": ranges}


def test_the_first_layers_of_every_stage_are_a_block() -> None:
    stages = [stage(20, (3, "full"), (17, "none"))] * 4
    its = with_layout(brief(), pp=4, vpp=1, schedule="1f1b", stages=stages)
    assert gaps(its) == ()
    found = given(words_of(its))
    assert found["recompute_method"] == "block"
    assert found["recompute_num_layers"] == 3


def test_llama_3_1_scales_its_rotation() -> None:
    found = given(words_of(brief()))
    assert found["use_rope_scaling"]
    assert found["rope_scaling_factor"] == 8.0
    assert found["rotary_base"] == 500_000


def test_latent_attention_is_spelled_out() -> None:
    its = read_plan(ROOT / "megatron" / "deepseek-v3-2048-h800" / "plan.json").brief
    found = given(words_of(its))
    assert found["multi_latent_attention"]
    assert found["kv_lora_rank"] == 512
    assert found["rope_type"] == "yarn"
    assert found["moe_router_enable_expert_bias"]
    plain = replace(its, model={**its.model, "rope_scaling": None})
    assert given(words_of(plain))["rope_type"] == "rope"
    assert not given(words_of(plain))["apply_rope_fusion"]
