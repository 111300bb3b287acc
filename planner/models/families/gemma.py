"""Gemma 1 to 3: wide heads, tied embeddings, then windows, caps and four norms."""

from dataclasses import replace
from typing import ClassVar

from planner.hardware.reading.numbers import PositiveFloat, PositiveInt
from planner.models.layers.blocks import Attention
from planner.models.layers.grouped_query import AlternatingConfig, GroupedQueryConfig


class GemmaConfig(GroupedQueryConfig):
    """Fields of a Gemma config; head_dim has to be there, it is 256."""

    family: ClassVar[str] = "gemma"
    hf_class: ClassVar[str] = "GemmaForCausalLM"

    head_dim: PositiveInt
    tie_word_embeddings: bool = True
    attention_bias: bool = False

    def _attention(self) -> Attention:
        bias = self.attention_bias
        return replace(super()._attention(), qkv_bias=bias, out_bias=bias)


class Gemma2Config(AlternatingConfig, GemmaConfig):
    """Fields of a Gemma 2 config: every second layer global, caps, four norms."""

    family: ClassVar[str] = "gemma2"
    hf_class: ClassVar[str] = "Gemma2ForCausalLM"
    norms: ClassVar[int] = 4
    period: ClassVar[int] = 2

    sliding_window: PositiveInt | None
    attn_logit_softcapping: PositiveFloat | None = None
    final_logit_softcapping: PositiveFloat | None = None

    def _attention(self) -> Attention:
        return replace(super()._attention(), logit_cap=self.attn_logit_softcapping)

    def _local_attention(self) -> Attention:
        return replace(self._attention(), window=self.sliding_window)

    def _logit_cap(self) -> float | None:
        return self.final_logit_softcapping


class Gemma3Config(Gemma2Config):
    """Fields of the text part of a Gemma 3 config: one global layer in six, QK-norm.

    Left out: the vision tower.
    """

    family: ClassVar[str] = "gemma3_text"
    hf_class: ClassVar[str] = "Gemma3ForCausalLM"

    sliding_window_pattern: PositiveInt = 6

    def _period(self) -> int:
        return self.sliding_window_pattern

    def _attention(self) -> Attention:
        return replace(super()._attention(), qk_norm=True)
