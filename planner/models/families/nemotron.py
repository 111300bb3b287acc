"""Nemotron-4, and Nemotron-NAS, whose blocks were pruned one by one."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

from planner.hardware.reading.numbers import PositiveFloat, PositiveInt
from planner.models.families.llama import LlamaConfig
from planner.models.layers.blocks import Attention, LayerKind, Mlp, Norm
from planner.models.layers.grouped_query import GroupedQueryConfig

# Widths are rounded up to this. Source: modeling_decilm.py, _find_multiple.
_WIDTH_STEP = 256


class NemotronConfig(LlamaConfig):
    """Fields of a Nemotron-4 or Minitron config: LayerNorm, squared ReLU, no gate."""

    family: ClassVar[str] = "nemotron"
    hf_class: ClassVar[str] = "NemotronForCausalLM"
    norm: ClassVar[Norm] = "layernorm"
    gated: ClassVar[bool] = False


class _PrunedAttention(BaseModel):
    """Attention of one block: heads per group, or nothing."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    n_heads_in_group: PositiveInt | None = None
    no_op: bool = False
    replace_with_linear: Literal[False] = False
    window_length: PositiveInt | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.no_op and self.n_heads_in_group is None:
            raise ValueError("an attention block needs n_heads_in_group, or no_op true")
        return self


class _PrunedFfn(BaseModel):
    """Feed-forward half of one block: a multiple of the width, or nothing."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    ffn_mult: PositiveFloat | None = None
    no_op: bool = False
    replace_with_linear: Literal[False] = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.no_op and self.ffn_mult is None:
            raise ValueError("an ffn block needs ffn_mult, or no_op true")
        return self


class _PrunedBlock(BaseModel):
    """One entry of block_configs."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    attention: _PrunedAttention
    ffn: _PrunedFfn

    @property
    def is_empty(self) -> bool:
        """True where neither half is left. [1]."""
        return self.attention.no_op and self.ffn.no_op


class NemotronNasConfig(GroupedQueryConfig):
    """Fields of a DeciLM (Nemotron-NAS) config: block_configs has one entry a block.

    f = ceil256(2 ffn_mult h / 3). A half with no_op is absent with its norm, and a
    block without halves is no layer: it has no weights and no work.
    Left out, and refused: blocks replaced by a linear map.
    Source: modeling_decilm.py of nvidia/Llama-3_3-Nemotron-Super-49B-v1.
    """

    family: ClassVar[str] = "nemotron-nas"
    hf_class: ClassVar[str] = "DeciLMForCausalLM"

    intermediate_size: PositiveInt = 1
    block_configs: list[_PrunedBlock]

    @classmethod
    def _own_names(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        # The model's width is null in these configs; each block has its own.
        named = super()._own_names(config)
        return {k: v for k, v in named.items() if k != "intermediate_size"}

    @model_validator(mode="after")
    def _check_blocks(self) -> Self:
        blocks, heads = self.block_configs, self.num_attention_heads
        if len(blocks) != self.num_hidden_layers:
            raise ValueError(
                f"block_configs has {len(blocks)} entries; num_hidden_layers is "
                f"{self.num_hidden_layers}"
            )
        for group in {b.attention.n_heads_in_group for b in blocks} - {None}:
            if heads % (group or 1):
                raise ValueError(
                    f"num_attention_heads {heads} is not a multiple of "
                    f"n_heads_in_group {group}"
                )
        if all(block.is_empty for block in blocks):
            raise ValueError("block_configs has no block that is not empty")
        return self

    def _layers(self) -> Iterable[LayerKind]:
        return [self._block(b) for b in self.block_configs if not b.is_empty]

    def _block(self, block: _PrunedBlock) -> LayerKind:
        attention, ffn = self._pruned_attention(block.attention), self._width(block.ffn)
        name = f"kv{attention.kv_heads}" if attention.head_dim else "no-attention"
        mlp = Mlp(self.hidden_size, ffn, gated=True)
        norms = len([width for width in (attention.head_dim, ffn) if width])
        return LayerKind(f"{name}-ffn{ffn}", attention, mlp, self.norm, norms)

    def _pruned_attention(self, block: _PrunedAttention) -> Attention:
        plain = self._attention()
        if block.no_op:
            return replace(plain, head_dim=0)
        groups = plain.heads // (block.n_heads_in_group or 1)
        return replace(plain, kv_heads=groups, window=block.window_length)

    def _width(self, block: _PrunedFfn) -> int:
        if block.no_op or block.ffn_mult is None:
            return 0
        exact = int(2 * block.ffn_mult * self.hidden_size / 3)
        return -(-exact // _WIDTH_STEP) * _WIDTH_STEP
