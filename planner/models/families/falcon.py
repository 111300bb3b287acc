"""Falcon: halves in parallel, one or few key-value heads, no gate."""

from dataclasses import replace
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import PositiveInt
from planner.models.layers.blocks import Attention, LayerKind, Mlp, Moe, Norm, ScanBlock
from planner.models.layers.fourfold import FourfoldConfig


class FalconConfig(FourfoldConfig):
    """Fields of a Falcon config.

    The new decoder (40B, 180B, 2-11B) has grouped heads and a norm per half unless
    num_ln_in_parallel_attn is 1; the old one (7B) has one key-value head and one
    norm. Left out, and refused: layers whose halves follow each other.
    """

    family: ClassVar[str] = "falcon"
    hf_class: ClassVar[str] = "FalconForCausalLM"
    aliases: ClassVar[tuple[str, ...]] = ("RefinedWeb", "RefinedWebModel")
    norm: ClassVar[Norm] = "layernorm"
    other_names: ClassVar[dict[str, str]] = {
        "n_head": "num_attention_heads",
        "n_layer": "num_hidden_layers",
        "n_head_kv": "num_key_value_heads",
        "num_kv_heads": "num_key_value_heads",
        "ffn_hidden_size": "intermediate_size",
    }

    new_decoder_architecture: bool = False
    multi_query: bool = True
    parallel_attn: Literal[True] = True
    num_ln_in_parallel_attn: PositiveInt | None = None
    bias: bool = False
    tie_word_embeddings: bool = True

    @model_validator(mode="after")
    def _check_norms(self) -> Self:
        if self.num_ln_in_parallel_attn not in {None, 1, 2}:
            raise ValueError(
                f"num_ln_in_parallel_attn is {self.num_ln_in_parallel_attn}; "
                "allowed: 1, 2"
            )
        return self

    def _attention(self) -> Attention:
        plain = super()._attention()
        single = self.multi_query and not self.new_decoder_architecture
        groups = 1 if single else plain.kv_heads
        return replace(plain, kv_heads=groups, qkv_bias=self.bias, out_bias=self.bias)

    def _ffn(self) -> Mlp:
        return Mlp(
            self.hidden_size, self.intermediate_size, gated=False, bias=self.bias
        )

    def _layer(
        self, attention: Attention | ScanBlock, ffn: Mlp | Moe, prefix: str = ""
    ) -> LayerKind:
        norms = (
            (self.num_ln_in_parallel_attn or 2) if self.new_decoder_architecture else 1
        )
        layer = super()._layer(attention, ffn, prefix)
        return replace(layer, norms=norms, parallel=True)
