"""Qwen 3-Next and 3.5: gated delta layers among gated attention, dense or experts."""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import NonNegativeInt, PositiveInt
from planner.models.config import require_divisible
from planner.models.families.qwen import Qwen2Config, Qwen2MoeConfig
from planner.models.layers.blocks import Attention, GatedDelta, LayerKind

LayerType = Literal["linear_attention", "full_attention"]


class Qwen35Config(Qwen2Config):
    """Fields of the text part of a dense Qwen 3.5 config.

    layer_types says which layers have attention; without it every
    full_attention_interval-th has, and the others the gated delta rule. head_dim and
    the sizes of linear heads have to be there. Left out: the vision tower.
    """

    family: ClassVar[str] = "qwen3_5_text"
    hf_class: ClassVar[str] = "Qwen3_5ForCausalLM"

    head_dim: PositiveInt
    attention_bias: bool = False
    linear_conv_kernel_dim: PositiveInt
    linear_key_head_dim: PositiveInt
    linear_value_head_dim: PositiveInt
    linear_num_key_heads: PositiveInt
    linear_num_value_heads: PositiveInt
    layer_types: list[LayerType] | None = None
    full_attention_interval: PositiveInt = 4
    mtp_num_hidden_layers: NonNegativeInt = 0

    @model_validator(mode="after")
    def _check_hybrid(self) -> Self:
        require_divisible(self, "linear_num_value_heads", "linear_num_key_heads")
        types, layers = self.layer_types, self.num_hidden_layers
        if types is not None and len(types) != layers:
            raise ValueError(
                f"layer_types has {len(types)} entries; num_hidden_layers is {layers}"
            )
        return self

    def _mtp_layers(self) -> int:
        return self.mtp_num_hidden_layers

    def _attention(self) -> Attention:
        bias = self.attention_bias
        return replace(
            super()._attention(),
            qkv_bias=bias,
            out_bias=bias,
            qk_norm=True,
            output_gate=True,
        )

    def _delta(self) -> GatedDelta:
        return GatedDelta(
            hidden=self.hidden_size,
            key_heads=self.linear_num_key_heads,
            value_heads=self.linear_num_value_heads,
            key_dim=self.linear_key_head_dim,
            value_dim=self.linear_value_head_dim,
            conv=self.linear_conv_kernel_dim,
        )

    def _attends(self, layer: int) -> bool:
        if self.layer_types is not None:
            return self.layer_types[layer] == "full_attention"
        return (layer + 1) % self.full_attention_interval == 0

    def _layers(self) -> Iterable[LayerKind]:
        for layer in range(self.num_hidden_layers):
            ffn = self._ffn_of(layer)
            if self._attends(layer):
                yield self._layer(self._attention(), ffn, "attention-")
            else:
                yield self._layer(self._delta(), ffn, "delta-")


class Qwen35MoeConfig(Qwen35Config, Qwen2MoeConfig):
    """Fields of the text part of a Qwen 3.5 config with experts in every layer."""

    family: ClassVar[str] = "qwen3_5_moe_text"
    hf_class: ClassVar[str] = "Qwen3_5MoeForCausalLM"

    intermediate_size: PositiveInt = 1


class Qwen3NextConfig(Qwen35MoeConfig):
    """Fields of a Qwen 3-Next config: the blocks of Qwen 3.5 with experts."""

    family: ClassVar[str] = "qwen3_next"
    hf_class: ClassVar[str] = "Qwen3NextForCausalLM"

    intermediate_size: PositiveInt
