"""Seed-OSS: Llama's blocks with biases on queries, keys and values."""

from dataclasses import replace
from typing import ClassVar

from planner.models.families.llama import LlamaConfig
from planner.models.layers.blocks import Attention


class SeedOssConfig(LlamaConfig):
    """Fields of a Seed-OSS config; the output projection has a bias of its own."""

    family: ClassVar[str] = "seed_oss"
    hf_class: ClassVar[str] = "SeedOssForCausalLM"

    attention_bias: bool = True
    attention_out_bias: bool = False

    def _attention(self) -> Attention:
        return replace(super()._attention(), out_bias=self.attention_out_bias)
