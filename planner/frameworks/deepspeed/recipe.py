"""States, activations and buffers that DeepSpeed keeps for transformers' blocks."""

from planner.frameworks.accelerate.recipe import RECIPE as EAGER
from planner.frameworks.stacks import read_stack

RECIPE = read_stack("accelerate", "hf-trainer").recipe.on(EAGER)
"""Recipe of Trainer with DeepSpeed's plugin: engine and blocks are the same."""
