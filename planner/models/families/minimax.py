"""MiniMax-01 and M1: lightning attention; M2: norms over all heads, fine experts."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import NonNegativeInt, PositiveInt
from planner.models.config import require_at_most
from planner.models.families.mixtral import MixtralConfig
from planner.models.layers.blocks import Attention, LayerKind, Lightning, Moe
from planner.models.layers.grouped_query import GroupedQueryConfig

LayerType = Literal["linear_attention", "full_attention"]
_LAYER_TYPES: tuple[LayerType, ...] = ("linear_attention", "full_attention")


class MinimaxConfig(MixtralConfig):
    """Fields of a MiniMax-Text-01 or MiniMax-M1 config: Mixtral's experts.

    attn_type_list has 0 for lightning attention and 1 for softmax; layer_types has
    words. Left out, and refused: a shared expert, which no published size has. Factors
    of the residual stream are no work.
    """

    family: ClassVar[str] = "minimax"
    hf_class: ClassVar[str] = "MiniMaxForCausalLM"
    aliases: ClassVar[tuple[str, ...]] = (
        "minimax_m1",
        "minimax_text_01",
        "MiniMaxM1ForCausalLM",
        "MiniMaxText01ForCausalLM",
    )
    other_names: ClassVar[dict[str, str]] = {"num_experts": "num_local_experts"}

    layer_types: list[LayerType]
    block_size: PositiveInt = 256
    shared_intermediate_size: Literal[0] = 0

    @classmethod
    def _own_names(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        named = super()._own_names(config)
        numbers = named.get("attn_type_list")
        if isinstance(numbers, list) and set(numbers) <= {0, 1}:
            words = [_LAYER_TYPES[number] for number in numbers]
            named.setdefault("layer_types", words)
        return named

    @model_validator(mode="after")
    def _check_types(self) -> Self:
        types, layers = self.layer_types, self.num_hidden_layers
        if len(types) != layers:
            raise ValueError(
                f"layer_types has {len(types)} entries; num_hidden_layers is {layers}"
            )
        return self

    def _layers(self) -> Iterable[LayerKind]:
        for word in self.layer_types:
            if word == "full_attention":
                yield self._layer(self._attention(), self._ffn(), "attention-")
            else:
                yield self._layer(self._lightning(), self._ffn(), "lightning-")

    def _lightning(self) -> Lightning:
        plain = self._attention()
        return Lightning(
            self.hidden_size, plain.heads, plain.head_dim, chunk=self.block_size
        )


class MinimaxM2Config(GroupedQueryConfig):
    """Fields of a MiniMax-M2 config; intermediate_size is one expert's width.

    head_dim has to be there: heads are 128 wide whatever the width. The router has a
    bias per expert, which balances load.
    """

    family: ClassVar[str] = "minimax_m2"
    hf_class: ClassVar[str] = "MiniMaxM2ForCausalLM"
    other_names: ClassVar[dict[str, str]] = {"num_experts": "num_local_experts"}

    head_dim: PositiveInt
    num_local_experts: PositiveInt
    num_experts_per_tok: PositiveInt
    use_mtp: bool = False
    num_mtp_modules: NonNegativeInt = 0
    mtp_transformer_layers: NonNegativeInt = 1

    @model_validator(mode="after")
    def _check_experts(self) -> Self:
        require_at_most(self, "num_experts_per_tok", "num_local_experts")
        return self

    def _mtp_layers(self) -> int:
        layers = self.num_mtp_modules * self.mtp_transformer_layers
        return layers if self.use_mtp else 0

    def _attention(self) -> Attention:
        return replace(super()._attention(), wide_qk_norm=True)

    def _ffn(self) -> Moe:
        return Moe(
            hidden=self.hidden_size,
            experts=self.num_local_experts,
            top_k=self.num_experts_per_tok,
            ffn=self.intermediate_size,
            shared_ffn=0,
            router_bias=True,
        )
