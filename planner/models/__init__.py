"""Model families, which turn a Hugging Face config into layers with counts."""

from planner.models.architecture import Architecture, AttentionConvention
from planner.models.errors import ModelConfigError, UnsupportedModelError
from planner.models.layers.blocks import (
    Attention,
    Block,
    Gemm,
    LatentAttention,
    LayerKind,
    Mlp,
    Moe,
    Norm,
    SavedTensor,
)
from planner.models.presets import (
    Preset,
    dense_names,
    find_config,
    load_model,
    preset,
    preset_hub_ids,
    preset_names,
    preset_sizes,
    read_config,
    read_preset,
    weights_of,
)
from planner.models.registry import FAMILIES, from_config

__all__ = [
    "FAMILIES",
    "Architecture",
    "Attention",
    "AttentionConvention",
    "Block",
    "Gemm",
    "LatentAttention",
    "LayerKind",
    "Mlp",
    "ModelConfigError",
    "Moe",
    "Norm",
    "Preset",
    "SavedTensor",
    "UnsupportedModelError",
    "dense_names",
    "find_config",
    "from_config",
    "load_model",
    "preset",
    "preset_hub_ids",
    "preset_names",
    "preset_sizes",
    "read_config",
    "read_preset",
    "weights_of",
]
