"""Hugging Face configs: what is read, what is ignored, what is refused and how."""

from collections.abc import Mapping
from typing import Any

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from planner.models import (
    FAMILIES,
    Attention,
    LatentAttention,
    Mlp,
    ModelConfigError,
    Moe,
    from_config,
    preset_names,
    read_preset,
)

GPT2: dict[str, Any] = {
    "model_type": "gpt2",
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 128,
    "vocab_size": 100,
}
LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "vocab_size": 100,
}
MIXTRAL: dict[str, Any] = LLAMA | {
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
}
DEEPSEEK = read_preset("deepseek-v3").config


def refusal(config: Mapping[str, Any]) -> str:
    """Message with which a config is refused."""
    with pytest.raises(ModelConfigError) as caught:
        from_config(config, source="here")
    return str(caught.value)


def _without(config: Mapping[str, Any], *fields: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in fields}


def test_every_family_has_a_preset() -> None:
    types = {read_preset(name).config["model_type"] for name in preset_names()}
    assert {family.family for family in FAMILIES} <= types


@each("name", preset_names())
def test_class_and_type_each_suffice_to_choose_the_family(name: str) -> None:
    config = read_preset(name).config
    by_class = from_config(_without(config, "model_type"), source="here", name=name)
    by_type = from_config(_without(config, "architectures"), source="here", name=name)
    assert by_class == by_type


def test_absent_kv_heads_and_head_dim_mean_multi_head() -> None:
    attention = from_config(LLAMA, source="here").kinds[0].attention
    assert attention == Attention(64, 8, 8, 8)


def test_head_dim_need_not_divide_the_hidden_size() -> None:
    model = from_config(LLAMA | {"num_attention_heads": 6, "head_dim": 16}, source="")
    assert model.kinds[0].attention == Attention(64, 6, 6, 16)


def test_llama_biases_are_read() -> None:
    config = LLAMA | {"attention_bias": True, "mlp_bias": True}
    layer = from_config(config, source="here").kinds[0]
    assert layer.attention == Attention(64, 8, 8, 8, qkv_bias=True, out_bias=True)
    assert layer.ffn == Mlp(64, 96, gated=True, bias=True)


def test_gpt2_inner_width_is_four_times_hidden_unless_given() -> None:
    assert from_config(GPT2, source="").kinds[0].ffn == Mlp(
        64, 256, gated=False, bias=True
    )
    given_width = from_config(GPT2 | {"n_inner": 80}, source="").kinds[0].ffn
    assert given_width == Mlp(64, 80, gated=False, bias=True)


def test_tied_embeddings_have_no_head() -> None:
    tied = from_config(LLAMA | {"tie_word_embeddings": True}, source="")
    free = from_config(LLAMA, source="")
    assert free.parameters - tied.parameters == 100 * 64
    assert free.matmul_parameters == tied.matmul_parameters


def test_mistral_window_is_read() -> None:
    assert preset_window("mistral-7b") == 4096
    assert preset_window("mixtral-8x7b") is None


def preset_window(name: str) -> int | None:
    """Sliding window of a preset's first layer kind."""
    model = from_config(read_preset(name).config, source="")
    return model.kinds[0].attention.window


def test_deepseek_without_query_rank_projects_directly() -> None:
    attention = from_config(DEEPSEEK | {"q_lora_rank": None}, source="").kinds[0]
    assert isinstance(attention.attention, LatentAttention)
    assert "q" in [gemm.name for gemm in attention.gemms()]


def test_deepseek_every_second_layer_of_experts() -> None:
    """moe_layer_freq 2 after one dense layer alternates, in runs of one."""
    config = DEEPSEEK | {"moe_layer_freq": 2, "first_k_dense_replace": 1}
    model = from_config(config | {"num_hidden_layers": 5}, source="")
    assert [(k.name, n) for k, n in model.runs] == [
        ("dense", 2),
        ("moe", 1),
        ("dense", 1),
        ("moe", 1),
    ]
    assert model.layers == 5
    assert len(model.kinds) == 2


@pytest.mark.parametrize(
    ("change", "groups"),
    [
        ({}, (8, 4)),
        ({"n_group": None}, (1, 1)),
        ({"topk_method": "greedy"}, (1, 1)),
        ({"n_group": 16, "topk_group": 2}, (16, 2)),
    ],
)
def test_deepseek_routes_to_some_groups_of_experts(
    change: dict[str, Any], groups: tuple[int, int]
) -> None:
    ffn = from_config(DEEPSEEK | change, source="").kinds[-1].ffn
    assert isinstance(ffn, Moe)
    assert (ffn.groups, ffn.top_groups) == groups


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_group": 7}, "n_routed_experts 256 is not a multiple of n_group 7"),
        ({"topk_group": 9}, "topk_group 9 is more than n_group 8"),
        (
            {"n_group": 64, "topk_group": 1},
            "num_experts_per_tok 8 is more than the 4 experts in 1 of 64 groups",
        ),
    ],
)
def test_groups_of_experts_hold_what_a_token_needs(
    change: dict[str, Any], words: str
) -> None:
    with pytest.raises(ModelConfigError, match=words):
        from_config(DEEPSEEK | change, source="")


def test_router_bias_is_deepseek_v3s_alone() -> None:
    biases = {}
    for name in ("deepseek-v2", "deepseek-v3"):
        ffn = from_config(read_preset(name).config, source="").kinds[1].ffn
        assert isinstance(ffn, Moe)
        biases[name] = ffn.router_bias
    assert biases == {"deepseek-v2": False, "deepseek-v3": True}


def test_model_type_of_a_derived_model_is_accepted() -> None:
    """Kimi K2 declares DeepSeek-V3's class and a model_type of its own."""
    model = from_config(DEEPSEEK | {"model_type": "kimi_k2"}, source="")
    assert model.family == "deepseek_v3"


@pytest.mark.parametrize(
    ("name", "foreign"),
    [
        (
            "gpt2",
            (
                "attn_pdrop embd_pdrop n_ctx initializer_range "
                "reorder_and_upcast_attn scale_attn_weights summary_type use_cache"
            ),
        ),
        (
            "llama-3.1-8b",
            (
                "attention_dropout initializer_range pretraining_tp "
                "bos_token_id eos_token_id torch_dtype use_cache"
            ),
        ),
        (
            "mixtral-8x7b",
            "output_router_logits router_aux_loss_coef router_jitter_noise",
        ),
        (
            "deepseek-v2",
            (
                "aux_loss_alpha ep_size norm_topk_prob num_key_value_heads "
                "qk_head_dim head_dim scoring_func topk_method"
            ),
        ),
    ],
)
def test_foreign_keys_of_real_configs_are_ignored(name: str, foreign: str) -> None:
    """They are neither read nor taken for misspelt fields."""
    config = read_preset(name).config
    extended = config | dict.fromkeys(foreign.split(), "anything")
    assert from_config(extended, source="") == from_config(config, source="")


def test_name_is_the_given_one_then_the_configs() -> None:
    named = LLAMA | {"_name_or_path": "org/small"}
    assert from_config(named, source="").name == "org/small"
    assert from_config(named, source="", name="mine").name == "mine"
    assert from_config(LLAMA, source="").name == "llama"


# --- refusals ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rope_theta", "5e5"),
        ("rope_theta", 0),
        ("rms_norm_eps", float("nan")),
        ("rope_scaling", "yarn"),
        ("rope_scaling", {"rope_type": "llama3", "factor": [8]}),
        ("rope_parameters", {"rope_theta": "many"}),
    ],
)
def test_numbers_that_launch_files_repeat_are_checked(field: str, value: Any) -> None:
    assert field in refusal(LLAMA | {field: value})
    assert from_config(LLAMA | {field: None}, source="") == from_config(
        LLAMA, source=""
    )


def test_unsupported_class_names_the_nearest_and_what_describes_it() -> None:
    message = refusal(LLAMA | {"architectures": ["LLamaForCausalLM2"]})
    assert "'LLamaForCausalLM2' is not supported; nearest: LlamaForCausalLM" in message
    assert "model_type: llama and hidden_size, intermediate_size" in message
    assert message.startswith("here: ")


def test_class_that_shares_only_its_ending_has_no_nearest() -> None:
    """RwkvForCausalLM is near none of the others; Llama's fields are shown."""
    message = refusal(LLAMA | {"architectures": ["RwkvForCausalLM"]})
    assert "nearest" not in message
    assert "model_type: llama" in message


def test_unsupported_type_lists_the_supported_ones() -> None:
    message = refusal(_without(LLAMA, "architectures") | {"model_type": "mamba"})
    assert "'mamba' is not supported" in message
    assert all(family.family in message for family in FAMILIES)


def test_neither_class_nor_type() -> None:
    message = refusal(_without(LLAMA, "architectures", "model_type"))
    assert "neither architectures nor model_type" in message


def test_a_name_in_a_block_is_told_how_it_is_given() -> None:
    assert "stands alone, as model: qwen3-32b" in refusal({"preset": "qwen3-32b"})


def test_class_and_type_contradict() -> None:
    message = refusal(LLAMA | {"model_type": "gpt2"})
    assert "'LlamaForCausalLM' contradicts model_type 'gpt2'" in message


@pytest.mark.parametrize("value", ["LlamaForCausalLM", [], [3]])
def test_architectures_has_to_be_a_list_of_names(value: object) -> None:
    assert f"architectures is {value!r}" in refusal(LLAMA | {"architectures": value})


def test_model_type_has_to_be_text() -> None:
    assert "model_type is 3" in refusal(LLAMA | {"model_type": 3})


def test_missing_field() -> None:
    message = refusal(_without(LLAMA, "num_hidden_layers"))
    assert message == "here: num_hidden_layers is missing; a llama config needs it"


def test_misspelt_required_field() -> None:
    config = _without(LLAMA, "hidden_size") | {"hiden_size": 64}
    assert "'hiden_size' is not a field" in refusal(config)
    assert "did you mean 'hidden_size'?" in refusal(config)


def test_misspelt_optional_field_is_not_silently_multi_head() -> None:
    message = refusal(LLAMA | {"num_key_value_head": 2})
    assert "did you mean 'num_key_value_heads'?" in message


def test_field_under_a_likely_other_name() -> None:
    config = _without(LLAMA, "num_hidden_layers") | {"hidden_layers": 3}
    assert "did 'hidden_layers' mean it?" in refusal(config)


@pytest.mark.parametrize("value", [0, -4, "64", True, 64.5, None])
def test_sizes_are_positive_integers(value: object) -> None:
    message = refusal(LLAMA | {"hidden_size": value})
    assert f"hidden_size is {value!r}: Input should be" in message


def test_every_wrong_field_is_named_at_once() -> None:
    message = refusal(LLAMA | {"hidden_size": 0, "vocab_size": "many"})
    assert "hidden_size is 0" in message
    assert "vocab_size is 'many'" in message


def test_hidden_size_without_head_dim_is_a_multiple_of_heads() -> None:
    message = refusal(LLAMA | {"hidden_size": 65})
    assert "hidden_size 65 is not a multiple of num_attention_heads 8" in message
    assert "give head_dim" in message


def test_gpt_width_is_a_multiple_of_heads() -> None:
    message = refusal(GPT2 | {"n_head": 5})
    assert message == "here: n_embd 64 is not a multiple of n_head 5"


def test_heads_are_a_multiple_of_kv_heads() -> None:
    message = refusal(LLAMA | {"num_key_value_heads": 3})
    assert "num_attention_heads 8 is not a multiple of num_key_value_heads 3" in message


def test_mistral_has_to_say_its_window() -> None:
    config = LLAMA | {"architectures": ["MistralForCausalLM"], "model_type": "mistral"}
    assert "sliding_window is missing" in refusal(config)


def test_no_more_experts_a_token_than_experts() -> None:
    message = refusal(MIXTRAL | {"num_experts_per_tok": 5})
    assert "num_experts_per_tok 5 is more than num_local_experts 4" in message


def test_deepseek_top_k_is_bounded_by_its_experts() -> None:
    message = refusal(DEEPSEEK | {"num_experts_per_tok": 257})
    assert "num_experts_per_tok 257 is more than n_routed_experts 256" in message


def test_no_more_dense_layers_than_layers() -> None:
    message = refusal(DEEPSEEK | {"first_k_dense_replace": 62})
    assert "first_k_dense_replace 62 is more than num_hidden_layers 61" in message


def test_latent_attention_with_biases_is_refused_not_ignored() -> None:
    assert "attention_bias is True" in refusal(DEEPSEEK | {"attention_bias": True})


def _outcome(config: Mapping[str, Any]) -> str:
    try:
        return from_config(config, source="here").name
    except ModelConfigError as error:
        return str(error)


@given(st.dictionaries(st.sampled_from(sorted(LLAMA)), st.none() | st.integers()))
def test_whatever_a_field_holds_the_answer_is_a_model_or_a_config_error(
    wrong: dict[str, object],
) -> None:
    outcome = _outcome(LLAMA | wrong)
    assert outcome == "llama" or outcome.startswith("here: ")
