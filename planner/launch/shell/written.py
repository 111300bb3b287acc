"""The script of one command, as a reader of launch files takes it."""

import shlex
from collections.abc import Mapping

from planner.launch.shell.bash.state import Command
from planner.launch.shell.values import LOOSE, PART, plain


def written(
    command: Command, environment: Mapping[str, str], around: Mapping[str, int]
) -> str:
    """Script of the command alone; unknown parts stand as expansions."""
    options = {
        "nodes": "--nodes",
        "tasks": "--ntasks",
        "tasks_per_node": "--ntasks-per-node",
        "gpus": "--gpus",
        "gpus_per_node": "--gpus-per-node",
        "gpus_per_task": "--gpus-per-task",
    }
    head = [f"#SBATCH {options[k]}={n}\n" for k, n in around.items() if k in options]
    before = [f"{n}={shlex.quote(v)}" for n, v in environment.items()]
    words = ["srun"] * bool(command.tasks) + [_quoted(word) for word in command.words]
    return "".join(["#!/bin/bash\n", *head]) + " ".join([*before, *words]) + "\n"


def _quoted(word: str) -> str:
    """Word as a script has to write it to mean the same."""
    if word.startswith(LOOSE):
        return plain(word)
    text, at = "", 0
    for part in PART.finditer(word):
        before = word[at : part.start()]
        text += (shlex.quote(before) if before else "") + f'"{part[1]}"'
        at = part.end()
    rest = word[at:]
    return text + (shlex.quote(rest) if rest or not text else "")
