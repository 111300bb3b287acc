"""Hunyuan V1, dense and with experts: an RMSNorm per head on queries and keys."""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import PositiveInt
from planner.models.layers.blocks import Attention, LayerKind, Moe
from planner.models.layers.grouped_query import GroupedQueryConfig


class HunyuanConfig(GroupedQueryConfig):
    """Fields of a dense Hunyuan config; attention_bias is for all four projections."""

    family: ClassVar[str] = "hunyuan_v1_dense"
    hf_class: ClassVar[str] = "HunYuanDenseV1ForCausalLM"

    attention_bias: bool = False
    use_qk_norm: Literal[True] = True

    def _attention(self) -> Attention:
        bias = self.attention_bias
        inherited = super()._attention()
        return replace(inherited, qkv_bias=bias, out_bias=bias, qk_norm=True)


class HunyuanMoeConfig(HunyuanConfig):
    """Fields of a Hunyuan config with experts in every layer, and one shared expert.

    intermediate_size is one expert's width. moe_topk may have one entry a layer.
    """

    family: ClassVar[str] = "hunyuan_v1_moe"
    hf_class: ClassVar[str] = "HunYuanMoEV1ForCausalLM"
    other_names: ClassVar[dict[str, str]] = {
        "num_experts_per_tok": "moe_topk",
        "num_local_experts": "num_experts",
    }

    num_experts: PositiveInt
    moe_topk: PositiveInt | list[PositiveInt]

    @model_validator(mode="after")
    def _check_experts(self) -> Self:
        chosen, layers = self._chosen(), self.num_hidden_layers
        if len(chosen) != layers:
            raise ValueError(
                f"moe_topk has {len(chosen)} entries; num_hidden_layers is {layers}"
            )
        if max(chosen) > self.num_experts:
            raise ValueError(
                f"moe_topk {max(chosen)} is more than num_experts {self.num_experts}"
            )
        return self

    def _chosen(self) -> list[int]:
        """Experts of a token, by layer."""
        if isinstance(self.moe_topk, int):
            return [self.moe_topk] * self.num_hidden_layers
        return self.moe_topk

    def _layers(self) -> Iterable[LayerKind]:
        several = len(set(self._chosen())) > 1
        for chosen in self._chosen():
            prefix = f"top{chosen}-" if several else ""
            yield self._layer(self._attention(), self._moe(chosen), prefix)

    def _moe(self, chosen: int) -> Moe:
        return Moe(
            hidden=self.hidden_size,
            experts=self.num_experts,
            top_k=chosen,
            ffn=self.intermediate_size,
            shared_ffn=self.intermediate_size,
            shared_first=True,
        )
