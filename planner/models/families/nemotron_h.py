"""Nemotron-H and Nemotron-3: every layer is one half: scan, attention or MLP."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import NonNegativeInt, PositiveInt
from planner.models.architecture import Architecture
from planner.models.config import require_words
from planner.models.layers.blocks import Attention, LayerKind, Mlp, Moe, StateSpace
from planner.models.layers.grouped_query import GroupedQueryConfig

_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_OTHER_WORDS = {"linear_attention": "mamba", "full_attention": "attention"}
HALVES = tuple(_LETTERS.values())


class NemotronHConfig(GroupedQueryConfig):
    """Fields of a Nemotron-H or Nemotron-3 config.

    hybrid_override_pattern has a letter for each layer: M for Mamba-2, * for attention,
    - for an MLP, E for experts; layers_block_type has words. Experts and MLPs have no
    gate, and the router has a bias per expert; moe_latent_size puts the experts behind
    a projection. A prediction module has one attention and one half with experts.
    Left out, and refused: prediction modules of other layers.
    """

    family: ClassVar[str] = "nemotron_h"
    hf_class: ClassVar[str] = "NemotronHForCausalLM"
    other_names: ClassVar[dict[str, str]] = {
        "mamba_n_groups": "n_groups",
        "mamba_d_conv": "conv_kernel",
        "mamba_chunk_size": "chunk_size",
        "mamba_conv_bias": "use_conv_bias",
        "num_local_experts": "n_routed_experts",
        "layer_types": "layers_block_type",
    }

    head_dim: PositiveInt
    layers_block_type: list[str]
    attention_bias: Literal[False] = False
    mlp_bias: bool = False
    use_bias: bool = False
    use_conv_bias: bool = True
    ssm_state_size: PositiveInt
    mamba_num_heads: PositiveInt
    mamba_head_dim: PositiveInt
    n_groups: PositiveInt
    conv_kernel: PositiveInt
    chunk_size: PositiveInt
    n_routed_experts: PositiveInt = 1
    num_experts_per_tok: PositiveInt = 1
    moe_intermediate_size: PositiveInt = 1
    moe_shared_expert_intermediate_size: NonNegativeInt = 0
    moe_latent_size: PositiveInt | None = None
    num_nextn_predict_layers: NonNegativeInt = 0
    mtp_hybrid_override_pattern: Literal["*E"] = "*E"

    @classmethod
    def _own_names(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        named = super()._own_names(config)
        letters = named.pop("hybrid_override_pattern", None)
        words = named.get("layers_block_type")
        if words is None and isinstance(letters, str):
            words = [_LETTERS.get(letter, letter) for letter in letters]
        if isinstance(words, list):
            words = [_OTHER_WORDS.get(str(word), word) for word in words]
            named.setdefault("num_hidden_layers", len(words))
        return named | {"layers_block_type": words}

    @model_validator(mode="after")
    def _check_layers(self) -> Self:
        require_words(self, "layers_block_type", HALVES)
        if (
            "moe" in self.layers_block_type
            and self.num_experts_per_tok > self.n_routed_experts
        ):
            raise ValueError(
                f"num_experts_per_tok {self.num_experts_per_tok} is more than "
                f"n_routed_experts {self.n_routed_experts}"
            )
        return self

    def architecture(self, name: str, source: str) -> Architecture:
        """Architecture of halves, with the layer of its prediction modules.

        Args:
            name: Name for the model.
            source: Citation, URL or path of the fields.
        """
        found = super().architecture(name, source)
        if not self.num_nextn_predict_layers:
            return found
        module = LayerKind("mtp", self._attention(), self._moe(), self.norm)
        return replace(found, mtp_layer=module)

    def _mtp_layers(self) -> int:
        return self.num_nextn_predict_layers

    def _layers(self) -> Iterable[LayerKind]:
        return [self._half(word) for word in self.layers_block_type]

    def _half(self, word: str) -> LayerKind:
        nothing = Mlp(self.hidden_size, 0, gated=False)
        absent = replace(self._attention(), head_dim=0)
        halves: dict[str, tuple[Attention | StateSpace, Mlp | Moe]] = {
            "mamba": (self._scan(), nothing),
            "attention": (self._attention(), nothing),
            "mlp": (absent, self._mlp()),
            "moe": (absent, self._moe()),
        }
        return LayerKind(word, *halves[word], self.norm, norms=1)

    def _mlp(self) -> Mlp:
        return Mlp(
            self.hidden_size, self.intermediate_size, gated=False, bias=self.mlp_bias
        )

    def _scan(self) -> StateSpace:
        return StateSpace(
            hidden=self.hidden_size,
            state_heads=self.mamba_num_heads,
            head_dim=self.mamba_head_dim,
            groups=self.n_groups,
            state=self.ssm_state_size,
            conv=self.conv_kernel,
            chunk=self.chunk_size,
            conv_bias=self.use_conv_bias,
            bias=self.use_bias,
            out_bias=self.use_bias,
        )

    def _moe(self) -> Moe:
        return Moe(
            hidden=self.hidden_size,
            experts=self.n_routed_experts,
            top_k=self.num_experts_per_tok,
            ffn=self.moe_intermediate_size,
            shared_ffn=self.moe_shared_expert_intermediate_size,
            gated=False,
            router_bias=True,
            latent=self.moe_latent_size,
        )
