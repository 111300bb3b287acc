"""The model that Megatron's arguments describe, as a Hugging Face config."""

from collections.abc import Iterator, Mapping
from typing import Any

from planner.frameworks.megatron.recipe import RECIPE
from planner.launch.sizes import Size, rounded
from planner.launch.targets.megatron.variables import option_of

Given = Mapping[str, Any]
SIZES = {
    "num_layers": "num_hidden_layers",
    "hidden_size": "hidden_size",
    "ffn_hidden_size": "intermediate_size",
    "num_attention_heads": "num_attention_heads",
    "num_query_groups": "num_key_value_heads",
    "kv_channels": "head_dim",
    "max_position_embeddings": "max_position_embeddings",
    "rotary_base": "rope_theta",
    "num_experts": "num_local_experts",
    "moe_router_topk": "num_experts_per_tok",
}
"""Hugging Face field of a Llama or Mixtral by argument of Megatron. [text]"""
GPT2 = {
    "num_layers": "n_layer",
    "hidden_size": "n_embd",
    "num_attention_heads": "n_head",
    "ffn_hidden_size": "n_inner",
    "max_position_embeddings": "n_positions",
}
"""Hugging Face field of a GPT-2 by argument of Megatron. [text]"""
OTHERS = frozenset(
    {
        "vocab_size",
        "make_vocab_size_divisible_by",
        "tokenizer_type",
        "untie_embeddings_and_output_weights",
        "swiglu",
        "squared_relu",
        "normalization",
        "layernorm_epsilon",
        "add_bias_linear",
        "add_qkv_bias",
        "qk_layernorm",
        "group_query_attention",
        "position_embedding_type",
        "multi_latent_attention",
        "q_lora_rank",
        "kv_lora_rank",
        "qk_head_dim",
        "qk_pos_emb_head_dim",
        "v_head_dim",
        "moe_ffn_hidden_size",
        "moe_shared_expert_intermediate_size",
        "moe_layer_freq",
        "mtp_num_layers",
        "window_size",
        "use_rope_scaling",
        "rope_scaling_factor",
        "rotary_percent",
        "rope_type",
        "rotary_scaling_factor",
        "mscale",
        "mscale_all_dim",
        "layernorm_zero_centered_gamma",
        "use_rotary_position_embeddings",
        "add_position_embedding",
        "padded_vocab_size",
    }
)
"""Arguments that only describe a model, beside its sizes. [text]"""
ROTARY = {"mrope": "rope", "yarn": "rope"}
"""Kinds of positions that are rotary ones. [text]"""
NEEDED = {"num_layers", "hidden_size", "num_attention_heads"}
FOREIGN = (
    "multi_latent_attention",
    "moe_shared_expert_intermediate_size",
    "mtp_num_layers",
    "window_size",
    "squared_relu",
)
"""Blocks of models that are better named than described. [text]"""


def described(its: Given) -> dict[str, Any]:
    """Hugging Face config of the layers that the arguments describe.

    Returns:
        Fields, without a vocabulary where no argument has it; empty where sizes are
        missing, or blocks are of a family that a preset says better. [-]
    """
    family = _family(its) if all(its.get(name) for name in NEEDED) else ""
    if not family:
        return {}
    head = {"name": "imported", "model_type": family}
    return head | (_gpt2(its) if family == "gpt2" else _llama(its))


def vocabulary(its: Given) -> dict[str, int]:
    """Tokens that the model knows; NullTokenizer adds one of its own.

    Returns:
        Rows of the embedding, without padding where they are known so; empty where a
        tokenizer holds them. [1]
    """
    adds = 1 if its.get("tokenizer_type") == "NullTokenizer" else 0
    own = its["vocab_size"] + adds if its.get("vocab_size") else None
    rows = own or its.get("padded_vocab_size")
    return {"vocab_size": rows} if rows else {}


def _multiple(its: Given) -> int:
    """Rows that the embedding has a multiple of. [1]."""
    each: int = its.get("make_vocab_size_divisible_by") or RECIPE.vocab_multiple
    return each * (its.get("tensor_model_parallel_size") or 1)


def padded_rows(its: Given) -> int:
    """Rows of the embedding that Megatron-LM pads a vocabulary to. [1]."""
    return rounded(vocabulary(its)["vocab_size"], _multiple(its))


def positions(its: Given) -> str:
    """Kind of positions: learned where no argument says another. [text]."""
    kind = str(its.get("position_embedding_type", "learned_absolute"))
    return (
        "rope" if its.get("use_rotary_position_embeddings") else ROTARY.get(kind, kind)
    )


def stated(its: Given, file: str) -> Iterator[Size]:
    """Sizes that several arguments give, or a default; none of a checkpoint's."""
    if its.get("use_checkpoint_args"):
        return
    for name in ("vocab_size", "padded_vocab_size"):
        if rows := its.get(name):
            each = _multiple(its)
            yield Size("vocabulary", rounded(rows, each), option_of(name), file, each)
    if positions(its) in ("learned_absolute", "rope"):
        yield Size("positions", positions(its), "--position-embedding-type", file)


def _family(its: Given) -> str:
    """Family with the layers that the arguments describe; empty where none is known."""
    if any(its.get(name) for name in FOREIGN):
        return ""
    gated, rms = its.get("swiglu"), its.get("normalization") == "RMSNorm"
    biased = its.get("add_bias_linear", True)
    learned = positions(its) == "learned_absolute"
    if not (gated or rms) and biased and learned:
        return "" if its.get("group_query_attention") else "gpt2"
    if not (gated and rms) or biased:
        return ""
    return _gated(its)


def _gated(its: Given) -> str:
    normed, qkv = its.get("qk_layernorm"), its.get("add_qkv_bias")
    if its.get("num_experts"):
        plain = _all_experts(str(its.get("moe_layer_freq", 1)))
        return "mixtral" if plain and not (normed or qkv) else ""
    names = {(False, False): "llama", (True, False): "qwen3", (False, True): "qwen2"}
    return names.get((bool(normed), bool(qkv)), "")


def _all_experts(frequency: str) -> bool:
    """Tell if every layer has experts, by a number or a list of 0 and 1."""
    return frequency == "1" or not frequency.replace("[1]", "").strip("*0123456789")


def _llama(its: Given) -> dict[str, Any]:
    found = {ours: its[theirs] for theirs, ours in SIZES.items() if its.get(theirs)}
    found.setdefault("num_key_value_heads", found["num_attention_heads"])
    found.setdefault("intermediate_size", _gated_width(found["hidden_size"]))
    if its.get("num_experts") and its.get("moe_ffn_hidden_size"):
        found["intermediate_size"] = its["moe_ffn_hidden_size"]
    if its.get("use_rope_scaling"):
        factor = its.get("rope_scaling_factor", 8.0)
        found["rope_scaling"] = {"rope_type": "llama3", "factor": factor}
    found["tie_word_embeddings"] = not its.get("untie_embeddings_and_output_weights")
    return found | vocabulary(its)


def _gated_width(hidden: int) -> int:
    """Megatron's own width of a gated MLP that no argument gives. [1]."""
    return int(4 * hidden * 2 / 3) // 64 * 64


def _gpt2(its: Given) -> dict[str, Any]:
    found = {ours: its[theirs] for theirs, ours in GPT2.items() if its.get(theirs)}
    tied = not its.get("untie_embeddings_and_output_weights")
    return found | {"tie_word_embeddings": tied} | vocabulary(its)
