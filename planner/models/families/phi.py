"""Phi-3 and Phi-4: Llama's blocks with fused projections and a window."""

from dataclasses import replace
from typing import ClassVar

from planner.hardware.reading.numbers import PositiveInt
from planner.models.layers.blocks import Attention
from planner.models.layers.grouped_query import GroupedQueryConfig


class Phi3Config(GroupedQueryConfig):
    """Fields of a Phi-3 or Phi-4 config; sliding_window has to be there or null."""

    family: ClassVar[str] = "phi3"
    hf_class: ClassVar[str] = "Phi3ForCausalLM"

    sliding_window: PositiveInt | None

    def _attention(self) -> Attention:
        return replace(super()._attention(), window=self.sliding_window)
