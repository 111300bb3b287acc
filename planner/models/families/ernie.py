"""ERNIE 4.5, dense and with experts between dense layers."""

from collections.abc import Iterable
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import NonNegativeInt, PositiveInt
from planner.models.config import require_at_most
from planner.models.layers.blocks import LayerKind, Moe
from planner.models.layers.grouped_query import GroupedQueryConfig


class ErnieConfig(GroupedQueryConfig):
    """Fields of a dense ERNIE 4.5 config. Left out, and refused: biases."""

    family: ClassVar[str] = "ernie4_5"
    hf_class: ClassVar[str] = "Ernie4_5ForCausalLM"

    use_bias: Literal[False] = False
    tie_word_embeddings: bool = True


class ErnieMoeConfig(ErnieConfig):
    """Fields of an ERNIE 4.5 config with experts.

    Layer i has experts where moe_layer_interval divides i + 1, from
    moe_layer_start_index to moe_layer_end_index (-1 is the last layer). The router has
    a bias per expert, which balances load.
    """

    family: ClassVar[str] = "ernie4_5_moe"
    hf_class: ClassVar[str] = "Ernie4_5_MoeForCausalLM"
    other_names: ClassVar[dict[str, str]] = {
        "num_experts": "moe_num_experts",
        "num_experts_per_tok": "moe_k",
    }

    moe_intermediate_size: PositiveInt
    moe_num_experts: PositiveInt
    moe_k: PositiveInt
    moe_num_shared_experts: NonNegativeInt
    moe_layer_start_index: NonNegativeInt
    moe_layer_end_index: int = -1
    moe_layer_interval: PositiveInt = 1
    num_nextn_predict_layers: NonNegativeInt = 0

    @model_validator(mode="after")
    def _check_experts(self) -> Self:
        require_at_most(self, "moe_k", "moe_num_experts")
        require_at_most(self, "moe_layer_start_index", "num_hidden_layers")
        return self

    def _mtp_layers(self) -> int:
        return self.num_nextn_predict_layers

    def _moe(self) -> Moe:
        return Moe(
            hidden=self.hidden_size,
            experts=self.moe_num_experts,
            top_k=self.moe_k,
            ffn=self.moe_intermediate_size,
            shared_ffn=self.moe_num_shared_experts * self.moe_intermediate_size,
            router_bias=True,
            shared_first=True,
        )

    def _layers(self) -> Iterable[LayerKind]:
        dense = self._layer(self._attention(), self._ffn())
        moe = self._layer(self._attention(), self._moe())
        for layer in range(self.num_hidden_layers):
            yield moe if self._has_experts(layer) else dense

    def _has_experts(self, layer: int) -> bool:
        last = self.moe_layer_end_index
        within = layer >= self.moe_layer_start_index and (last == -1 or layer <= last)
        return within and (layer + 1) % self.moe_layer_interval == 0
