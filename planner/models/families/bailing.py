"""Ling and Ring of generation 2: norms per head, fine experts chosen by groups."""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import NonNegativeInt, PositiveInt
from planner.models.config import require_at_most, require_divisible
from planner.models.layers.blocks import Attention, LayerKind, Moe
from planner.models.layers.grouped_query import GroupedQueryConfig


class BailingMoeV2Config(GroupedQueryConfig):
    """Fields of a Ling 2.0 or Ring 2.0 config: dense layers first, then fine experts.

    The router has a bias per expert, which balances load. Left out, and refused:
    biases of the linear layers.
    Source: modeling_bailing_moe_v2.py of inclusionAI/Ling-mini-2.0.
    """

    family: ClassVar[str] = "bailing_moe_v2"
    hf_class: ClassVar[str] = "BailingMoeV2ForCausalLM"

    moe_intermediate_size: PositiveInt
    num_experts: PositiveInt
    num_experts_per_tok: PositiveInt
    num_shared_experts: NonNegativeInt | None
    first_k_dense_replace: NonNegativeInt
    n_group: PositiveInt = 1
    topk_group: PositiveInt = 1
    use_qk_norm: bool = True
    use_bias: Literal[False] = False
    use_qkv_bias: Literal[False] = False
    moe_router_enable_expert_bias: bool = True
    num_nextn_predict_layers: NonNegativeInt = 0

    @model_validator(mode="after")
    def _check_experts(self) -> Self:
        require_at_most(self, "num_experts_per_tok", "num_experts")
        require_at_most(self, "first_k_dense_replace", "num_hidden_layers")
        require_at_most(self, "topk_group", "n_group")
        require_divisible(self, "num_experts", "n_group")
        return self

    def _mtp_layers(self) -> int:
        return self.num_nextn_predict_layers

    def _attention(self) -> Attention:
        return replace(super()._attention(), qk_norm=self.use_qk_norm)

    def _moe(self) -> Moe:
        return Moe(
            hidden=self.hidden_size,
            experts=self.num_experts,
            top_k=self.num_experts_per_tok,
            ffn=self.moe_intermediate_size,
            shared_ffn=(self.num_shared_experts or 0) * self.moe_intermediate_size,
            router_bias=self.moe_router_enable_expert_bias,
            groups=self.n_group,
            top_groups=self.topk_group,
        )

    def _layers(self) -> Iterable[LayerKind]:
        first = self.first_k_dense_replace
        dense = self._layer(self._attention(), self._ffn())
        moe = self._layer(self._attention(), self._moe())
        return [dense] * first + [moe] * (self.num_hidden_layers - first)
