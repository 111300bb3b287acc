"""What sets the families apart, read from their presets and from small configs."""

from dataclasses import replace
from typing import Any

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from planner.models import (
    FAMILIES,
    Attention,
    Mlp,
    ModelConfigError,
    Moe,
    from_config,
    preset,
    preset_names,
    read_preset,
)

BASE: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "vocab_size": 100,
}
PRUNED: dict[str, Any] = {
    **BASE,
    "model_type": "nemotron-nas",
    "intermediate_size": None,
    "block_configs": [{"attention": {"n_heads_in_group": 2}, "ffn": {"ffn_mult": 2.0}}]
    * 4,
}


def runs(name: str) -> list[tuple[str, int]]:
    """Names and lengths of a preset's runs."""
    return [(kind.name, count) for kind, count in preset(name).runs]


def windows(name: str) -> list[int | None]:
    """Window of every layer of a preset."""
    return [kind.attention.window for kind, n in preset(name).runs for _ in range(n)]


def refusal(config: dict[str, Any]) -> str:
    """Message with which a config is refused."""
    with pytest.raises(ModelConfigError) as caught:
        from_config(config, source="here")
    return str(caught.value)


def test_there_are_sixty_presets_over_twenty_five_architectures() -> None:
    assert len(preset_names()) >= 60
    assert len({preset(name).family for name in preset_names()}) >= 25
    assert len(FAMILIES) >= 25


@each("name", preset_names())
def test_heads_of_a_preset_divide_into_groups(name: str) -> None:
    """Kinds have names of their own and work to do, and groups divide the heads."""
    names = [kind.name for kind in preset(name).kinds]
    assert len(set(names)) == len(names)
    for kind in preset(name).kinds:
        assert kind.gemms()
        groups = getattr(kind.attention, "kv_heads", kind.attention.heads)
        assert kind.attention.heads % groups == 0


# --- windows ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "period", "window"),
    [("gemma-2-27b", 2, 4096), ("gemma-3-27b", 6, 1024), ("gpt-oss-120b", 2, 128)],
)
def test_every_nth_layer_attends_to_all(name: str, period: int, window: int) -> None:
    expected = [
        None if (layer + 1) % period == 0 else window
        for layer in range(preset(name).layers)
    ]
    assert windows(name) == expected


def test_llama_4_attends_to_chunks_in_three_layers_of_four() -> None:
    chunked, all_to_all = preset("llama-4-scout").kinds
    assert runs("llama-4-scout")[:2] == [("chunked-moe", 3), ("global-moe", 1)]
    assert isinstance(chunked.attention, Attention)
    assert (chunked.attention.window, chunked.attention.chunked) == (8192, True)
    assert all_to_all.attention.attended(32768, causal=True) == 16384
    assert chunked.attention.attended(32768, causal=True) == 4096


def test_layer_types_overrule_the_period() -> None:
    config = read_preset("gemma-2-2b").config | {"num_hidden_layers": 2}
    types = ["full_attention", "sliding_attention"]
    model = from_config(config | {"layer_types": types}, source="")
    assert [kind.attention.window for kind in model.kinds] == [None, 4096]
    wrong = refusal(config | {"layer_types": types * 2})
    assert "layer_types has 4 entries; num_hidden_layers is 2" in wrong


def test_qwen_2_has_a_window_only_where_it_is_switched_on() -> None:
    config = {**BASE, "model_type": "qwen2", "sliding_window": 16}
    assert from_config(config, source="").kinds[0].attention.window is None
    config |= {"use_sliding_window": True, "max_window_layers": 3}
    model = from_config(config, source="")
    assert [(k.attention.window, n) for k, n in model.runs] == [(None, 3), (16, 1)]


def test_gemma_2_caps_scores_and_logits() -> None:
    model = preset("gemma-2-9b")
    caps = [getattr(kind.attention, "logit_cap", None) for kind in model.kinds]
    assert (caps, model.logit_cap) == ([50.0, 50.0], 30.0)
    assert preset("gemma-3-27b").logit_cap is None


# --- norms, biases and halves -----------------------------------------------------


@pytest.mark.parametrize(
    ("name", "norms", "parallel"),
    [
        ("llama-65b", 2, False),
        ("gemma-7b", 2, False),
        ("gemma-3-12b", 4, False),
        ("glm-4-9b", 2, False),
        ("glm-4-32b-0414", 4, False),
        ("grok-1", 4, False),
        ("olmo-2-32b", 2, False),
        ("falcon-7b", 1, True),
        ("falcon-180b", 2, True),
        ("gpt-neox-20b", 2, True),
        ("command-r-plus", 1, True),
    ],
)
def test_norms_of_a_layer(name: str, norms: int, parallel: bool) -> None:  # noqa: FBT001
    for kind in preset(name).kinds:
        assert (kind.norms, kind.parallel) == (norms, parallel)


@pytest.mark.parametrize(
    ("name", "qkv", "out"),
    [
        ("qwen2.5-72b", True, False),
        ("qwen3-32b", False, False),
        ("glm-4-9b", True, False),
        ("gpt-oss-20b", True, True),
        ("opt-175b", True, True),
        ("starcoder2-15b", True, True),
        ("granite-3.1-8b", False, False),
    ],
)
def test_biases_of_the_projections(name: str, qkv: bool, out: bool) -> None:  # noqa: FBT001
    attention = preset(name).kinds[0].attention
    assert isinstance(attention, Attention)
    assert (attention.qkv_bias, attention.out_bias) == (qkv, out)


def test_norms_of_queries_and_keys_are_per_head_or_over_all() -> None:
    """Qwen 3 and Gemma 3 have one vector for all heads, OLMo 2 and Command R+ many."""
    kinds = {
        name: preset(name).kinds[0].attention
        for name in ("qwen3-8b", "gemma-3-27b", "olmo-2-7b", "command-r-plus")
    }
    found = [(a.qk_norm, a.wide_qk_norm) for a in kinds.values()]  # type: ignore[union-attr]
    assert found == [(True, False)] * 2 + [(False, True)] * 2


def test_olmo_1_has_norms_without_parameters() -> None:
    model = preset("olmo-7b")
    assert (model.final_norm_parameters, model.kinds[0].norm_parameters) == (0, 0)


def test_bloom_norms_its_embedding_and_opt_skips_two_positions() -> None:
    bloom = preset("bloom-176b")
    assert bloom.embedding_norm_parameters == 2 * 14336
    plain = replace(bloom, embedding_norm=False)
    assert bloom.parameters - plain.parameters == 2 * 14336
    assert preset("opt-175b").learned_positions == 2048 + 2


def test_old_falcon_has_one_key_value_head() -> None:
    assert preset("falcon-7b").kinds[0].attention.kv_heads == 1  # type: ignore[union-attr]


# --- experts ----------------------------------------------------------------------


def test_llama_4_maverick_has_experts_in_every_second_layer() -> None:
    """Dense layers are wider than an expert; the shared expert is as wide as one."""
    kinds = [kind for kind, n in preset("llama-4-maverick").runs for _ in range(n)]
    assert [isinstance(kind.ffn, Moe) for kind in kinds] == [False, True] * 24
    dense, moe = kinds[0].ffn, kinds[1].ffn
    assert isinstance(moe, Moe)
    assert (dense.ffn, moe.ffn, moe.shared_ffn) == (16384, 8192, 8192)


def test_qwen_2_moe_gates_its_shared_expert() -> None:
    moe = preset("qwen2-57b-a14b").kinds[0].ffn
    assert isinstance(moe, Moe)
    assert (moe.shared_ffn, moe.shared_gate, moe.router_width) == (20480, True, 65)


def test_qwen_3_moe_layers_may_stay_dense() -> None:
    config = read_preset("qwen3-30b-a3b").config | {"num_hidden_layers": 4}
    config |= {"mlp_only_layers": [1], "decoder_sparse_step": 2}
    assert [k.name for k in from_config(config, source="").kinds] == ["dense", "moe"]


def test_gpt_oss_activates_5_13_billion_without_the_embedding() -> None:
    """Its card counts the head and not the look-up: 5.13 B of 116.83 B, 3.61 B."""
    for name, billions in (("gpt-oss-120b", 5.13), ("gpt-oss-20b", 3.61)):
        model = preset(name)
        active = model.active_parameters - model.embedding_parameters
        assert active / 1e9 == pytest.approx(billions, abs=5e-3)


def test_glm_4_5_counts_mtp_and_neither_embedding_nor_head() -> None:
    model = preset("glm-4.5")
    outside = model.embedding_parameters + model.head_parameters
    assert (model.trained_parameters - outside) / 1e9 == pytest.approx(355, abs=0.5)
    assert (model.active_parameters - outside) / 1e9 == pytest.approx(32, abs=0.5)


def test_kimi_k2_is_read_as_deepseek_v3_by_its_type() -> None:
    config = dict(read_preset("kimi-k2").config)
    del config["architectures"]
    assert from_config(config, source="").family == "deepseek_v3"


# --- pruned blocks ----------------------------------------------------------------


def test_nemotron_nas_blocks_differ() -> None:
    """49 of 80 blocks keep attention; narrow feed-forward halves stand alone."""
    model = preset("llama-3.3-nemotron-super-49b")
    with_attention = [n for kind, n in model.runs if kind.attention.gemms()]
    assert (model.layers, sum(with_attention)) == (80, 49)
    widths = {kind.ffn.ffn for kind in model.kinds}
    assert (min(widths), max(widths)) == (2816, 28672)


def test_empty_blocks_are_no_layers() -> None:
    """Half of the 162 blocks of the 253B model have neither half."""
    model = preset("llama-3.1-nemotron-ultra-253b")
    assert model.layers == 81
    assert all(kind.gemms() for kind in model.kinds)


@given(st.sampled_from([1, 2, 4, 8]), st.integers(1, 64))
def test_unpruned_blocks_are_a_llama(group: int, eighths: int) -> None:
    """Blocks that are all alike count as the Llama of their widths."""
    block = {
        "attention": {"n_heads_in_group": group},
        "ffn": {"ffn_mult": eighths / 8, "no_op": False},
    }
    pruned = from_config(PRUNED | {"block_configs": [block] * 4}, source="")
    width = -(-int(2 * (eighths / 8) * 64 / 3) // 256) * 256
    llama = {"num_key_value_heads": 8 // group, "intermediate_size": width}
    plain = from_config(BASE | llama | {"model_type": "llama"}, source="")
    assert pruned.parameters == plain.parameters
    assert pruned.kinds[0].forward_flops(32, causal=True) == plain.kinds[
        0
    ].forward_flops(32, causal=True)


def test_a_half_without_work_has_no_norm() -> None:
    blocks = [
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 2.0}},
        {"attention": {"n_heads_in_group": 8}, "ffn": {"no_op": True}},
        {"attention": {"no_op": True}, "ffn": {"no_op": True}},
        {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 2.0}},
    ]
    model = from_config(PRUNED | {"block_configs": blocks}, source="")
    assert [kind.norms for kind in model.kinds] == [1, 1, 2]
    assert [type(kind.ffn) for kind in model.kinds] == [Mlp] * 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_hidden_layers": 5}, "block_configs has 4 entries; num_hidden_layers"),
        (
            {"block_configs": [{"attention": {}, "ffn": {"ffn_mult": 2.0}}] * 4},
            "an attention block needs n_heads_in_group, or no_op true",
        ),
        (
            {"block_configs": [{"attention": {"no_op": True}, "ffn": {}}] * 4},
            "an ffn block needs ffn_mult, or no_op true",
        ),
        (
            {
                "block_configs": [
                    {"attention": {"n_heads_in_group": 3}, "ffn": {"ffn_mult": 2.0}}
                ]
                * 4
            },
            "num_attention_heads 8 is not a multiple of n_heads_in_group 3",
        ),
        (
            {
                "block_configs": [
                    {"attention": {"no_op": True}, "ffn": {"no_op": True}}
                ]
                * 4
            },
            "no block that is not empty",
        ),
    ],
)
def test_contradictory_blocks_are_refused(wrong: dict[str, Any], message: str) -> None:
    assert message in refusal(PRUNED | wrong)


def test_blocks_replaced_by_a_linear_map_are_refused_not_ignored() -> None:
    block = {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 2.0}}
    linear = {**block, "ffn": {"replace_with_linear": True, "no_op": True}}
    message = refusal(PRUNED | {"block_configs": [block] * 3 + [linear]})
    assert "block_configs.3.ffn.replace_with_linear is True" in message


# --- other names, and refusals ----------------------------------------------------


def test_fields_under_their_older_names_are_read() -> None:
    """Early BLOOM and Falcon configs have names of their own."""
    bloom = {"model_type": "bloom", "n_embed": 64, "n_layer": 2, "n_head": 4}
    model = from_config(bloom | {"vocab_size": 100}, source="")
    assert (model.hidden, model.layers, model.kinds[0].attention.heads) == (64, 2, 4)
    assert model.kinds[0].ffn == Mlp(64, 256, gated=False, bias=True)


def test_text_part_of_a_multi_modal_config_is_read() -> None:
    text = BASE | {"model_type": "llama"}
    whole = {"model_type": "llava", "text_config": text, "tie_word_embeddings": True}
    model = from_config(whole, source="")
    assert (model.family, model.tied_embeddings) == ("llama", True)


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("opt-1.3b", {"word_embed_proj_dim": 512}, "embedding of another width"),
        ("opt-1.3b", {"do_layer_norm_before": False}, "do_layer_norm_before is False"),
        ("falcon-7b", {"parallel_attn": False}, "parallel_attn is False"),
        ("falcon-40b", {"num_ln_in_parallel_attn": 3}, "allowed: 1, 2"),
        ("qwen3-30b-a3b", {"num_experts_per_tok": 129}, "more than num_experts 128"),
        ("gpt-oss-20b", {"num_experts_per_tok": 33}, "than num_local_experts 32"),
        ("glm-4.5", {"first_k_dense_replace": 93}, "than num_hidden_layers 92"),
        ("olmoe-1b-7b", {"num_experts_per_tok": 65}, "more than num_experts 64"),
    ],
)
def test_contradictions_are_refused(
    name: str, wrong: dict[str, Any], message: str
) -> None:
    assert message in refusal(read_preset(name).config | wrong)
