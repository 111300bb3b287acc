"""Values of axolotl's settings that are not priced."""

from collections.abc import Iterator, Mapping
from typing import Any

from planner.frameworks.accelerate.axolotl.known import known
from planner.frameworks.accelerate.switches import true
from planner.frameworks.accelerate.together import on
from planner.frameworks.transformers import FLASH, strange_attention
from planner.hardware.kernels.attention import attention_word
from planner.launch.targets.accelerate.files import block
from planner.launch.targets.accelerate.trainer import evaluated
from planner.launch.unknown import CHANGES, NOT_PRICED, Unknown

SWITCHES = {
    "flash_attention": "flash_attention_2",
    "sdp_attention": "sdpa",
    "eager_attention": "eager",
}
"""attn_implementation by the switches of releases before 0.13. [text]"""
ALONE = "without attn_implementation does not keep texts apart, which is not priced"
"""Why packed rows are refused beside no kernel: axolotl warns, and takes sdpa. [text]

Source: axolotl 0.19.0 utils/schemas/validation.py,
check_sample_packing_without_attention."""
TOGETHER = "does not keep packed texts apart, which is not priced"
"""Why attention is refused that packed rows are not priced with. [text]"""


def unpriced(settings: Mapping[str, Any]) -> Iterator[Unknown]:
    """Settings with a value that is not priced."""
    yield from _packed(settings)
    policy = block(settings, "fsdp_config", "fsdp_").get("mixed_precision_policy")
    if policy:
        yield Unknown("fsdp_config.mixed_precision_policy", policy, NOT_PRICED)
    if str(settings.get("gradient_checkpointing")).startswith("offload"):
        yield Unknown("gradient_checkpointing", "offload", NOT_PRICED)
    for name in ("context_parallel_size", "tensor_parallel_size"):
        if settings.get(name) not in (None, 1) and not settings.get("fsdp_config"):
            yield Unknown(name, settings[name], "is not priced without fsdp_config")
    yield from evaluated(settings, "eval_batch_size", "micro_batch_size")
    yield from _of_plugins(settings)


def _packed(settings: Mapping[str, Any]) -> Iterator[Unknown]:
    """Packed rows beside a kernel that does not keep their texts apart."""
    if not true(settings, "sample_packing"):
        return
    kernel = settings.get("attn_implementation")
    words = {"attn_implementation": kernel, **SWITCHES}
    named = [name for name in words if on(settings, name)]
    if not named:
        yield Unknown("sample_packing", settings["sample_packing"], ALONE)
    for name in named:
        if attention_word(words[name]) != FLASH and not strange_attention(kernel):
            yield Unknown(name, settings[name], TOGETHER)


def _of_plugins(settings: Mapping[str, Any]) -> Iterator[Unknown]:
    """Plugins other than Liger's, and Liger's kernels without their plugin."""
    named = settings.get("plugins")
    plugins = list(map(str, named)) if isinstance(named, list) else []
    others = [plugin for plugin in plugins if "liger" not in plugin.lower()]
    yield from (Unknown("plugins", plugin, CHANGES) for plugin in others)
    if len(others) == len(plugins):
        for name in sorted(known().liger & settings.keys()):
            if settings[name]:
                why = "does nothing without axolotl.integrations.liger.LigerPlugin"
                yield Unknown(name, settings[name], why)
