"""BLOOM: no learned positions (ALiBi), biases, a norm after the embedding."""

from dataclasses import replace
from typing import ClassVar

from planner.models.layers.blocks import Attention, Mlp
from planner.models.layers.fourfold import FourfoldConfig


class BloomConfig(FourfoldConfig):
    """Fields of a BLOOM config."""

    family: ClassVar[str] = "bloom"
    hf_class: ClassVar[str] = "BloomForCausalLM"
    embedding_norm: ClassVar[bool] = True
    other_names: ClassVar[dict[str, str]] = {
        "n_embed": "hidden_size",
        "n_head": "num_attention_heads",
        "n_layer": "num_hidden_layers",
        "n_inner": "intermediate_size",
        "seq_length": "max_position_embeddings",
    }

    tie_word_embeddings: bool = True

    def _attention(self) -> Attention:
        return replace(super()._attention(), qkv_bias=True, out_bias=True)

    def _ffn(self) -> Mlp:
        return Mlp(self.hidden_size, self.intermediate_size, gated=False, bias=True)
