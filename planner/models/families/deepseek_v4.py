"""DeepSeek-V4: compressed keys, copies of the residual stream, experts everywhere."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import NonNegativeInt, PositiveInt
from planner.models.architecture import Architecture, runs_of
from planner.models.config import FamilyConfig, require_at_most, require_divisible
from planner.models.layers.blocks import (
    CompressedAttention,
    HyperConnections,
    LayerKind,
    Moe,
)

LayerType = Literal[
    "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"
]
MlpType = Literal["hash_moe", "moe"]
_OF_RATIO = {
    0: "sliding_attention",
    4: "compressed_sparse_attention",
    128: "heavily_compressed_attention",
}
_SHORT = {
    "sliding_attention": "sliding",
    "compressed_sparse_attention": "csa",
    "heavily_compressed_attention": "hca",
}
_RATES = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}


class DeepseekV4Config(FamilyConfig):
    """Fields of a DeepSeek-V4 config.

    compress_ratios has the tokens of a compressed key for each layer: 0, 4 or 128;
    layer_types says it in words. The first num_hash_layers choose experts by the token
    itself and have no bias to balance load.

    Left out: their table of experts by token, which does not train; prediction layers'
    attention, taken to be the last layer's. Left out, and refused: biases.
    """

    family: ClassVar[str] = "deepseek_v4"
    hf_class: ClassVar[str] = "DeepseekV4ForCausalLM"
    other_names: ClassVar[dict[str, str]] = {"num_local_experts": "n_routed_experts"}

    hidden_size: PositiveInt
    moe_intermediate_size: PositiveInt
    num_hidden_layers: PositiveInt
    num_attention_heads: PositiveInt
    head_dim: PositiveInt
    vocab_size: PositiveInt
    q_lora_rank: PositiveInt
    n_routed_experts: PositiveInt
    num_experts_per_tok: PositiveInt
    n_shared_experts: NonNegativeInt = 1
    layer_types: list[LayerType]
    mlp_layer_types: list[MlpType]
    compress_rates: dict[str, PositiveInt]
    hc_mult: PositiveInt = 4
    sliding_window: PositiveInt
    o_groups: PositiveInt
    o_lora_rank: PositiveInt
    index_n_heads: PositiveInt
    index_head_dim: PositiveInt
    index_topk: PositiveInt
    num_key_value_heads: Literal[1] = 1
    num_nextn_predict_layers: NonNegativeInt = 0
    attention_bias: Literal[False] = False
    mlp_bias: Literal[False] = False
    max_position_embeddings: PositiveInt | None = None
    tie_word_embeddings: bool = False

    @classmethod
    def _own_names(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        named = super()._own_names(config)
        ratios, layers = named.get("compress_ratios"), named.get("num_hidden_layers")
        hashed = named.get("num_hash_layers", 3)
        named.setdefault("compress_rates", dict(_RATES))
        if isinstance(ratios, list) and isinstance(layers, int):
            words = [_OF_RATIO.get(ratio, ratio) for ratio in ratios[:layers]]
            named.setdefault("layer_types", words)
        if isinstance(layers, int) and isinstance(hashed, int):
            kinds = ["hash_moe" if i < hashed else "moe" for i in range(layers)]
            named.setdefault("mlp_layer_types", kinds)
        return named

    @model_validator(mode="after")
    def _check(self) -> Self:
        require_at_most(self, "num_experts_per_tok", "n_routed_experts")
        require_divisible(self, "num_attention_heads", "o_groups")
        for name in ("layer_types", "mlp_layer_types"):
            given = len(getattr(self, name))
            if given != self.num_hidden_layers:
                raise ValueError(
                    f"{name} has {given} entries; num_hidden_layers is "
                    f"{self.num_hidden_layers}"
                )
        for word in set(self.layer_types) & set(_RATES):
            if word not in self.compress_rates:
                raise ValueError(f"compress_rates has no {word}, as layer_types has")
        return self

    def architecture(self, name: str, source: str) -> Architecture:
        """Architecture of layers with experts, and the collapse of stream copies.

        Args:
            name: Name for the model.
            source: Citation, URL or path of the fields.
        """
        copies = self.hc_mult
        return Architecture(
            name=name,
            family=self.family,
            hidden=self.hidden_size,
            vocab=self.vocab_size,
            runs=runs_of(self._layers()),
            tied_embeddings=self.tie_word_embeddings,
            learned_positions=0,
            norm="rmsnorm",
            mtp_layers=self.num_nextn_predict_layers,
            source=source,
            max_position=self.max_position_embeddings,
            outer_weights=copies * copies * self.hidden_size,
            outer_vectors=copies + 1,
        )

    def _layers(self) -> Iterable[LayerKind]:
        stream = HyperConnections(self.hidden_size, self.hc_mult)
        for word, chosen in zip(self.layer_types, self.mlp_layer_types, strict=True):
            name = f"{_SHORT[word]}-{chosen.removesuffix('_moe').replace('moe', '')}moe"
            moe = replace(self._moe(), router_bias=chosen == "moe")
            attention = self._attention(word)
            yield LayerKind(
                name.replace("hashmoe", "hash-moe"),
                attention,
                moe,
                "rmsnorm",
                stream=stream,
            )

    def _attention(self, word: str) -> CompressedAttention:
        plain = CompressedAttention(
            hidden=self.hidden_size,
            heads=self.num_attention_heads,
            head_dim=self.head_dim,
            q_rank=self.q_lora_rank,
            out_groups=self.o_groups,
            out_rank=self.o_lora_rank,
            window=self.sliding_window,
        )
        if word == "sliding_attention":
            return plain
        compressed = replace(plain, rate=self.compress_rates[word])
        if word == "heavily_compressed_attention":
            return compressed
        return replace(
            compressed,
            index_heads=self.index_n_heads,
            index_dim=self.index_head_dim,
            top_k=self.index_topk,
        )

    def _moe(self) -> Moe:
        return Moe(
            hidden=self.hidden_size,
            experts=self.n_routed_experts,
            top_k=self.num_experts_per_tok,
            ffn=self.moe_intermediate_size,
            shared_ffn=self.n_shared_experts * self.moe_intermediate_size,
        )
