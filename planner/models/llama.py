"""Llama and Mistral: grouped-query attention, RMSNorm, a gated MLP, no positions."""

from typing import ClassVar, Self

from pydantic import PositiveInt, model_validator

from planner.models.architecture import Architecture
from planner.models.blocks import Attention, LayerKind, Mlp, Moe
from planner.models.config import FamilyConfig, require_divisible


class GroupedQueryConfig(FamilyConfig):
    """Fields that Llama, Mistral and Mixtral share.

    Absent num_key_value_heads means one per query head; absent head_dim means
    hidden_size / num_attention_heads.
    """

    hidden_size: PositiveInt
    intermediate_size: PositiveInt
    num_hidden_layers: PositiveInt
    num_attention_heads: PositiveInt
    vocab_size: PositiveInt
    num_key_value_heads: PositiveInt | None = None
    head_dim: PositiveInt | None = None
    max_position_embeddings: PositiveInt | None = None
    tie_word_embeddings: bool = False

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        if self.num_key_value_heads is not None:
            require_divisible(self, "num_attention_heads", "num_key_value_heads")
        if self.head_dim is None:
            otherwise = "; give head_dim if that is meant"
            require_divisible(self, "hidden_size", "num_attention_heads", otherwise)
        return self

    def _attention(self, *, bias: bool = False, window: int | None = None) -> Attention:
        heads = self.num_attention_heads
        return Attention(
            self.hidden_size,
            heads,
            self.num_key_value_heads or heads,
            self.head_dim or self.hidden_size // heads,
            qkv_bias=bias,
            out_bias=bias,
            window=window,
        )

    def _of_layers(self, layer: LayerKind, name: str, source: str) -> Architecture:
        return Architecture(
            name=name,
            family=self.family,
            hidden=self.hidden_size,
            vocab=self.vocab_size,
            runs=((layer, self.num_hidden_layers),),
            tied_embeddings=self.tie_word_embeddings,
            learned_positions=0,
            norm="rmsnorm",
            mtp_layers=0,
            source=source,
            max_position=self.max_position_embeddings,
        )

    def _layer(self, attention: Attention, ffn: Mlp | Moe) -> LayerKind:
        name = "moe" if isinstance(ffn, Moe) else "dense"
        return LayerKind(name, attention, ffn, "rmsnorm")


class LlamaConfig(GroupedQueryConfig):
    """Fields of a Llama config, of every generation.

    attention_bias puts biases on all four projections, mlp_bias on all three.
    """

    family: ClassVar[str] = "llama"
    hf_class: ClassVar[str] = "LlamaForCausalLM"

    attention_bias: bool = False
    mlp_bias: bool = False

    def architecture(self, name: str, source: str) -> Architecture:
        """Architecture of one layer kind.

        Args:
            name: Name for the model.
            source: Where the fields come from.

        Returns:
            The architecture.
        """
        attention = self._attention(bias=self.attention_bias)
        mlp = Mlp(
            self.hidden_size, self.intermediate_size, gated=True, bias=self.mlp_bias
        )
        return self._of_layers(self._layer(attention, mlp), name, source)


class MistralConfig(GroupedQueryConfig):
    """Fields of a Mistral config.

    sliding_window has to be there, if only as null: Hugging Face's default is a
    window, that of most Mistral models is none.
    """

    family: ClassVar[str] = "mistral"
    hf_class: ClassVar[str] = "MistralForCausalLM"

    sliding_window: PositiveInt | None

    def architecture(self, name: str, source: str) -> Architecture:
        """Architecture of one layer kind.

        Args:
            name: Name for the model.
            source: Where the fields come from.

        Returns:
            The architecture.
        """
        attention = self._attention(window=self.sliding_window)
        mlp = Mlp(self.hidden_size, self.intermediate_size, gated=True)
        return self._of_layers(self._layer(attention, mlp), name, source)
