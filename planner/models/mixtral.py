"""Mixtral: Mistral's attention with a mixture of experts in every layer."""

from typing import ClassVar, Self

from pydantic import PositiveInt, model_validator

from planner.models.architecture import Architecture
from planner.models.blocks import Moe
from planner.models.config import require_at_most
from planner.models.llama import GroupedQueryConfig


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

    def architecture(self, name: str, source: str) -> Architecture:
        """Architecture of one layer kind.

        Args:
            name: Name for the model.
            source: Where the fields come from.

        Returns:
            The architecture.
        """
        moe = Moe(
            hidden=self.hidden_size,
            experts=self.num_local_experts,
            top_k=self.num_experts_per_tok,
            ffn=self.intermediate_size,
            shared_ffn=0,
        )
        attention = self._attention(window=self.sliding_window)
        return self._of_layers(self._layer(attention, moe), name, source)
