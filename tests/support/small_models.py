"""Every family of the catalogue in a size that trains a step in a moment."""

from typing import Any

from planner.models import preset, preset_names, read_preset

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
    "kv_n_heads": 2,
    "ffn_hidden_size": 40,
    "moe_num_experts": 16,
    "moe_top_k": 2,
    "partial_rotary_factor": 0.5,
    "short_factor": [1.0] * 3,
    "long_factor": [1.0] * 3,
}
"""Sizes of a variant with every kind of block that runs in a moment."""


def smaller(config: dict[str, Any]) -> dict[str, Any]:
    """Fields of a small variant; null stays null, absent stays absent.

    Args:
        config: Hugging Face fields. [-]

    Returns:
        The same with small sizes, in blocks of fields too. [-]
    """
    return {
        name: smaller(value)
        if isinstance(value, dict)
        else value
        if value is None
        else SMALL.get(name, value)
        for name, value in config.items()
    }


def small_fields(name: str) -> dict[str, Any]:
    """Fields of a small variant of a preset.

    Args:
        name: Of the preset. [text]

    Returns:
        Hugging Face fields. [-]
    """
    return smaller(read_preset(name).config)


def one_of_each_family() -> dict[str, str]:
    """A preset of every family. [text]."""
    return {preset(name).family: name for name in reversed(preset_names())}
