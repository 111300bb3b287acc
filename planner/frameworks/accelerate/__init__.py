"""accelerate: Hugging Face transformers under eager PyTorch, one GPU or many."""

from planner.frameworks.accelerate.limits import LIMITS
from planner.frameworks.accelerate.recipe import RECIPE
from planner.frameworks.profiles import read_options, read_profile, writers
from planner.specs.frameworks.framework import Framework

FRAMEWORK = Framework(
    name="accelerate",
    title="accelerate",
    limits=LIMITS,
    recipe=RECIPE,
    profile=read_profile("accelerate"),
    options=read_options("accelerate"),
    writers=writers(
        "accelerate", "launch", "llamafactory", "trl", "axolotl", "torchtune"
    ),
)
"""accelerate 1.15 with transformers 5.23 on PyTorch 2.13: Trainer, TRL, PEFT."""
