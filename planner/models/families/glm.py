"""GLM-4: query biases, then four norms, then fine experts."""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import NonNegativeInt, PositiveInt
from planner.models.config import require_at_most
from planner.models.layers.blocks import Attention, LayerKind, Moe
from planner.models.layers.grouped_query import GroupedQueryConfig


class GlmConfig(GroupedQueryConfig):
    """Fields of a GLM-4 config of 2024; attention_bias is for Q, K and V alone."""

    family: ClassVar[str] = "glm"
    hf_class: ClassVar[str] = "GlmForCausalLM"

    attention_bias: bool = True

    def _attention(self) -> Attention:
        return replace(super()._attention(), qkv_bias=self.attention_bias)


class Glm4Config(GlmConfig):
    """Fields of a GLM-4-0414 config: norms after each half too."""

    family: ClassVar[str] = "glm4"
    hf_class: ClassVar[str] = "Glm4ForCausalLM"
    norms: ClassVar[int] = 4


class Glm4MoeConfig(GlmConfig):
    """Fields of a GLM-4.5 config: dense layers first, then fine experts.

    The router has a bias per expert, which balances load.
    """

    family: ClassVar[str] = "glm4_moe"
    hf_class: ClassVar[str] = "Glm4MoeForCausalLM"

    attention_bias: bool = False
    use_qk_norm: bool = False
    moe_intermediate_size: PositiveInt
    n_routed_experts: PositiveInt
    n_shared_experts: NonNegativeInt | None
    num_experts_per_tok: PositiveInt
    first_k_dense_replace: NonNegativeInt
    num_nextn_predict_layers: NonNegativeInt = 0

    @model_validator(mode="after")
    def _check_experts(self) -> Self:
        require_at_most(self, "num_experts_per_tok", "n_routed_experts")
        require_at_most(self, "first_k_dense_replace", "num_hidden_layers")
        return self

    def _mtp_layers(self) -> int:
        return self.num_nextn_predict_layers

    def _attention(self) -> Attention:
        return replace(super()._attention(), qk_norm=self.use_qk_norm)

    def _moe(self) -> Moe:
        return Moe(
            hidden=self.hidden_size,
            experts=self.n_routed_experts,
            top_k=self.num_experts_per_tok,
            ffn=self.moe_intermediate_size,
            shared_ffn=(self.n_shared_experts or 0) * self.moe_intermediate_size,
            router_bias=True,
        )

    def _layers(self) -> Iterable[LayerKind]:
        first = self.first_k_dense_replace
        dense = self._layer(self._attention(), self._ffn())
        moe = self._layer(self._attention(), self._moe())
        return [dense] * first + [moe] * (self.num_hidden_layers - first)
