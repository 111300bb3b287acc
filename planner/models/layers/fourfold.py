"""Families whose MLP has no gate and is four times the width unless said otherwise."""

from collections.abc import Mapping
from typing import Any, ClassVar

from planner.models.layers.blocks import Norm
from planner.models.layers.grouped_query import GroupedQueryConfig

# Source: transformers, BloomConfig and FalconConfig.
_INNER_RATIO = 4


class FourfoldConfig(GroupedQueryConfig):
    """Fields of an early decoder: LayerNorm, no gate; absent inner width means 4 h."""

    norm: ClassVar[Norm] = "layernorm"
    gated: ClassVar[bool] = False

    @classmethod
    def _own_names(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        named = super()._own_names(config)
        width = named.get("hidden_size")
        if named.get("intermediate_size") is None and isinstance(width, int):
            named["intermediate_size"] = _INNER_RATIO * width
        return named
