"""torchtitan: FSDP2, DTensor tensor parallelism, PyTorch's pipeline schedules."""

from planner.frameworks.profiles import (
    read_formats,
    read_options,
    read_profile,
    read_switches,
    writers,
)
from planner.frameworks.torchtitan.limits import LIMITS
from planner.frameworks.torchtitan.recipe import RECIPE
from planner.specs.frameworks.framework import Framework

FRAMEWORK = Framework(
    name="torchtitan",
    title="torchtitan",
    limits=LIMITS,
    recipe=RECIPE,
    profile=read_profile("torchtitan"),
    options=read_options("torchtitan"),
    formats=read_formats("torchtitan"),
    writers=writers("torchtitan", "launch"),
    switches=read_switches("torchtitan"),
)
"""torchtitan 0.3 on PyTorch 2.13."""
