"""Megatron-Core with TransformerEngine: fused kernels, distributed optimizer."""

from planner.frameworks.megatron.limits import LIMITS
from planner.frameworks.megatron.recipe import RECIPE
from planner.frameworks.profiles import (
    read_formats,
    read_options,
    read_profile,
    read_switches,
    writers,
)
from planner.specs.frameworks.framework import Framework

FRAMEWORK = Framework(
    name="megatron",
    title="Megatron-Core",
    limits=LIMITS,
    recipe=RECIPE,
    profile=read_profile("megatron"),
    options=read_options("megatron"),
    formats=read_formats("megatron"),
    writers=writers("megatron", "launch", "bridge"),
    switches=read_switches("megatron"),
)
"""Megatron-LM / Megatron-Core 0.16 and later."""
