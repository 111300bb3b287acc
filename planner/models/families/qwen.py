"""Qwen 2, 2.5 and 3, dense and with experts."""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, Self

from pydantic import Field, model_validator

from planner.hardware.reading.numbers import NonNegativeInt, PositiveInt
from planner.models.config import require_at_most
from planner.models.layers.blocks import Attention, LayerKind, Mlp, Moe
from planner.models.layers.grouped_query import GroupedQueryConfig


class Qwen2Config(GroupedQueryConfig):
    """Fields of a Qwen 2 or 2.5 config: biases on queries, keys and values.

    With use_sliding_window layers from max_window_layers on have the window.
    """

    family: ClassVar[str] = "qwen2"
    hf_class: ClassVar[str] = "Qwen2ForCausalLM"

    use_sliding_window: bool = False
    sliding_window: NonNegativeInt | None = None
    max_window_layers: NonNegativeInt = 28

    def _attention(self) -> Attention:
        return replace(super()._attention(), qkv_bias=True)

    def _layers(self) -> Iterable[LayerKind]:
        for layer in range(self.num_hidden_layers):
            ffn = self._ffn_of(layer)
            if self._is_sliding(layer):
                local = replace(self._attention(), window=self.sliding_window)
                yield self._layer(local, ffn, "sliding-")
            else:
                yield self._layer(self._attention(), ffn)

    def _ffn_of(self, layer: int) -> Mlp | Moe:
        assert 0 <= layer < self.num_hidden_layers
        return self._ffn()

    def _is_sliding(self, layer: int) -> bool:
        windowed = self.use_sliding_window and bool(self.sliding_window)
        return windowed and layer >= self.max_window_layers


class Qwen3Config(Qwen2Config):
    """Fields of a Qwen 3 config: an RMSNorm per head on queries and keys.

    head_dim has to be there: Hugging Face's default is 128 whatever the width.
    """

    family: ClassVar[str] = "qwen3"
    hf_class: ClassVar[str] = "Qwen3ForCausalLM"

    head_dim: PositiveInt
    attention_bias: bool = False

    def _attention(self) -> Attention:
        bias = self.attention_bias
        inherited = super()._attention()
        return replace(inherited, qkv_bias=bias, out_bias=bias, qk_norm=True)


class _ExpertsConfig(Qwen2Config):
    """Fields of the experts: layer i has them if decoder_sparse_step divides i + 1.

    mlp_only_layers lists layers that stay dense all the same.
    """

    other_names: ClassVar[dict[str, str]] = {"num_local_experts": "num_experts"}

    moe_intermediate_size: PositiveInt
    num_experts: PositiveInt
    num_experts_per_tok: PositiveInt
    decoder_sparse_step: PositiveInt = 1
    mlp_only_layers: list[int] = Field(default_factory=list)

    @model_validator(mode="after")
    def _check_experts(self) -> Self:
        require_at_most(self, "num_experts_per_tok", "num_experts")
        return self

    def _moe(self) -> Moe:
        return Moe(
            hidden=self.hidden_size,
            experts=self.num_experts,
            top_k=self.num_experts_per_tok,
            ffn=self.moe_intermediate_size,
            shared_ffn=0,
        )

    def _ffn_of(self, layer: int) -> Mlp | Moe:
        sparse = (layer + 1) % self.decoder_sparse_step == 0
        if sparse and layer not in self.mlp_only_layers:
            return self._moe()
        return self._ffn()


class Qwen2MoeConfig(_ExpertsConfig):
    """Fields of a Qwen 2 MoE config: a shared expert behind a gate of its own."""

    family: ClassVar[str] = "qwen2_moe"
    hf_class: ClassVar[str] = "Qwen2MoeForCausalLM"

    shared_expert_intermediate_size: PositiveInt
    qkv_bias: bool = True

    def _attention(self) -> Attention:
        return replace(super()._attention(), qkv_bias=self.qkv_bias)

    def _moe(self) -> Moe:
        shared = self.shared_expert_intermediate_size
        return replace(super()._moe(), shared_ffn=shared, shared_gate=True)


class Qwen3MoeConfig(_ExpertsConfig, Qwen3Config):
    """Fields of a Qwen 3 MoE config: Qwen 3's attention, no shared expert."""

    family: ClassVar[str] = "qwen3_moe"
    hf_class: ClassVar[str] = "Qwen3MoeForCausalLM"
