"""Megatron-Core with TransformerEngine: fused kernels, distributed optimizer."""

from planner.frameworks.megatron.limits import LIMITS
from planner.frameworks.megatron.recipe import RECIPE
from planner.frameworks.megatron.writers import WRITERS
from planner.frameworks.profiles import (
    read_formats,
    read_options,
    read_profile,
    read_switches,
)
from planner.specs.framework import Framework

MEGATRON = Framework(
    name="megatron",
    title="Megatron-Core",
    limits=LIMITS,
    recipe=RECIPE,
    profile=read_profile("megatron"),
    options=read_options("megatron"),
    formats=read_formats("megatron"),
    writers=WRITERS,
    switches=read_switches("megatron"),
)
"""Megatron-LM / Megatron-Core 0.16 and later."""
