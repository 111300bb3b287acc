"""DeepSpeed: ZeRO, AutoTP, Ulysses and pipelines around transformers' own blocks."""

from planner.frameworks.deepspeed.limits import LIMITS
from planner.frameworks.deepspeed.recipe import RECIPE
from planner.frameworks.profiles import (
    read_formats,
    read_options,
    read_profile,
    read_switches,
    writers,
)
from planner.specs.frameworks.framework import Framework

FRAMEWORK = Framework(
    name="deepspeed",
    title="DeepSpeed",
    limits=LIMITS,
    recipe=RECIPE,
    profile=read_profile("deepspeed"),
    writers=writers("deepspeed", "launch"),
    switches=read_switches("deepspeed"),
    options=read_options("deepspeed"),
    formats=read_formats("deepspeed"),
)
"""DeepSpeed 0.19.8 with transformers 5.23 on PyTorch 2.13."""
