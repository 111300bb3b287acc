"""A switch of a launch file is on or off: an empty list or a word of neither is none.

Every switch of every golden folder that decides what is read is given other values.
"""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import pytest
import yaml
from golden_folders import cases, emitted

from planner.errors import BadInputError
from planner.launch.brief import Reading
from planner.launch.importing import read_texts

Path = tuple[str | int, ...]
UNREAD = ("plan.json", "config.json")
TWINS = ("kubernetes", "slurm", "torchrun", "megatron")
"""Targets whose scripts are read, and not the YAML beside the script. [text]"""


def switches(content: Any, path: Path = ()) -> Iterator[tuple[Path, bool]]:
    """Paths of a document that hold true or false."""
    if isinstance(content, bool):
        yield path, content
    elif isinstance(content, Mapping | list):
        inner = content.items() if isinstance(content, Mapping) else enumerate(content)
        for key, value in inner:
            yield from switches(value, (*path, key))


def changed(files: dict[str, str], name: str, path: Path, value: object) -> Reading:
    """What is read where one value of a file is another."""
    its = deepcopy(yaml.safe_load(files[name]))
    inside = its
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    text = json.dumps(its) if name.endswith(".json") else yaml.safe_dump(its)
    return read_texts(files | {name: text}, None, where="")


def decides(files: dict[str, str], name: str, path: Path, value: bool) -> bool:  # noqa: FBT001
    """Tell if a switch changes the job that is read."""
    try:
        other = changed(files, name, path, not value)
    except BadInputError:
        return True
    same = changed(files, name, path, value)
    parts = ("layout", "training", "stack", "model")
    return any(getattr(other, part) != getattr(same, part) for part in parts)


def deciding() -> Iterator[tuple[str, str, str, Path]]:
    """Switches that decide what is read, each once for a target."""
    seen = set()
    for target, case in cases():
        files = emitted(target, case)
        for name in files:
            if target in TWINS or name in UNREAD or not name.endswith(("yaml", "json")):
                continue
            for path, value in switches(yaml.safe_load(files[name])):
                key = (target, name, path)
                if key not in seen and decides(files, name, path, value):
                    seen.add(key)
                    yield target, case, name, path


WRONG: tuple[object, ...] = ([], {}, [True], "maybe", "fasle", 7, -1, 0.5)


def names_it(target: str, case: str, name: str, path: Path, value: object) -> bool:
    """Tell if a switch of another value is refused by its name."""
    its = str(path[-1])
    try:
        found = changed(emitted(target, case), name, path, value)
    except BadInputError as error:
        return its.removeprefix("fsdp_") in f"{error.field} {error}"
    return any(its in each.name for each in found.unknown)


@pytest.mark.slow
def test_what_is_neither_on_nor_off_is_refused() -> None:
    """`overlap_grad_reduce: []` was on, and `fsdp_offload_params: yse` was off."""
    every = list(deciding())
    assert len(every) > 40
    assert {target for target, *_ in every} >= {
        "accelerate",
        "axolotl",
        "deepspeed",
        "llamafactory",
        "megatron-bridge",
        "torchtune",
        "trl",
    }
    passed = [(at, v) for at in every for v in WRONG if not names_it(*at, v)]
    assert passed == []


CHECKPOINTS = "gradient_checkpointing"


def trained(value: object) -> Reading:
    files = emitted("trl", next(case for target, case in cases() if target == "trl"))
    return changed(files, "train.yaml", (CHECKPOINTS,), value)


@pytest.mark.parametrize("value", WRONG)
def test_a_switch_of_a_trainer_is_on_or_off(value: object) -> None:
    with pytest.raises(BadInputError, match="is a switch") as refused:
        trained(value)
    assert refused.value.field == CHECKPOINTS
    assert (refused.value.file or "").startswith("train.yaml:")


@pytest.mark.parametrize("word", ["true", "True", "yes", "on", "1", 1, True])
def test_words_for_on_are_one_value(word: object) -> None:
    assert trained(word).layout["recompute"] == "full"


@pytest.mark.parametrize("word", ["false", "no", "off", "0", 0, False])
def test_words_for_off_are_one_value(word: object) -> None:
    assert trained(word).layout["recompute"] == "none"
