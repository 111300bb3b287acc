"""Cohere's Command models: halves in parallel behind one LayerNorm without bias."""

from dataclasses import replace
from typing import ClassVar

from planner.hardware.reading.numbers import PositiveInt
from planner.models.layers.blocks import Attention, Norm
from planner.models.layers.grouped_query import AlternatingConfig, GroupedQueryConfig


class CohereConfig(GroupedQueryConfig):
    """Fields of a Command R config.

    use_qk_norm gives queries and keys a norm with a weight per column of all heads.
    """

    family: ClassVar[str] = "cohere"
    hf_class: ClassVar[str] = "CohereForCausalLM"
    norm: ClassVar[Norm] = "layernorm-no-bias"
    norms: ClassVar[int] = 1
    parallel: ClassVar[bool] = True

    tie_word_embeddings: bool = True
    attention_bias: bool = False
    use_qk_norm: bool = False

    def _attention(self) -> Attention:
        bias = self.attention_bias
        return replace(
            super()._attention(),
            qkv_bias=bias,
            out_bias=bias,
            wide_qk_norm=self.use_qk_norm,
        )


class Cohere2Config(AlternatingConfig, CohereConfig):
    """Fields of a Command R7B or Command A config: one global layer in four."""

    family: ClassVar[str] = "cohere2"
    hf_class: ClassVar[str] = "Cohere2ForCausalLM"
    period: ClassVar[int] = 4

    sliding_window: PositiveInt | None
    sliding_window_pattern: PositiveInt = 4

    def _period(self) -> int:
        return self.sliding_window_pattern

    def _local_attention(self) -> Attention:
        return replace(self._attention(), window=self.sliding_window)
