"""Settings that the command which starts a program changes in the program's file."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.launch.shell.runs import launch_of
from planner.launch.shell.settings import settings_of
from planner.launch.shell.values import refuse_unset, unset


@dataclass(frozen=True)
class Started:
    """A command, parted into the launcher's words and the program's settings.

    Attributes:
        launcher: Words up to the program; all where the program is another. [text]
        file: File of settings that the program is given; empty without. [text]
        given: Values by setting of the program; variables that no file sets are left
            out. [-]
        found: True where the command starts the program. [-]
    """

    launcher: tuple[str, ...]
    file: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)
    found: bool = False


def started(
    files: Mapping[str, str], program: re.Pattern[str], read: Collection[str]
) -> Started:
    """Part the command that starts a run at its program.

    Raises:
        BadInputError: A setting of *read* is a variable that no file sets.
    """
    launch = launch_of(files)
    words = launch.words
    at = next((n for n, word in enumerate(words) if program.fullmatch(word)), None)
    if at is None:
        return Started(words)
    own, more = list(words[at + 1 :]), list[str]()
    if "--" in own:
        own, more = own[: own.index("--")], own[own.index("--") + 1 :]
    given = settings_of(own)
    for name, value in given.items():
        if name in read and unset(str(value)):
            refuse_unset(name, str(value), file=launch.file)
    config = given.pop("config", "")
    named = (word for word in own if word.endswith((".yaml", ".yml", ".json")))
    file = str(config or next((word for word in named if "=" not in word), ""))
    known = {n: value for n, value in given.items() if not unset(str(value))}
    return Started((*words[: at + 1], *more), file, known, found=True)


def changed(own: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a file with those of the command, which win."""
    its = dict(own)
    for name, value in given.items():
        first, dot, rest = name.partition(".")
        inside = its.get(first)
        block = inside if isinstance(inside, Mapping) else {}
        its[first] = changed(block, {rest: value}) if dot else value
    return its
