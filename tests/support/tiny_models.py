"""Models of a few layers, of every family: random ones, and two that tests name."""

from hypothesis import strategies as st

from planner.models import Architecture, from_config

FAMILIES = ("llama", "gpt2", "mixtral", "deepseek_v3")


def models(family: str) -> st.SearchStrategy[Architecture]:
    """A model of 2 to 8 layers, wide enough to cost something."""
    return CONFIGS[family]().map(lambda config: tiny(family, config))


def tiny(family: str, config: dict[str, object]) -> Architecture:
    return from_config(config, source="test", name=f"tiny {family}")


HYBRID: dict[str, object] = {
    "model_type": "qwen3_5_text",
    "hidden_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "intermediate_size": 1536,
    "vocab_size": 32_000,
    "layer_types": ["linear_attention"] * 2 + ["full_attention", "linear_attention"],
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
"""A stack whose layers differ: two with a scan, one with attention, one with a scan."""


_HEADS: dict[str, object] = {
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "intermediate_size": 1536,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
}
_STATE: dict[str, object] = {
    "mamba_d_ssm": 512,
    "mamba_n_heads": 8,
    "mamba_d_head": 64,
    "mamba_n_groups": 2,
    "mamba_d_state": 64,
}
_ROUTED: dict[str, object] = {"num_local_experts": 4, "num_experts_per_tok": 2}


@st.composite
def hybrids(draw: st.DrawFn) -> Architecture:
    """A model of 2 to 4 layers, most of which differ, of a family drawn."""
    family = draw(st.sampled_from([*_DRAWN]))
    layers = draw(st.integers(2, 4))
    words = draw(st.lists(st.sampled_from(_DRAWN[family]), min_size=layers))[:layers]
    own = _own_fields(family, words)
    head = {"model_type": family, "num_hidden_layers": layers}
    return tiny(family, _HEADS | head | own)


def _own_fields(family: str, words: list[str]) -> dict[str, object]:
    """Fields of a family beside sizes of attention; words say what layers are."""
    if family == "qwen3_5_text":
        heads = {"linear_num_key_heads": 2, "linear_num_value_heads": 4}
        sizes = {f"linear_{part}_head_dim": 64 for part in ("key", "value")}
        return heads | sizes | {"linear_conv_kernel_dim": 4, "layer_types": words}
    if family == "minimax":
        return _ROUTED | {"layer_types": words}
    if family == "jamba":
        even = {"attn_layer_offset": 1, "expert_layer_offset": 0, "mamba_dt_rank": 32}
        periods = {"attn_layer_period": 2, "expert_layer_period": 2}
        return _ROUTED | even | periods
    if family == "gemma4_text":
        return {"layer_types": words, "sliding_window": 64, "global_head_dim": 128}
    if family == "falcon_h1":
        return _STATE
    ranks = {"q_lora_rank": 128, "o_groups": 2, "o_lora_rank": 64, "index_n_heads": 2}
    index = {"index_head_dim": 64, "index_topk": 32, "sliding_window": 64}
    routed = {"moe_intermediate_size": 128, "n_routed_experts": 4}
    keys = {"num_key_value_heads": 1, "num_experts_per_tok": 2, "num_hash_layers": 1}
    return ranks | index | routed | keys | {"layer_types": words}


_DRAWN = {
    "qwen3_5_text": ["linear_attention", "full_attention"],
    "minimax": ["linear_attention", "full_attention"],
    "jamba": ["mamba"],
    "gemma4_text": ["sliding_attention", "full_attention"],
    "falcon_h1": ["hybrid"],
    "deepseek_v4": [
        "sliding_attention",
        "compressed_sparse_attention",
        "heavily_compressed_attention",
    ],
}
"""Families whose layers differ, and the words for their layers. [text]"""


@st.composite
def llama_config(draw: st.DrawFn) -> dict[str, object]:
    heads = draw(st.sampled_from([4, 6, 8, 16]))
    return {
        "model_type": "llama",
        "hidden_size": heads * 64,
        "num_hidden_layers": draw(st.integers(2, 8)),
        "num_attention_heads": heads,
        "num_key_value_heads": draw(st.sampled_from([heads, heads // 2])),
        "intermediate_size": draw(st.sampled_from([512, 1536, 1720])),
        "vocab_size": draw(st.sampled_from([512, 32_000])),
        "max_position_embeddings": 4096,
        "tie_word_embeddings": draw(st.booleans()),
    }


@st.composite
def gpt2_config(draw: st.DrawFn) -> dict[str, object]:
    heads = draw(st.sampled_from([4, 8, 12]))
    return {
        "model_type": "gpt2",
        "n_embd": heads * 64,
        "n_layer": draw(st.integers(2, 8)),
        "n_head": heads,
        "n_positions": 4096,
        "vocab_size": draw(st.sampled_from([512, 50_257])),
    }


@st.composite
def mixtral_config(draw: st.DrawFn) -> dict[str, object]:
    return draw(llama_config()) | {
        "model_type": "mixtral",
        "num_hidden_layers": draw(st.integers(2, 6)),
        "num_local_experts": draw(st.sampled_from([2, 4, 8])),
        "num_experts_per_tok": draw(st.integers(1, 2)),
    }


@st.composite
def deepseek_config(draw: st.DrawFn) -> dict[str, object]:
    layers = draw(st.integers(2, 6))
    return {
        "model_type": "deepseek_v3",
        "hidden_size": 512,
        "num_hidden_layers": layers,
        "num_attention_heads": 8,
        "q_lora_rank": draw(st.sampled_from([None, 192])),
        "kv_lora_rank": 64,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 32,
        "v_head_dim": 64,
        "intermediate_size": 1536,
        "moe_intermediate_size": draw(st.sampled_from([128, 256])),
        "n_routed_experts": 8,
        "n_shared_experts": draw(st.integers(0, 1)),
        "num_experts_per_tok": 2,
        "first_k_dense_replace": draw(st.integers(0, layers - 1)),
        "moe_layer_freq": 1,
        "vocab_size": 1024,
        "num_nextn_predict_layers": draw(st.integers(0, 1)),
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
    }


CONFIGS = {
    "llama": llama_config,
    "gpt2": gpt2_config,
    "mixtral": mixtral_config,
    "deepseek_v3": deepseek_config,
}
TINY_LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "intermediate_size": 1536,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
}
TINY_MIXTRAL = TINY_LLAMA | {
    "model_type": "mixtral",
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
}
