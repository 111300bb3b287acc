"""What DeepSpeed keeps in memory around transformers' blocks."""

from planner.frameworks.accelerate.recipe import RECIPE as EAGER
from planner.frameworks.stacks import read_stack

RECIPE = read_stack("accelerate", "hf-trainer").recipe.on(EAGER)
"""That of Trainer with DeepSpeed's plugin: the same engine around the same blocks."""
