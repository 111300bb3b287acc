"""Zamba 2: state spaces, and blocks of attention and MLP that several layers share."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import PositiveInt
from planner.models.config import require_words
from planner.models.layers.blocks import (
    Attention,
    LayerKind,
    Mlp,
    SharedBlock,
    SideBySide,
    StateSpace,
)
from planner.models.layers.grouped_query import GroupedQueryConfig

_WORDS = {"m": "mamba", "linear_attention": "mamba", "g": "hybrid"}
KINDS = ("mamba", "hybrid")
"""Words of layers_block_type. [text]"""


class Zamba2Config(GroupedQueryConfig):
    """Fields of a Zamba 2 config.

    Every layer is a Mamba-2 half. A hybrid one runs a block of attention and MLP before
    it, whose weights are those of the hybrid layer num_mem_blocks before: a block is
    held by the layer that runs it first. Adapters and the product behind the block are
    each layer's own.

    Source: transformers 5.23, models/zamba2/modeling_zamba2.py.
    """

    family: ClassVar[str] = "zamba2"
    hf_class: ClassVar[str] = "Zamba2ForCausalLM"
    other_names: ClassVar[dict[str, str]] = {
        "layer_types": "layers_block_type",
        "attention_head_dim": "head_dim",
        "ffn_hidden_size": "intermediate_size",
        "lora_rank": "adapter_rank",
        "state_size": "mamba_d_state",
        "conv_dimension": "mamba_d_conv",
        "expansion_factor": "mamba_expand",
        "use_shared_attention_lora": "use_shared_attention_adapter",
    }

    layers_block_type: list[str]
    num_mem_blocks: PositiveInt = 1
    adapter_rank: PositiveInt = 128
    use_shared_attention_adapter: bool = False
    add_bias_linear: bool = False
    n_mamba_heads: PositiveInt
    mamba_d_state: PositiveInt = 64
    mamba_d_conv: PositiveInt = 4
    mamba_expand: PositiveInt = 2
    mamba_ngroups: PositiveInt = 1
    chunk_size: PositiveInt = 256
    tie_word_embeddings: bool = True

    @classmethod
    def _own_names(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        named = super()._own_names(config)
        words = named.get("layers_block_type")
        if isinstance(words, list):
            named["layers_block_type"] = [_WORDS.get(str(w), w) for w in words]
        wide, heads = named.get("hidden_size"), named.get("num_attention_heads")
        if isinstance(wide, int) and isinstance(heads, int) and heads > 0:
            named["head_dim"] = 2 * wide // heads
        if isinstance(wide, int) and named.get("intermediate_size") is None:
            named["intermediate_size"] = 4 * wide
        return _with_heads(named, wide)

    @model_validator(mode="after")
    def _check_layers(self) -> Self:
        require_words(self, "layers_block_type", KINDS)
        return self

    @model_validator(mode="after")
    def _check_widths(self) -> Self:
        pair, inner = 2 * self.hidden_size, self.mamba_expand * self.hidden_size
        for name, whole in (("num_attention_heads", pair), ("n_mamba_heads", inner)):
            count = getattr(self, name)
            if whole % count:
                raise ValueError(f"{name} {count} does not divide {whole}")
        keys = self.num_key_value_heads or self.num_attention_heads
        if self.use_shared_attention_adapter and keys != self.num_attention_heads:
            raise ValueError(
                f"num_key_value_heads is {keys}; adapters of attention need the "
                f"{self.num_attention_heads} of num_attention_heads"
            )
        return self

    def _attention(self) -> Attention:
        return replace(super()._attention(), input_width=2 * self.hidden_size)

    def _layers(self) -> Iterable[LayerKind]:
        hybrids = 0
        for word in self.layers_block_type:
            if word == "mamba":
                nothing = Mlp(self.hidden_size, 0, gated=False)
                yield LayerKind(word, self._scan(), nothing, self.norm, norms=1)
                continue
            yield self._hybrid(held=hybrids < self.num_mem_blocks)
            hybrids += 1

    def _hybrid(self, *, held: bool) -> LayerKind:
        scan, h = self._scan(), self.hidden_size
        beside = replace(self._attention(), held=held)
        both = SideBySide(**vars(scan), beside=beside)
        bias = self.add_bias_linear
        mlp = Mlp(h, self.intermediate_size, gated=True, bias=bias, held=held)
        around = SharedBlock(
            hidden=h,
            rank=self.adapter_rank,
            inner=mlp.inner_width,
            attends=self.use_shared_attention_adapter,
            held=held,
        )
        name = "hybrid" if held else "hybrid-shared"
        return LayerKind(name, both, mlp, self.norm, norms=1, stream=around)

    def _scan(self) -> StateSpace:
        wide = self.mamba_expand * self.hidden_size
        return StateSpace(
            hidden=self.hidden_size,
            state_heads=self.n_mamba_heads,
            head_dim=wide // self.n_mamba_heads,
            groups=self.mamba_ngroups,
            state=self.mamba_d_state,
            conv=self.mamba_d_conv,
            chunk=self.chunk_size,
            bias=self.add_bias_linear,
            out_bias=self.add_bias_linear,
        )


def _with_heads(named: dict[str, Any], wide: object) -> dict[str, Any]:
    """Fields with the state space's heads, where a config has their width alone."""
    each, expand = named.get("mamba_headdim"), named.get("mamba_expand", 2)
    if named.get("n_mamba_heads") is None and all(
        isinstance(one, int) and one > 0 for one in (each, expand, wide)
    ):
        return named | {"n_mamba_heads": expand * wide // each}
    return named
