"""Gaps of a plan by target, as the targets are registered."""

from planner.launch.registry import TARGETS

GAPS = {target.name: target.gaps for target in TARGETS}
accelerate = GAPS["accelerate"]
axolotl = GAPS["axolotl"]
deepspeed = GAPS["deepspeed"]
llamafactory = GAPS["llamafactory"]
megatron = GAPS["megatron"]
megatron_bridge = GAPS["megatron-bridge"]
torchtitan = GAPS["torchtitan"]
torchtune = GAPS["torchtune"]
trl = GAPS["trl"]
