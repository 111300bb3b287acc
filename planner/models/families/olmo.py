"""OLMo 1 to 3 and OLMoE: norms without weights, then norms over all heads."""

from dataclasses import replace
from typing import ClassVar, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import PositiveInt
from planner.models.config import require_at_most
from planner.models.layers.blocks import Attention, Moe, Norm
from planner.models.layers.grouped_query import AlternatingConfig, GroupedQueryConfig


class OlmoConfig(GroupedQueryConfig):
    """Fields of an OLMo config: LayerNorm without weight and bias."""

    family: ClassVar[str] = "olmo"
    hf_class: ClassVar[str] = "OlmoForCausalLM"
    norm: ClassVar[Norm] = "layernorm-plain"

    attention_bias: bool = False

    def _attention(self) -> Attention:
        bias = self.attention_bias
        return replace(super()._attention(), qkv_bias=bias, out_bias=bias)


class Olmo2Config(OlmoConfig):
    """Fields of an OLMo 2 config: RMSNorm after each half and over all heads."""

    family: ClassVar[str] = "olmo2"
    hf_class: ClassVar[str] = "Olmo2ForCausalLM"
    norm: ClassVar[Norm] = "rmsnorm"
    norm_behind: ClassVar[bool] = True

    def _attention(self) -> Attention:
        return replace(super()._attention(), wide_qk_norm=True)


class Olmo3Config(AlternatingConfig, Olmo2Config):
    """Fields of an OLMo 3 config: OLMo 2's blocks, one global layer in four."""

    family: ClassVar[str] = "olmo3"
    hf_class: ClassVar[str] = "Olmo3ForCausalLM"
    period: ClassVar[int] = 4

    sliding_window: PositiveInt | None

    def _local_attention(self) -> Attention:
        return replace(self._attention(), window=self.sliding_window)


class OlmoeConfig(Olmo2Config):
    """Fields of an OLMoE config; intermediate_size is one expert's width."""

    family: ClassVar[str] = "olmoe"
    hf_class: ClassVar[str] = "OlmoeForCausalLM"
    norm_behind: ClassVar[bool] = False

    num_experts: PositiveInt
    num_experts_per_tok: PositiveInt

    @model_validator(mode="after")
    def _check_experts(self) -> Self:
        require_at_most(self, "num_experts_per_tok", "num_experts")
        return self

    def _ffn(self) -> Moe:
        return Moe(
            hidden=self.hidden_size,
            experts=self.num_experts,
            top_k=self.num_experts_per_tok,
            ffn=self.intermediate_size,
            shared_ffn=0,
        )
