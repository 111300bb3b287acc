"""States, activations and buffers that DeepSpeed keeps for transformers' blocks."""

from dataclasses import replace

from planner.frameworks.accelerate.recipe import RECIPE as EAGER
from planner.frameworks.stacks import read_stack

RECIPE = replace(
    read_stack("accelerate", "hf-trainer").recipe.on(EAGER), stops_early=True
)
"""Recipe of Trainer with DeepSpeed's plugin: engine and blocks are the same.

Transformers 5 checkpoints without reentrance, earlier releases with it."""
