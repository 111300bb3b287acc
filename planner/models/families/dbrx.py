"""DBRX: sixteen experts a layer behind LayerNorm without bias."""

from collections.abc import Mapping
from typing import Any, ClassVar

from planner.models.families.mixtral import MixtralConfig
from planner.models.layers.blocks import Norm


class DbrxConfig(MixtralConfig):
    """Fields of a DBRX config: Mixtral's under other names, some nested.

    d_model, n_heads, n_layers, max_seq_len; attn_config: kv_n_heads; ffn_config:
    ffn_hidden_size, moe_num_experts, moe_top_k.
    """

    family: ClassVar[str] = "dbrx"
    hf_class: ClassVar[str] = "DbrxForCausalLM"
    norm: ClassVar[Norm] = "layernorm-no-bias"
    other_names: ClassVar[dict[str, str]] = {
        "d_model": "hidden_size",
        "n_heads": "num_attention_heads",
        "n_layers": "num_hidden_layers",
        "max_seq_len": "max_position_embeddings",
        "kv_n_heads": "num_key_value_heads",
        "ffn_hidden_size": "intermediate_size",
        "moe_num_experts": "num_local_experts",
        "moe_top_k": "num_experts_per_tok",
    }

    @classmethod
    def _own_names(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        flat = dict(config)
        for part in ("attn_config", "ffn_config"):
            inner = flat.pop(part, None)
            known = inner if isinstance(inner, Mapping) else {}
            flat |= {k: v for k, v in known.items() if k in cls.other_names}
        return super()._own_names(flat)
