"""Settings of axolotl that its validation, or a library below it, refuses together."""

from collections.abc import Mapping
from typing import Any

from planner.frameworks.accelerate.together import on, refuse_together, wrong
from planner.launch.targets.accelerate.files import block
from planner.launch.targets.accelerate.fsdp import DATA, NUMBERED, STRATEGIES

APART = (
    ("batch_size", "gradient_accumulation_steps"),
    ("deepspeed", "fsdp"),
    ("deepspeed", "fsdp_config"),
    ("load_in_8bit", "load_in_4bit"),
    ("model_quantization_config", "load_in_4bit"),
    ("model_quantization_config", "load_in_8bit"),
    ("sample_packing", "rl"),
    ("max_memory", "gpu_memory_limit"),
    ("liger_cross_entropy", "liger_fused_linear_cross_entropy"),
    ("cut_cross_entropy", "liger_fused_linear_cross_entropy"),
)
"""Settings that go not together. [text]

Source: axolotl 0.19.0 utils/schemas/validation.py and config.py; transformers
utils/quantization_config.py."""
TARGETS = ("lora_target_modules", "lora_target_linear", "lora_target_parameters")
"""Settings that say which layers adapters lie beside. [text]"""


def refuse_contradictions(given: Mapping[str, Any], file: str) -> None:
    """Refuse settings that stop a run before its first step.

    Raises:
        BadInputError: Two settings go not together, or one needs another.
    """
    refuse_together(given, APART, file)
    if given.get("adapter") == "qlora" and not on(given, "load_in_4bit"):
        allowed = "load_in_4bit: true beside it"
        raise wrong(given, "adapter", "needs load_in_4bit", allowed, file)
    if on(given, "adapter") and not any(on(given, name) for name in TARGETS):
        allowed = f"one of {', '.join(TARGETS)} beside it"
        raise wrong(given, "adapter", "names no layers", allowed, file)
    _refuse_optimizer(given, file)
    _refuse_shards(given, file)


def _refuse_optimizer(given: Mapping[str, Any], file: str) -> None:
    """Refuse bitsandbytes' moments of weights on the host."""
    its = block(given, "fsdp_config", "fsdp_")
    two = str(given.get("fsdp_version", its.get("version"))) == "2"
    eight = "8bit" in str(given.get("optimizer"))
    if eight and not two and on(its, "offload_params"):
        what = "goes not with offload_params of FSDP1"
        raise wrong(given, "optimizer", what, "an optimizer without 8bit", file)


def _refuse_shards(given: Mapping[str, Any], file: str) -> None:
    """Refuse ranks of shards without FSDP, and two strategies of sharding.

    Source: axolotl 0.19.0 utils/distributed.py, _get_parallel_config_kwargs.
    """
    if not (on(given, "fsdp_config") or on(given, "fsdp")):
        for name in (name for name in DATA if given.get(name) not in (None, 1)):
            allowed = "fsdp_config beside it, or 1"
            raise wrong(given, name, "needs fsdp_config", allowed, file)
    its = block(given, "fsdp_config", "fsdp_")
    key = str(its.get("sharding_strategy")).lower()
    other, fsdp = NUMBERED.get(key, key), given.get("fsdp")
    words = fsdp if isinstance(fsdp, list) else str(fsdp).split()
    said = STRATEGIES.keys() & {str(word).lower() for word in words}
    if on(its, "sharding_strategy") and said and other not in said:
        what = f"is not fsdp_config.sharding_strategy, which is {other}"
        raise wrong(given, "fsdp", what, "one strategy", file)
