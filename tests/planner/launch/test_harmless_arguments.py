"""Every argument that a trainer's program has stands in one list, and in one alone."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from planner.frameworks.accelerate.axolotl import known as axolotl
from planner.frameworks.accelerate.harmless import harmless
from planner.frameworks.accelerate.launch import known as trainer
from planner.frameworks.accelerate.llamafactory import known as factory
from planner.launch.importing import read_texts
from planner.launch.targets.trainers.dialect import dialect

Names = frozenset[str]
TRAINER = trainer.keys().training_arguments
MODEL = trainer.keys()
EVERY: dict[str, tuple[Names, Names, Names]] = {
    "trainer": (trainer.trainer_arguments(), trainer.READ, trainer.UNPRICED),
    "trl": (
        (MODEL.of_weights | MODEL.of_script | MODEL.of_mixture)
        - trainer.trainer_arguments(),
        dialect("trl").read,
        dialect("trl").unpriced,
    ),
    "llamafactory": (
        factory.arguments() - TRAINER,
        dialect("llamafactory").read,
        dialect("llamafactory").unpriced,
    ),
    "axolotl": (
        axolotl.known().axolotl | axolotl.known().liger,
        dialect("axolotl").read,
        dialect("axolotl").unpriced,
    ),
}


@pytest.mark.parametrize("program", EVERY)
def test_an_argument_is_read_priced_at_one_value_or_harmless(program: str) -> None:
    known, read, unpriced = EVERY[program]
    its = harmless(program)
    assert known - read - unpriced - its == set()
    assert its & (read | unpriced) == set()
    assert its <= known


FILES: dict[str, dict[str, Any]] = {
    "accelerate": {"per_device_train_batch_size": 1},
    "trl": {"dataset_name": "x"},
    "llamafactory": {"finetuning_type": "full", "cutoff_len": 512},
    "axolotl": {"base_model": "x", "sequence_len": 512},
}


@pytest.mark.parametrize(
    ("target", "program", "name"),
    [
        ("accelerate", "trainer", "weight_decay"),
        ("trl", "trl", "lora_alpha"),
        ("llamafactory", "llamafactory", "template"),
        ("axolotl", "axolotl", "weight_decay"),
    ],
)
def test_an_argument_in_no_list_is_not_understood(
    target: str, program: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = yaml.safe_dump(FILES[target] | {name: "1"})

    def told_of() -> list[str]:
        return [u.name for u in read_texts({"a.yaml": text}, target, "a.yaml").unknown]

    assert name not in told_of()
    kept: Callable[[str], Names] = harmless

    def shorter(of: str) -> Names:
        return kept(of) - {name} if of == program else kept(of)

    for module in ("accelerate.trainer", "trainers.reader"):
        where = f"planner.launch.targets.{module}.harmless"
        monkeypatch.setattr(where, shorter)
    assert name in told_of()
