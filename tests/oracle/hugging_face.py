"""Models of transformers built from our presets' fields; no weights, no network."""

from typing import Any

import pytest
from small_models import smaller

from planner.models import Architecture, from_config, preset, preset_names, read_preset

torch = pytest.importorskip("torch")
counters = pytest.importorskip("torch.utils.flop_counter")
transformers = pytest.importorskip("transformers")

NOT_IN_TRANSFORMERS = {"bailing_moe_v2", "grok-1", "nemotron-nas"}
"""Families whose code lies with their weights."""
NAMES = [n for n in preset_names() if preset(n).family not in NOT_IN_TRANSFORMERS]


def fields(name: str) -> dict[str, Any]:
    """Hugging Face fields of a preset, without class and type."""
    chosen = ("architectures", "model_type")
    return {k: v for k, v in read_preset(name).config.items() if k not in chosen}


def small(name: str) -> dict[str, Any]:
    """Fields of a small variant; null stays null, absent stays absent."""
    config = smaller(fields(name))
    if "kv_lora_rank" in config:
        # Latent attention has no key-value heads, but its reference divides by them.
        config["num_key_value_heads"] = config["num_attention_heads"]
    return config


def ours(name: str, config: dict[str, Any]) -> Architecture:
    """Our architecture of a preset's family with these fields."""
    return from_config(config | {"model_type": preset(name).family}, source="oracle")


def described(name: str, config: dict[str, Any] | None = None) -> Any:
    """Config of transformers of the same family, with a preset's fields or others."""
    known = fields(name) if config is None else config
    family = preset(name).family
    return transformers.AutoConfig.for_model(family, **known, pad_token_id=0)


def theirs(name: str, config: dict[str, Any], device: str) -> Any:
    """Model of transformers of the same family with the same fields."""
    with torch.device(device):
        return transformers.AutoModelForCausalLM.from_config(
            described(name, config),
            attn_implementation="eager",
            experts_implementation="eager",
        )
