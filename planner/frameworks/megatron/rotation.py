"""Rotary positions that Megatron has options for."""

from collections.abc import Iterator

from planner.models.asked import Asked
from planner.models.layers.blocks import LatentAttention
from planner.models.layers.rotary import scaling_of

LLAMA3 = {
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
"""Values that --use-rope-scaling fixes. [-]"""
YARN = {"original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1}
"""Values that MLATransformerConfig takes where no argument sets them. [-]"""


def rotary_lacks(asked: Asked) -> Iterator[str]:
    """Features of a model's rotary positions that Megatron has no options for.

    References:
        Megatron-LM core_v0.16.1 megatron/core/models/common/embeddings/
        rotary_pos_embedding.py, apply_llama3_scaling; transformer_config.py,
        MLATransformerConfig.
    """
    kind, fields = scaling_of(asked.fields)
    latent = isinstance(asked.model.kinds[0].attention, LatentAttention)
    fixed = {"llama3": LLAMA3, "yarn": YARN if latent else None, "default": {}}.get(
        kind
    )
    if fixed is None or (latent and kind == "llama3"):
        yield f"rotary scaling of kind {kind}"
        return
    for name, value in fixed.items():
        if fields.get(name, value) not in (value, None):
            yield f"rotary scaling with {name} {fields[name]}, only {value}"
