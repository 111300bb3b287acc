"""Writes a plan as the files of a trainer on accelerate, by the trainer's dialect."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from planner.frameworks.accelerate.rows import first_steps
from planner.hardware.reading.escape import yaml_text
from planner.launch.brief import Brief, LaunchFile, Program, Starter, Variable
from planner.launch.targets.accelerate.arguments import optim
from planner.launch.targets.accelerate.placement import DS_FILE, placement, zero
from planner.launch.targets.accelerate.plan import deepspeed, of_attention
from planner.launch.targets.accelerate.writer import HEADS, PLACES, environment
from planner.launch.targets.trainers.dialect import Writing, dialect
from planner.launch.text.rates import RATE, learning_rate
from planner.specs.training import PROJECTED

TRAIN, MODEL = "train.yaml", "config.json"
FLASH = "flash"
"""Condition of a package that depends on the attention. [text]"""


def program(
    target: str,
    brief: Brief,
    arguments: Mapping[str, Any],
    starter: Starter,
    releases: Mapping[str, str],
    script: str = "",
) -> Program:
    """Write the program: the trainer's YAML, the model and what else it takes.

    Args:
        target: Name of the trainer. [text]
        brief: The plan. [-]
        arguments: Content of the trainer's YAML. [-]
        starter: Command that starts the ranks. [-]
        releases: Release of a library by its name in the dialect. [text]
        script: Script or recipe that trains the plan. [text]
    """
    writing = dialect(target).writing
    head = writing.head.format(script)
    own = LaunchFile(TRAIN, yaml_text(dict(arguments), [head]))
    return Program(
        files=(own, *_others(brief, writing.files)),
        starter=starter,
        words=tuple(word.replace("RATE", RATE) for word in writing.words),
        check=writing.check,
        versions=tuple(_requirements(brief, writing, releases)),
        environment=tuple(environment(brief)) if writing.environment else (),
        blanks=tuple(_blanks(brief, writing)),
        first=first_steps(brief.training, *writing.first),
    )


def _others(brief: Brief, kinds: tuple[str, ...]) -> Iterator[LaunchFile]:
    """Files beside the trainer's own, by kind."""
    if "places" in kinds:
        yield LaunchFile(PLACES, yaml_text(placement(brief), [HEADS[PLACES]]))
    fields = {k: v for k, v in brief.model.items() if k != "name"}
    yield LaunchFile(MODEL, json.dumps(fields, indent=2) + "\n")
    if "zero" in kinds and deepspeed(brief):
        yield LaunchFile(DS_FILE, json.dumps(zero(brief), indent=2) + "\n")


def _requirements(
    brief: Brief, writing: Writing, releases: Mapping[str, str]
) -> Iterator[str]:
    """Packages of the conditions that a plan meets, in the dialect's order."""
    training, words = brief.training, str(optim(brief))
    eight = "bnb" in words or "paged" in words or training.optimizer in PROJECTED
    met = {
        "always": True,
        "adapters": training.method != "full",
        "deepspeed": deepspeed(brief),
        "bitsandbytes": training.method == "qlora" or eight,
        "torchao": training.precision == "fp8" or words == "adamw_torch_8bit",
        training.optimizer: True,
    }
    for condition, package in writing.requirements:
        if condition == FLASH:
            yield from of_attention(brief, package)
        elif met.get(condition):
            yield package.format(**releases)


def _blanks(brief: Brief, writing: Writing) -> Iterator[Variable]:
    """Variables that the user fills in."""
    facts = {
        "weights": brief.weights,
        "of_weights": f", of {brief.weights}" if brief.weights else "",
        "precision": brief.training.precision,
        "steps": brief.training_steps,
    }
    for name, blank in writing.blanks.items():
        if name == "LEARNING_RATE":
            yield learning_rate(brief, anew=False)
        else:
            value, why = (text.format(**facts) for text in (blank.value, blank.why))
            yield Variable(name, value, why, required=blank.required)
