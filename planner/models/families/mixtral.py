"""Mixtral and Grok: a mixture of a few wide experts in every layer."""

from dataclasses import replace
from typing import ClassVar, Self

from pydantic import model_validator

from planner.hardware.reading.numbers import PositiveInt
from planner.models.config import require_at_most
from planner.models.layers.blocks import Attention, Moe
from planner.models.layers.grouped_query import GroupedQueryConfig


class MixtralConfig(GroupedQueryConfig):
    """Fields of a Mixtral config; intermediate_size is one expert's width."""

    family: ClassVar[str] = "mixtral"
    hf_class: ClassVar[str] = "MixtralForCausalLM"

    num_local_experts: PositiveInt
    num_experts_per_tok: PositiveInt
    sliding_window: PositiveInt | None = None

    @model_validator(mode="after")
    def _check_experts(self) -> Self:
        require_at_most(self, "num_experts_per_tok", "num_local_experts")
        return self

    def _attention(self) -> Attention:
        return replace(super()._attention(), window=self.sliding_window)

    def _ffn(self) -> Moe:
        return Moe(
            hidden=self.hidden_size,
            experts=self.num_local_experts,
            top_k=self.num_experts_per_tok,
            ffn=self.intermediate_size,
            shared_ffn=0,
        )


class GrokConfig(MixtralConfig):
    """Fields of a Grok-1 config: Mixtral's, with four norms and a score cap.

    Source: github.com/xai-org/grok-1, model.py: norms before and after each half,
    scores capped at 30.
    """

    family: ClassVar[str] = "grok-1"
    hf_class: ClassVar[str] = "Grok1ModelForCausalLM"
    norms: ClassVar[int] = 4
    other_names: ClassVar[dict[str, str]] = {"num_experts": "num_local_experts"}

    tie_word_embeddings: bool = True
    max_attn_value: float | None = 30.0

    def _attention(self) -> Attention:
        return replace(super()._attention(), logit_cap=self.max_attn_value)
