"""GPT-2 and GPT-3: learned positions, LayerNorm, biases, an MLP without a gate."""

from typing import ClassVar, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import PositiveInt
from planner.models.architecture import Architecture
from planner.models.config import FamilyConfig, require_divisible
from planner.models.layers.blocks import Attention, LayerKind, Mlp

# n_inner null means 4 h. Source: transformers, GPT2Config.
_INNER_RATIO = 4


class Gpt2Config(FamilyConfig):
    """Fields of a GPT-2 config; GPT-3 and Megatron's GPT models share them.

    P = 12 L h^2 (1 + 13 / (12 h) + (V + s) / (12 L h)) + 2 h, if n_inner = 4 h.
    The 2 h are the final norm, which the closed form of the source leaves out.
    Source: Narayanan et al. 2021, arXiv 2104.04473, equation 2.
    """

    family: ClassVar[str] = "gpt2"
    hf_class: ClassVar[str] = "GPT2LMHeadModel"

    n_embd: PositiveInt
    n_layer: PositiveInt
    n_head: PositiveInt
    n_positions: PositiveInt
    vocab_size: PositiveInt
    n_inner: PositiveInt | None = None
    tie_word_embeddings: bool = True

    @model_validator(mode="after")
    def _check(self) -> Self:
        require_divisible(self, "n_embd", "n_head")
        return self

    def architecture(self, name: str, source: str) -> Architecture:
        """Architecture of one layer kind.

        Args:
            name: Name for the model.
            source: Citation, URL or path of the fields.
        """
        return Architecture(
            name=name,
            family=self.family,
            hidden=self.n_embd,
            vocab=self.vocab_size,
            runs=((self._layer(), self.n_layer),),
            tied_embeddings=self.tie_word_embeddings,
            learned_positions=self.n_positions,
            norm="layernorm",
            mtp_layers=0,
            source=source,
            max_position=self.n_positions,
        )

    def _layer(self) -> LayerKind:
        h, heads = self.n_embd, self.n_head
        groups = self._kv_heads()
        attention = Attention(
            h, heads, groups, h // heads, qkv_bias=True, out_bias=True
        )
        inner = self.n_inner or _INNER_RATIO * h
        mlp = Mlp(h, inner, gated=False, bias=True)
        return LayerKind("dense", attention, mlp, "layernorm")

    def _kv_heads(self) -> int:
        """Key-value heads: as many as query heads. [1]."""
        return self.n_head
