"""Models of a few layers, of every family: random ones, and two that tests name."""

from hypothesis import strategies as st

from planner.models import Architecture, from_config

FAMILIES = ("llama", "gpt2", "mixtral", "deepseek_v3")


def models(family: str) -> st.SearchStrategy[Architecture]:
    """A model of 2 to 8 layers, wide enough to cost something."""
    return CONFIGS[family]().map(lambda config: tiny(family, config))


def tiny(family: str, config: dict[str, object]) -> Architecture:
    return from_config(config, source="test", name=f"tiny {family}")


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
