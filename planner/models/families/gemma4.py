"""Gemma 4: wide global heads, shared keys, inputs of each layer's own, experts."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import NonNegativeInt, PositiveInt
from planner.models.architecture import Architecture
from planner.models.config import require_at_most
from planner.models.families.gemma import Gemma3Config
from planner.models.layers.blocks import Attention, LayerInputs, LayerKind, Mlp, Moe

_NORMS_OF_EXPERTS = 3
"""Norms of a layer with experts beside those of its dense half. [1]"""


class Gemma4Config(Gemma3Config):
    """Fields of the text part of a Gemma 4 config: one global layer in six, the last.

    Global layers have heads of global_head_dim, num_global_key_value_heads and, with
    attention_k_eq_v, keys that serve as values. The last num_kv_shared_layers take the
    keys and values of an earlier layer. With enable_moe_block experts stand beside the
    dense half, whose router has a weight for each column and each expert.
    hidden_size_per_layer_input gives each layer an embedding of its own.

    Left out: the towers; the factor of each layer, which is a buffer. Left out, and
    refused: bidirectional text.
    Source: transformers 5.23, models/gemma4/modeling_gemma4.py.
    """

    family: ClassVar[str] = "gemma4_text"
    hf_class: ClassVar[str] = "Gemma4ForCausalLM"
    local: ClassVar[str] = "sliding"

    global_head_dim: PositiveInt = 512
    num_global_key_value_heads: PositiveInt | None = None
    attention_k_eq_v: bool = False
    num_kv_shared_layers: NonNegativeInt = 0
    use_double_wide_mlp: bool = False
    hidden_size_per_layer_input: NonNegativeInt | None = 256
    vocab_size_per_layer_input: PositiveInt = 262_144
    enable_moe_block: bool = False
    num_experts: PositiveInt | None = None
    top_k_experts: PositiveInt | None = None
    moe_intermediate_size: PositiveInt | None = None
    use_bidirectional_attention: Literal["vision"] | None = None

    @classmethod
    def _own_names(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        named = super()._own_names(config)
        # As transformers saves it: by number of the layer, global layers alone.
        layers = named.get("per_layer_config")
        if isinstance(layers, Mapping) and layers:
            its = next(iter(layers.values()))
            named.setdefault("global_head_dim", its.get("head_dim"))
            groups = its.get("num_key_value_heads")
            named.setdefault("num_global_key_value_heads", groups)
        return named

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        require_at_most(self, "num_kv_shared_layers", "num_hidden_layers")
        sizes = (self.num_experts, self.top_k_experts, self.moe_intermediate_size)
        if self.enable_moe_block and None in sizes:
            raise ValueError(
                "enable_moe_block needs num_experts, top_k_experts and "
                "moe_intermediate_size"
            )
        if self.enable_moe_block:
            require_at_most(self, "top_k_experts", "num_experts")
        return self

    def architecture(self, name: str, source: str) -> Architecture:
        """Architecture of these layers, with the table of their own inputs.

        Args:
            name: Name for the model.
            source: Citation, URL or path of the fields.
        """
        found = super().architecture(name, source)
        width = self.hidden_size_per_layer_input or 0
        columns = width * self.num_hidden_layers
        return replace(
            found,
            input_table=self.vocab_size_per_layer_input * columns,
            outer_weights=self.hidden_size * columns,
            outer_vectors=width,
        )

    def _is_local(self, layer: int) -> bool:
        return layer < self.num_hidden_layers - 1 and super()._is_local(layer)

    def _layers(self) -> Iterable[LayerKind]:
        for layer in range(self.num_hidden_layers):
            shares = layer >= self.num_hidden_layers - self.num_kv_shared_layers
            yield self._decoder_layer(is_local=self._is_local(layer), shares=shares)

    def _decoder_layer(self, *, is_local: bool, shares: bool) -> LayerKind:
        attention = self._local_attention() if is_local else self._global_attention()
        ffn = self._ffn()
        if shares:
            attention = replace(attention, key_matrices=0)
            if self.use_double_wide_mlp and isinstance(ffn, Mlp):
                ffn = replace(ffn, ffn=2 * ffn.ffn)
        prefix = f"{'sliding' if is_local else 'global'}-{'shared-' if shares else ''}"
        width = self.hidden_size_per_layer_input
        norms = self.norms + (_NORMS_OF_EXPERTS if self.enable_moe_block else 0)
        norms += 1 if width else 0
        stream = LayerInputs(self.hidden_size, width) if width else None
        plain = self._layer(attention, ffn, prefix)
        return replace(plain, norms=norms, stream=stream)

    def _global_attention(self) -> Attention:
        plain, alike = self._attention(), self.attention_k_eq_v
        groups = self.num_global_key_value_heads if alike else None
        return replace(
            plain,
            head_dim=self.global_head_dim,
            kv_heads=groups or plain.kv_heads,
            key_matrices=1 if alike else 2,
        )

    def _ffn(self) -> Mlp | Moe:
        if not self.enable_moe_block:
            return super()._ffn()
        assert self.num_experts is not None
        assert self.top_k_experts is not None
        assert self.moe_intermediate_size is not None
        return Moe(
            hidden=self.hidden_size,
            experts=self.num_experts,
            top_k=self.top_k_experts,
            ffn=self.moe_intermediate_size,
            shared_ffn=self.intermediate_size,
            router_bias=True,
            router_scale=True,
            shared_first=True,
        )
