"""One room per training framework; a new framework is registered in this tuple."""

from planner.frameworks.accelerate import ACCELERATE
from planner.frameworks.deepspeed import DEEPSPEED
from planner.frameworks.megatron import MEGATRON
from planner.frameworks.torchtitan import TORCHTITAN
from planner.specs.framework import Framework

FRAMEWORKS: tuple[Framework, ...] = (MEGATRON, TORCHTITAN, ACCELERATE, DEEPSPEED)
"""Every framework that planner knows, in order of listing."""
