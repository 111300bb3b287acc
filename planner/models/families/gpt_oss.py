"""GPT-OSS: attention sinks, short windows, experts with biases."""

from dataclasses import replace
from typing import ClassVar, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import PositiveInt
from planner.models.config import require_at_most
from planner.models.layers.blocks import Attention, Moe
from planner.models.layers.grouped_query import AlternatingConfig


class GptOssConfig(AlternatingConfig):
    """Fields of a GPT-OSS config; intermediate_size is one expert's width.

    Every second layer is global. head_dim has to be there: heads are 64 wide
    whatever the width.
    """

    family: ClassVar[str] = "gpt_oss"
    hf_class: ClassVar[str] = "GptOssForCausalLM"
    period: ClassVar[int] = 2

    head_dim: PositiveInt
    num_local_experts: PositiveInt
    num_experts_per_tok: PositiveInt
    sliding_window: PositiveInt | None
    attention_bias: bool = True

    @model_validator(mode="after")
    def _check_experts(self) -> Self:
        require_at_most(self, "num_experts_per_tok", "num_local_experts")
        return self

    def _attention(self) -> Attention:
        bias = self.attention_bias
        return replace(super()._attention(), qkv_bias=bias, out_bias=bias, sinks=True)

    def _local_attention(self) -> Attention:
        return replace(self._attention(), window=self.sliding_window)

    def _ffn(self) -> Moe:
        return Moe(
            hidden=self.hidden_size,
            experts=self.num_local_experts,
            top_k=self.num_experts_per_tok,
            ffn=self.intermediate_size,
            shared_ffn=0,
            router_bias=True,
            bias=True,
        )
