"""OPT: learned positions with an offset of two, LayerNorm, biases, ReLU."""

from dataclasses import replace
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import PositiveInt
from planner.models.layers.blocks import Attention, Mlp
from planner.models.layers.fourfold import FourfoldConfig

# The table starts with two rows that no position uses.
# Source: transformers, OPTLearnedPositionalEmbedding.
_OFFSET = 2


class OptConfig(FourfoldConfig):
    """Fields of an OPT config.

    Left out, and refused: norms after the halves, and an embedding narrower than
    the model (both only OPT-350M has).
    """

    family: ClassVar[str] = "opt"
    hf_class: ClassVar[str] = "OPTForCausalLM"
    other_names: ClassVar[dict[str, str]] = {"ffn_dim": "intermediate_size"}

    max_position_embeddings: PositiveInt
    do_layer_norm_before: Literal[True] = True
    word_embed_proj_dim: PositiveInt | None = None
    enable_bias: bool = True
    tie_word_embeddings: bool = True

    @model_validator(mode="after")
    def _check_width(self) -> Self:
        if self.word_embed_proj_dim not in {None, self.hidden_size}:
            raise ValueError(
                f"word_embed_proj_dim {self.word_embed_proj_dim} is not hidden_size "
                f"{self.hidden_size}: an embedding of another width is not supported"
            )
        return self

    def _positions(self) -> int:
        return self.max_position_embeddings + _OFFSET

    def _attention(self) -> Attention:
        bias = self.enable_bias
        return replace(super()._attention(), qkv_bias=bias, out_bias=bias)

    def _ffn(self) -> Mlp:
        return Mlp(
            self.hidden_size, self.intermediate_size, gated=False, bias=self.enable_bias
        )
