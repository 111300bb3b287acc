"""Kimi Linear: delta attention with latent attention in every fourth layer."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import PositiveInt
from planner.models.architecture import runs_of
from planner.models.errors import ModelConfigError
from planner.models.families.deepseek import DeepseekV3Config
from planner.models.layers.blocks import KimiDelta, LayerKind, Mlp

LayerType = Literal["linear_attention", "full_attention"]


class KimiLinearConfig(DeepseekV3Config):
    """Fields of a Kimi Linear config.

    linear_attn_config lists layers from 1 on, as the published file does; layer_types
    and the linear_ fields say the same as transformers saves it.
    """

    family: ClassVar[str] = "kimi_linear"
    hf_class: ClassVar[str] = "KimiLinearForCausalLM"
    aliases: ClassVar[tuple[str, ...]] = ()
    other_names: ClassVar[dict[str, str]] = {
        "num_experts": "n_routed_experts",
        "num_local_experts": "n_routed_experts",
        "num_experts_per_token": "num_experts_per_tok",
        "num_shared_experts": "n_shared_experts",
        "num_expert_group": "n_group",
        "model_max_length": "max_position_embeddings",
    }

    layer_types: list[LayerType]
    linear_head_dim: PositiveInt
    linear_num_heads: PositiveInt
    linear_conv_kernel_dim: PositiveInt

    @classmethod
    def _own_names(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        named = super()._own_names(config)
        parts = named.get("linear_attn_config")
        if isinstance(parts, Mapping):
            named.setdefault("linear_head_dim", parts.get("head_dim"))
            named.setdefault("linear_num_heads", parts.get("num_heads"))
            taps = parts.get("short_conv_kernel_size")
            named.setdefault("linear_conv_kernel_dim", taps)
            full, layers = parts.get("full_attn_layers"), named.get("num_hidden_layers")
            if isinstance(layers, int):
                _refuse_beyond(parts, layers)
            if isinstance(full, list) and isinstance(layers, int):
                kinds = ("linear_attention", "full_attention")
                types = [kinds[layer in full] for layer in range(1, layers + 1)]
                named.setdefault("layer_types", types)
        dense = named.get("mlp_layer_types")
        if isinstance(dense, list):
            named.setdefault("first_k_dense_replace", dense.count("dense"))
        return named

    @model_validator(mode="after")
    def _check_types(self) -> Self:
        types, layers = self.layer_types, self.num_hidden_layers
        if len(types) != layers:
            raise ValueError(
                f"layer_types has {len(types)} entries; num_hidden_layers is {layers}"
            )
        return self

    def _runs(self) -> tuple[tuple[LayerKind, int], ...]:
        return runs_of(self._layer(i) for i in self._indices())

    def _layer(self, layer: int) -> LayerKind:
        attends = self.layer_types[layer] == "full_attention"
        mixer = self._attention() if attends else self._delta()
        name = "latent" if attends else "delta"
        if self._is_moe(layer):
            return LayerKind(f"{name}-moe", mixer, self._moe(), "rmsnorm")
        mlp = Mlp(self.hidden_size, self.intermediate_size, gated=True)
        return LayerKind(f"{name}-dense", mixer, mlp, "rmsnorm")

    def _delta(self) -> KimiDelta:
        return KimiDelta(
            hidden=self.hidden_size,
            key_heads=self.linear_num_heads,
            value_heads=self.linear_num_heads,
            key_dim=self.linear_head_dim,
            value_dim=self.linear_head_dim,
            conv=self.linear_conv_kernel_dim,
        )


def _refuse_beyond(parts: Mapping[str, Any], layers: int) -> None:
    """Refuse lists that name a layer twice, or one that the model has not."""
    lists = [parts.get(name) for name in ("full_attn_layers", "kda_layers")]
    named = [layer for each in lists if isinstance(each, list) for layer in each]
    for layer in named:
        if not isinstance(layer, int) or not 1 <= layer <= layers:
            raise ModelConfigError(
                f"linear_attn_config names layer {layer}; layers are 1 to {layers}"
            )
    if len(set(named)) < len(named):
        raise ModelConfigError("linear_attn_config names a layer twice")
