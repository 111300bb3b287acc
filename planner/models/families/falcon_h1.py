"""Falcon-H1: a state space and attention side by side in every layer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import PositiveInt
from planner.models.layers.blocks import Attention, LayerKind, Mlp, SideBySide
from planner.models.layers.grouped_query import GroupedQueryConfig


class FalconH1Config(GroupedQueryConfig):
    """Fields of a Falcon-H1 config; multipliers of its parts are no work.

    mamba_d_ssm is the width of the state space, mamba_expand hidden_size where it is
    null; mamba_d_head "auto" divides it among mamba_n_heads.
    """

    family: ClassVar[str] = "falcon_h1"
    hf_class: ClassVar[str] = "FalconH1ForCausalLM"

    attention_bias: bool = False
    mlp_bias: bool = False
    projectors_bias: bool = False
    mamba_d_ssm: PositiveInt
    mamba_n_heads: PositiveInt
    mamba_d_head: PositiveInt
    mamba_n_groups: PositiveInt = 1
    mamba_d_state: PositiveInt
    mamba_d_conv: PositiveInt = 4
    mamba_chunk_size: PositiveInt = 256
    mamba_conv_bias: bool = True
    mamba_proj_bias: bool = False
    mamba_rms_norm: bool = False

    @classmethod
    def _own_names(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        named = super()._own_names(config)
        wide, heads = named.get("hidden_size"), named.get("mamba_n_heads")
        if named.get("mamba_d_ssm") is None and isinstance(wide, int):
            named["mamba_d_ssm"] = named.get("mamba_expand", 2) * wide
        inner = named.get("mamba_d_ssm")
        if named.get("mamba_d_head") in (None, "auto") and isinstance(inner, int):
            named["mamba_d_head"] = inner // heads if isinstance(heads, int) else 0
        return named

    @model_validator(mode="after")
    def _check_state_space(self) -> Self:
        if self.mamba_n_heads * self.mamba_d_head != self.mamba_d_ssm:
            raise ValueError(
                f"mamba_n_heads {self.mamba_n_heads} times mamba_d_head "
                f"{self.mamba_d_head} is not mamba_d_ssm {self.mamba_d_ssm}"
            )
        return self

    def _attention(self) -> Attention:
        bias = self.attention_bias
        return replace(super()._attention(), qkv_bias=bias, out_bias=bias)

    def _ffn(self) -> Mlp:
        return Mlp(
            self.hidden_size, self.intermediate_size, gated=True, bias=self.mlp_bias
        )

    def _layers(self) -> list[LayerKind]:
        return [self._layer(self._mixer(), self._ffn())] * self.num_hidden_layers

    def _mixer(self) -> SideBySide:
        return SideBySide(
            hidden=self.hidden_size,
            state_heads=self.mamba_n_heads,
            head_dim=self.mamba_d_head,
            groups=self.mamba_n_groups,
            state=self.mamba_d_state,
            conv=self.mamba_d_conv,
            chunk=self.mamba_chunk_size,
            conv_bias=self.mamba_conv_bias,
            bias=self.mamba_proj_bias,
            out_bias=self.projectors_bias,
            gated_norm=self.mamba_rms_norm,
            beside=self._attention(),
        )
