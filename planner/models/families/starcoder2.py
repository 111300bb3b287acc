"""StarCoder2: grouped queries and a window, LayerNorm, biases, no gate."""

from dataclasses import replace
from typing import ClassVar

from planner.hardware.reading.numbers import PositiveInt
from planner.models.layers.blocks import Attention, Mlp, Norm
from planner.models.layers.grouped_query import GroupedQueryConfig


class Starcoder2Config(GroupedQueryConfig):
    """Fields of a StarCoder2 config; sliding_window has to be there or null."""

    family: ClassVar[str] = "starcoder2"
    hf_class: ClassVar[str] = "Starcoder2ForCausalLM"
    norm: ClassVar[Norm] = "layernorm"

    sliding_window: PositiveInt | None
    use_bias: bool = True
    tie_word_embeddings: bool = True

    def _attention(self) -> Attention:
        bias, window = self.use_bias, self.sliding_window
        plain = super()._attention()
        return replace(plain, qkv_bias=bias, out_bias=bias, window=window)

    def _ffn(self) -> Mlp:
        return Mlp(
            self.hidden_size, self.intermediate_size, gated=False, bias=self.use_bias
        )
