"""Hugging Face fields of the model that torchtitan's settings name or build."""

from collections.abc import Mapping
from typing import Any

from planner.frameworks.torchtitan.families import flavours

COMMON = {
    "layers": "num_hidden_layers",
    "dim": "hidden_size",
    "vocab": "vocab_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "tied": "tie_word_embeddings",
    "ffn": "intermediate_size",
    "positions": "max_position_embeddings",
    "theta": "rope_theta",
    "eps": "rms_norm_eps",
}
"""Hugging Face field by keyword of the builders of own_model.py. [text]"""
LATENT = {
    "kv_rank": "kv_lora_rank",
    "nope_dim": "qk_nope_head_dim",
    "rope_dim": "qk_rope_head_dim",
    "value_dim": "v_head_dim",
    "experts": "n_routed_experts",
    "top_k": "num_experts_per_tok",
    "expert_ffn": "moe_intermediate_size",
    "shared_experts": "n_shared_experts",
    "groups": "n_group",
    "top_groups": "topk_group",
    "dense_layers": "first_k_dense_replace",
    "scale": "routed_scaling_factor",
    "score": "scoring_func",
    "renormalised": "norm_topk_prob",
}
"""Hugging Face field of latent attention and experts, by keyword. [text]"""
OLD_NAMES = {"llama": "llama3"}
"""Current name of a model by the name in older releases. [text]"""
Given = Mapping[str, Any]


def fields_of(model: object, module: str = "") -> dict[str, Any]:
    """Hugging Face fields of a model.

    Returns:
        Fields; empty for an unknown flavour. [-]
    """
    if not isinstance(model, tuple) or len(model) != _PARTS:
        return {}
    kind, where, what = model
    if kind == "own":
        return _own(str(where), what)
    named = str(where or module)
    every = {str(name): sizes for name, sizes in flavours().items()}
    sizes = every.get(OLD_NAMES.get(named, named), {})
    return dict(sizes.get(str(what), {}))


_PARTS = 3


def _own(builder: str, its: Given) -> dict[str, Any]:
    found = {theirs: its[ours] for ours, theirs in COMMON.items() if ours in its}
    found |= _scaling(its.get("scaling", {}))
    if builder == "deepseek_v3":
        found |= {theirs: its[ours] for ours, theirs in LATENT.items() if ours in its}
        sigmoid = its.get("score") == "sigmoid"
        return found | {
            "model_type": "deepseek_v3" if sigmoid else "deepseek_v2",
            "q_lora_rank": its.get("q_rank") or None,
            "moe_layer_freq": 1,
            "tie_word_embeddings": False,
        }
    return found | _grouped(its)


def _grouped(its: Given) -> dict[str, Any]:
    """Fields of a dense model, or of a model with experts in every layer."""
    normed = its.get("qk_norm")
    if not its.get("experts"):
        return {"model_type": "qwen3" if normed else "llama"}
    common = {"num_experts_per_tok": its["top_k"]}
    if normed:
        return common | {
            "model_type": "qwen3_moe",
            "num_experts": its["experts"],
            "moe_intermediate_size": its["expert_ffn"],
            "intermediate_size": its["expert_ffn"],
            "decoder_sparse_step": 1,
            "norm_topk_prob": its.get("renormalised", True),
        }
    return common | {
        "model_type": "mixtral",
        "num_local_experts": its["experts"],
        "intermediate_size": its["expert_ffn"],
    }


def _scaling(given: Given) -> dict[str, Any]:
    """Hugging Face fields of rotary scaling."""
    kind = given.get("scaling")
    if kind == "llama":
        names = ("low_freq_factor", "high_freq_factor")
        more = {name: given[name] for name in names if name in given}
        long = given.get("original_max_position_embeddings", 8192)
        factor = given.get("scaling_factor", 8.0)
        return {
            "rope_scaling": {
                "rope_type": "llama3",
                "factor": factor,
                **more,
                "original_max_position_embeddings": long,
            }
        }
    if kind == "yarn":
        return {
            "rope_scaling": {
                "type": "yarn",
                "factor": given.get("rope_factor", 1.0),
                "beta_fast": given.get("beta_fast", 32.0),
                "beta_slow": given.get("beta_slow", 1.0),
                "original_max_position_embeddings": given.get("original_seq_len", 4096),
            }
        }
    return {}
