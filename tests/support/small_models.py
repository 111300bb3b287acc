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
    "moe_k": 2,
    "moe_topk": 2,
    "moe_shared_expert_intermediate_size": 56,
    "index_n_heads": 3,
    "index_head_dim": 12,
    "index_topk": 16,
    "ssm_state_size": 12,
    "mamba_num_heads": 6,
    "mamba_head_dim": 8,
    "n_groups": 2,
    "chunk_size": 64,
    "global_head_dim": 24,
    "num_global_key_value_heads": 1,
    "num_kv_shared_layers": 2,
    "hidden_size_per_layer_input": 16,
    "vocab_size_per_layer_input": 96,
    "top_k_experts": 2,
    "activation_sparsity_pattern": [0.5, 0.0, 0.0, 0.0],
    "laurel_rank": 6,
    "mamba_d_ssm": 48,
    "mamba_n_heads": 6,
    "mamba_d_head": 8,
    "mamba_n_groups": 2,
    "mamba_d_state": 12,
    "mamba_dt_rank": 10,
    "mamba_chunk_size": 64,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "attn_type_list": [0, 1, 0, 1],
    "block_size": 64,
    "n_mamba_heads": 6,
    "mamba_ngroups": 2,
    "adapter_rank": 6,
    "compress_ratios": [0, 4, 128, 4],
    "num_hash_layers": 1,
    "o_groups": 2,
    "o_lora_rank": 14,
    "linear_head_dim": 12,
    "full_attn_layers": [4],
    "kda_layers": [1, 2, 3],
    "num_heads": 4,
    "linear_num_heads": 4,
    "num_experts_per_token": 2,
    "linear_key_head_dim": 12,
    "linear_value_head_dim": 20,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "mtp_num_hidden_layers": 0,
    "num_mtp_modules": 0,
    "rotary_dim": 8,
    "partial_rotary_factor": 0.5,
    "short_factor": [1.0] * 3,
    "long_factor": [1.0] * 3,
}
"""Sizes of a variant with every kind of block that runs in a moment."""


def smaller(config: dict[str, Any]) -> dict[str, Any]:
    """Fields of a small variant; null, zero and one head of keys stay as they are.

    Args:
        config: Hugging Face fields. [-]

    Returns:
        The same with small sizes, in blocks of fields too. [-]
    """
    return {name: _smaller(name, value) for name, value in config.items()}


def _smaller(name: str, value: Any) -> Any:
    """Small value of one field; of a pattern the first layer of each letter or word."""
    if isinstance(value, dict):
        return smaller(value)
    if name in {"layer_types", "layers_block_type"}:
        return (list(dict.fromkeys(value)) * SMALL["num_hidden_layers"])[:4]
    if name == "hybrid_override_pattern":
        return "".join(dict.fromkeys(value)).ljust(SMALL["num_hidden_layers"], "M")
    if name == "num_key_value_heads" and value == 1:
        return 1
    return SMALL.get(name, value) if value or value is False else value


def small_fields(name: str) -> dict[str, Any]:
    """Fields of a small variant of a preset.

    Args:
        name: Of the preset. [text]

    Returns:
        Hugging Face fields. [-]
    """
    config = read_preset(name).config
    fields = smaller(config)
    if config["model_type"] == "kimi_linear":
        # Keys of its latent attention have every head already.
        fields["num_key_value_heads"] = fields["num_attention_heads"]
    return fields


def one_of_each_family() -> dict[str, str]:
    """A preset of every family. [text]."""
    return {preset(name).family: name for name in reversed(preset_names())}
