"""Llama, Granite, SmolLM 3, Llama 4, Mistral: RMSNorm, a gated MLP, rotation."""

from dataclasses import replace
from typing import ClassVar, Literal

from planner.hardware.reading.numbers import PositiveInt
from planner.models.layers.blocks import Attention, Mlp, Moe
from planner.models.layers.grouped_query import AlternatingConfig, GroupedQueryConfig


class LlamaConfig(GroupedQueryConfig):
    """Fields of a Llama config, of generations 1 to 3.

    attention_bias puts biases on all four projections, mlp_bias on all three.
    """

    family: ClassVar[str] = "llama"
    hf_class: ClassVar[str] = "LlamaForCausalLM"

    attention_bias: bool = False
    mlp_bias: bool = False

    def _attention(self) -> Attention:
        bias = self.attention_bias
        return replace(super()._attention(), qkv_bias=bias, out_bias=bias)

    def _ffn(self) -> Mlp:
        return Mlp(
            self.hidden_size,
            self.intermediate_size,
            gated=self.gated,
            bias=self.mlp_bias,
        )


class GraniteConfig(LlamaConfig):
    """Fields of a Granite config: Llama's; its multipliers have no weights."""

    family: ClassVar[str] = "granite"
    hf_class: ClassVar[str] = "GraniteForCausalLM"


class SmolLm3Config(LlamaConfig):
    """Fields of a SmolLM 3 config: Llama's, some layers without rotation.

    Left out, and refused: windows in the layers without rotation.
    """

    family: ClassVar[str] = "smollm3"
    hf_class: ClassVar[str] = "SmolLM3ForCausalLM"

    tie_word_embeddings: bool = True
    use_sliding_window: Literal[False] = False


class Llama4Config(AlternatingConfig):
    """Fields of the text part of a Llama 4 config.

    intermediate_size is the width of one expert and of the shared one,
    intermediate_size_mlp that of dense layers. Layer i has experts if i is in
    moe_layers, or without the list if interleave_moe_layer_step divides i + 1.
    Every fourth layer attends to all, the others to their chunk of
    attention_chunk_size. Its QK-norm has no weights. Left out: the vision tower.
    """

    family: ClassVar[str] = "llama4_text"
    hf_class: ClassVar[str] = "Llama4ForCausalLM"
    period: ClassVar[int] = 4
    local: ClassVar[str] = "chunked"

    intermediate_size_mlp: PositiveInt
    num_local_experts: PositiveInt
    num_experts_per_tok: PositiveInt
    interleave_moe_layer_step: PositiveInt = 1
    moe_layers: list[int] | None = None
    attention_chunk_size: PositiveInt | None = 8192
    attention_bias: bool = False

    def _attention(self) -> Attention:
        bias = self.attention_bias
        return replace(super()._attention(), qkv_bias=bias, out_bias=bias)

    def _local_attention(self) -> Attention:
        window = self.attention_chunk_size
        return replace(self._attention(), window=window, chunked=True)

    def _ffn_of(self, layer: int) -> Mlp | Moe:
        if not self._has_experts(layer):
            return Mlp(self.hidden_size, self.intermediate_size_mlp, gated=True)
        return Moe(
            hidden=self.hidden_size,
            experts=self.num_local_experts,
            top_k=self.num_experts_per_tok,
            ffn=self.intermediate_size,
            shared_ffn=self.intermediate_size,
        )

    def _has_experts(self, layer: int) -> bool:
        if self.moe_layers is not None:
            return layer in self.moe_layers
        return (layer + 1) % self.interleave_moe_layer_step == 0


class MistralConfig(GroupedQueryConfig):
    """Fields of a Mistral config.

    sliding_window has to be there, if only as null: Hugging Face's default is a
    window, but most Mistral models have none.
    """

    family: ClassVar[str] = "mistral"
    hf_class: ClassVar[str] = "MistralForCausalLM"

    sliding_window: PositiveInt | None

    def _attention(self) -> Attention:
        return replace(super()._attention(), window=self.sliding_window)
