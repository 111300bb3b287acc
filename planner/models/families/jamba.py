"""Jamba: selective scans, attention in one layer of eight, experts in every other."""

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any, ClassVar, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import NonNegativeInt, PositiveInt
from planner.models.config import require_at_most
from planner.models.layers.blocks import LayerKind, Mlp, Moe, SelectiveScan
from planner.models.layers.grouped_query import GroupedQueryConfig

_RANK = 16
"""Columns of the model for one of the time step's rank, where it is "auto". [1]"""


class JambaConfig(GroupedQueryConfig):
    """Fields of a Jamba config.

    Layer i attends where i modulo attn_layer_period is attn_layer_offset, and has
    experts where i modulo expert_layer_period is expert_layer_offset; one expert is a
    dense half.
    """

    family: ClassVar[str] = "jamba"
    hf_class: ClassVar[str] = "JambaForCausalLM"
    other_names: ClassVar[dict[str, str]] = {"num_local_experts": "num_experts"}

    num_experts: PositiveInt
    num_experts_per_tok: PositiveInt
    attn_layer_period: PositiveInt
    attn_layer_offset: NonNegativeInt
    expert_layer_period: PositiveInt
    expert_layer_offset: NonNegativeInt
    mamba_d_state: PositiveInt = 16
    mamba_d_conv: PositiveInt = 4
    mamba_expand: PositiveInt = 2
    mamba_dt_rank: PositiveInt
    mamba_conv_bias: bool = True
    mamba_proj_bias: bool = False

    @classmethod
    def _own_names(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        named = super()._own_names(config)
        wide = named.get("hidden_size")
        if named.get("mamba_dt_rank") in (None, "auto") and isinstance(wide, int):
            named["mamba_dt_rank"] = ceil(wide / _RANK)
        return named

    @model_validator(mode="after")
    def _check_layers(self) -> Self:
        require_at_most(self, "num_experts_per_tok", "num_experts")
        for offset in ("attn_layer_offset", "expert_layer_offset"):
            period = offset.replace("offset", "period")
            if getattr(self, offset) >= getattr(self, period):
                raise ValueError(
                    f"{offset} {getattr(self, offset)} is not below {period} "
                    f"{getattr(self, period)}"
                )
        return self

    def _layers(self) -> Iterable[LayerKind]:
        for layer in range(self.num_hidden_layers):
            attends = layer % self.attn_layer_period == self.attn_layer_offset
            routed = layer % self.expert_layer_period == self.expert_layer_offset
            ffn = self._ffn_of(routed=routed and self.num_experts > 1)
            if attends:
                yield self._layer(self._attention(), ffn, "attention-")
            else:
                yield self._layer(self._scan(), ffn, "mamba-")

    def _ffn_of(self, *, routed: bool) -> Mlp | Moe:
        if not routed:
            return self._ffn()
        return Moe(
            hidden=self.hidden_size,
            experts=self.num_experts,
            top_k=self.num_experts_per_tok,
            ffn=self.intermediate_size,
            shared_ffn=0,
        )

    def _scan(self) -> SelectiveScan:
        return SelectiveScan(
            hidden=self.hidden_size,
            columns=self.mamba_expand * self.hidden_size,
            state=self.mamba_d_state,
            rank=self.mamba_dt_rank,
            conv=self.mamba_d_conv,
            conv_bias=self.mamba_conv_bias,
            bias=self.mamba_proj_bias,
        )
