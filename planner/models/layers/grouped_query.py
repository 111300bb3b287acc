"""Fields and layers that most families share; a family says where it differs."""

from collections.abc import Iterable
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import PositiveInt
from planner.models.architecture import Architecture, runs_of
from planner.models.config import FamilyConfig, require_divisible
from planner.models.layers.blocks import (
    Attention,
    LayerKind,
    Mlp,
    Moe,
    Norm,
    ScanBlock,
)


class GroupedQueryConfig(FamilyConfig):
    """Fields of a decoder with multi-head or grouped-query attention.

    Absent num_key_value_heads means one per query head; absent head_dim means
    hidden_size / num_attention_heads. As it stands: RMSNorm before each half, a
    gated MLP, no biases, no positions, all layers alike.
    """

    norm: ClassVar[Norm] = "rmsnorm"
    norms: ClassVar[int] = 2
    norm_behind: ClassVar[bool] = False
    parallel: ClassVar[bool] = False
    gated: ClassVar[bool] = True
    embedding_norm: ClassVar[bool] = False

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

    def architecture(self, name: str, source: str) -> Architecture:
        """Architecture of these layers between an embedding and a head.

        Args:
            name: Name for the model.
            source: Citation, URL or path of the fields.
        """
        return Architecture(
            name=name,
            family=self.family,
            hidden=self.hidden_size,
            vocab=self.vocab_size,
            runs=runs_of(self._layers()),
            tied_embeddings=self.tie_word_embeddings,
            learned_positions=self._positions(),
            norm=self.norm,
            mtp_layers=self._mtp_layers(),
            source=source,
            max_position=self.max_position_embeddings,
            embedding_norm=self.embedding_norm,
            logit_cap=self._logit_cap(),
        )

    def _positions(self) -> int:
        return 0

    def _mtp_layers(self) -> int:
        return 0

    def _logit_cap(self) -> float | None:
        return None

    def _attention(self) -> Attention:
        heads = self.num_attention_heads
        return Attention(
            self.hidden_size,
            heads,
            self.num_key_value_heads or heads,
            self.head_dim or self.hidden_size // heads,
        )

    def _ffn(self) -> Mlp | Moe:
        return Mlp(self.hidden_size, self.intermediate_size, gated=self.gated)

    def _layer(
        self, attention: Attention | ScanBlock, ffn: Mlp | Moe, prefix: str = ""
    ) -> LayerKind:
        return LayerKind(
            prefix + ("moe" if isinstance(ffn, Moe) else "dense"),
            attention,
            ffn,
            self.norm,
            self.norms,
            self.parallel,
            norm_behind=self.norm_behind,
        )

    def _layers(self) -> Iterable[LayerKind]:
        layer = self._layer(self._attention(), self._ffn())
        return [layer] * self.num_hidden_layers


class AlternatingConfig(GroupedQueryConfig):
    """Layers with a sliding window among layers that attend to all.

    layer_types says it per layer; without it every n-th layer is global, n the
    family's period.
    """

    period: ClassVar[int]
    local: ClassVar[str] = "sliding"

    layer_types: (
        list[Literal["sliding_attention", "chunked_attention", "full_attention"]] | None
    ) = None

    @model_validator(mode="after")
    def _check_types(self) -> Self:
        types, layers = self.layer_types, self.num_hidden_layers
        if types is not None and len(types) != layers:
            raise ValueError(
                f"layer_types has {len(types)} entries; num_hidden_layers is {layers}"
            )
        return self

    def _local_attention(self) -> Attention:
        raise NotImplementedError

    def _ffn_of(self, layer: int) -> Mlp | Moe:
        assert 0 <= layer < self.num_hidden_layers
        return self._ffn()

    def _is_local(self, layer: int) -> bool:
        if self.layer_types is not None:
            return self.layer_types[layer] != "full_attention"
        return (layer + 1) % self._period() != 0

    def _period(self) -> int:
        return self.period

    def _layers(self) -> Iterable[LayerKind]:
        for layer in range(self.num_hidden_layers):
            ffn = self._ffn_of(layer)
            if self._is_local(layer):
                yield self._layer(self._local_attention(), ffn, f"{self.local}-")
            else:
                yield self._layer(self._attention(), ffn, "global-")
