"""Models of transformers built from our presets' fields; no weights, no network."""

from typing import Any

import pytest

from planner.models import Architecture, from_config, preset, preset_names, read_preset

torch = pytest.importorskip("torch")
counters = pytest.importorskip("torch.utils.flop_counter")
transformers = pytest.importorskip("transformers")

NOT_IN_TRANSFORMERS = {"grok-1", "nemotron-nas"}
"""Families whose code lies with their weights."""
NAMES = [n for n in preset_names() if preset(n).family not in NOT_IN_TRANSFORMERS]
SMALL: dict[str, Any] = {
    "hidden_size": 48,
    "n_embd": 48,
    "d_model": 48,
    "word_embed_proj_dim": 48,
    "intermediate_size": 80,
    "ffn_dim": 80,
    "intermediate_size_mlp": 112,
    "moe_intermediate_size": 40,
    "shared_expert_intermediate_size": 56,
    "num_hidden_layers": 4,
    "n_layer": 4,
    "n_layers": 4,
    "num_attention_heads": 4,
    "n_head": 4,
    "n_heads": 4,
    "num_key_value_heads": 2,
    "num_kv_heads": 2,
    "head_dim": 20,
    "vocab_size": 96,
    "max_position_embeddings": 64,
    "n_positions": 64,
    "max_seq_len": 64,
    "num_experts": 16,
    "num_local_experts": 16,
    "n_routed_experts": 16,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
    "num_nextn_predict_layers": 0,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 8,
    "v_head_dim": 10,
    "sliding_window": 8,
    "attention_chunk_size": 8,
    "attn_config": {"clip_qkv": 8, "kv_n_heads": 2, "rope_theta": 500000},
    "ffn_config": {"ffn_hidden_size": 40, "moe_num_experts": 16, "moe_top_k": 2},
}
"""Sizes of a variant with every kind of block that runs in a moment."""


def fields(name: str) -> dict[str, Any]:
    """Hugging Face fields of a preset, without class and type."""
    chosen = ("architectures", "model_type")
    return {k: v for k, v in read_preset(name).config.items() if k not in chosen}


def small(name: str) -> dict[str, Any]:
    """Fields of a small variant; null stays null, absent stays absent."""
    config = {k: v if v is None else SMALL.get(k, v) for k, v in fields(name).items()}
    if "kv_lora_rank" in config:
        # Latent attention has no key-value heads, but its reference divides by them.
        config["num_key_value_heads"] = config["num_attention_heads"]
    return config


def ours(name: str, config: dict[str, Any]) -> Architecture:
    """Our architecture of a preset's family with these fields."""
    return from_config(config | {"model_type": preset(name).family}, source="oracle")


def described(name: str, config: dict[str, Any] | None = None) -> Any:
    """Config of transformers of the same family, with a preset's fields or others."""
    known = fields(name) if config is None else config
    family = preset(name).family
    return transformers.AutoConfig.for_model(family, **known, pad_token_id=0)


def theirs(name: str, config: dict[str, Any], device: str) -> Any:
    """Model of transformers of the same family with the same fields."""
    with torch.device(device):
        return transformers.AutoModelForCausalLM.from_config(
            described(name, config),
            attn_implementation="eager",
            experts_implementation="eager",
        )
