"""What an emitted folder's launch.sh starts, and its start in forks of a process."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conftest import Run

FORKED = Path(__file__).with_name("forked.py")
LAUNCHERS = ("torchrun", "accelerate", "deepspeed")
STAND_IN = """#!{python}
import json, os, sys
print(json.dumps([sys.argv[1:], dict(os.environ)]))
"""
KEPT = ("PATH", "PWD", "SHLVL", "OLDPWD", "_")
"""Variables that are the stand-in's own. [text]"""


def command_of(
    folder: Path, scratch: Path, words: Sequence[str], environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """The script that launch.sh starts with its words, and the variables that it sets.

    Args:
        folder: The launch folder. [-]
        scratch: For programs that stand in for the launchers and tell their words. [-]
        words: Added to those of launch.sh. [text]
        environment: Variables that a user sets. [text]

    Returns:
        The script with its words; variables. [text]
    """
    scratch.mkdir(exist_ok=True)
    for name in LAUNCHERS:
        stand_in = scratch / name
        stand_in.write_text(STAND_IN.format(python=sys.executable))
        stand_in.chmod(0o755)
    done = subprocess.run(
        ["bash", "launch.sh", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={
            "PATH": f"{scratch}{os.pathsep}{os.environ['PATH']}",
            "LEARNING_RATE": "1e-4",
            **environment,
        },
    )
    every, variables = json.loads(done.stdout)
    first = next(
        at for at, word in enumerate(every) if word.endswith(".py") or word == "-m"
    )
    return every[first:], {k: v for k, v in variables.items() if k not in KEPT}


def forked(
    run_in: Run,
    name: str,
    folders: Mapping[str, tuple[Path, int]],
    scratch: Path,
    words: Sequence[str],
    environment: Mapping[str, str],
    modules: Sequence[str] = (),
) -> dict[str, list[int]]:
    """Start launch folders, each rank in a process of its own; their exit codes.

    Args:
        run_in: Runs Python in a framework's environment. [-]
        name: Of the environment. [text]
        folders: Launch folder and number of ranks by name. [-]
        scratch: A folder. [-]
        words: Added to those of launch.sh. [text]
        environment: Variables that a user sets. [text]
        modules: Imported before the script's own, and before the forks. [text]

    Returns:
        Codes of every rank by name; each rank's words are in `rank-N.log`. [-]
    """
    runs: list[dict[str, Any]] = []
    for folder, ranks in folders.values():
        started, its = command_of(folder, scratch / "bin", words, environment)
        runs.append(
            {
                "folder": str(folder),
                "ranks": ranks,
                "words": started,
                "environment": its,
            }
        )
    asked = scratch / "runs"
    asked.write_text("".join(json.dumps(one) + "\n" for one in runs))
    done = run_in(
        name,
        [str(FORKED), str(asked), *modules],
        timeout=900,
        env=dict(environment),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = [json.loads(line) for line in done.stdout.splitlines() if line[:1] == "{"]
    codes = {one["folder"]: one["codes"] for one in said}
    return {name: codes[str(folder)] for name, (folder, _) in folders.items()}
