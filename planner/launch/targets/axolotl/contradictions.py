"""Settings of axolotl that its validation, or a library below it, refuses together."""

from collections.abc import Mapping
from typing import Any

from planner.frameworks.accelerate.together import on, wrong
from planner.launch.targets.accelerate.files import block
from planner.launch.targets.accelerate.fsdp import DATA, NUMBERED, STRATEGIES

TARGETS = ("lora_target_modules", "lora_target_linear", "lora_target_parameters")
"""Settings that say which layers adapters lie beside. [text]"""


def refuse_contradictions(settings: Mapping[str, Any], file: str) -> None:
    """Refuse settings that stop a run before its first step.

    Raises:
        BadInputError: Two settings go not together, or one needs another.
    """
    if settings.get("adapter") == "qlora" and not on(settings, "load_in_4bit"):
        allowed = "load_in_4bit: true beside it"
        raise wrong(settings, "adapter", "needs load_in_4bit", allowed, file)
    if on(settings, "adapter") and not any(on(settings, name) for name in TARGETS):
        allowed = f"one of {', '.join(TARGETS)} beside it"
        raise wrong(settings, "adapter", "names no layers", allowed, file)
    _refuse_optimizer(settings, file)
    _refuse_shards(settings, file)


def _refuse_optimizer(settings: Mapping[str, Any], file: str) -> None:
    """Refuse bitsandbytes' moments of weights on the host."""
    shards = block(settings, "fsdp_config", "fsdp_")
    two = str(settings.get("fsdp_version", shards.get("version"))) == "2"
    eight = "8bit" in str(settings.get("optimizer"))
    if eight and not two and on(shards, "offload_params"):
        what = "goes not with offload_params of FSDP1"
        raise wrong(settings, "optimizer", what, "an optimizer without 8bit", file)


def _refuse_shards(settings: Mapping[str, Any], file: str) -> None:
    """Refuse ranks of shards without FSDP, and two strategies of sharding.

    Source: axolotl 0.19.0 utils/distributed.py, _get_parallel_config_kwargs.
    """
    if not (on(settings, "fsdp_config") or on(settings, "fsdp")):
        for name in (name for name in DATA if settings.get(name) not in (None, 1)):
            allowed = "fsdp_config beside it, or 1"
            raise wrong(settings, name, "needs fsdp_config", allowed, file)
    shards = block(settings, "fsdp_config", "fsdp_")
    key = str(shards.get("sharding_strategy")).lower()
    other, fsdp = NUMBERED.get(key, key), settings.get("fsdp")
    words = fsdp if isinstance(fsdp, list) else str(fsdp).split()
    said = STRATEGIES.keys() & {str(word).lower() for word in words}
    if on(shards, "sharding_strategy") and said and other not in said:
        what = f"is not fsdp_config.sharding_strategy, which is {other}"
        raise wrong(settings, "fsdp", what, "one strategy", file)
