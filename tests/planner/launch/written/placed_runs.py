"""Runs scripts of a mixed fleet on one machine, with programs that stand in."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from golden_folders import ROOT

CASE = "llama-3.1-8b-16-h100-8-a100"
"""Two nodes of eight H100, then two nodes of four A100. [text]"""
GPUS = {"h": "NVIDIA H100 80GB HBM3, 81559", "a": "NVIDIA A100-SXM4-40GB, 40960"}
"""Answer of nvidia-smi by the first letter of a host. [text]"""
PROGRAMS = {
    "hostname": 'echo "$HOST"',
    "nvidia-smi": 'case "$HOST" in\n'
    + "\n".join(f'{key}*) echo "{gpu}" ;;' for key, gpu in GPUS.items())
    + "\nesac",
    "torchrun": 'echo "ran $(hostname -s) $*"',
    "scontrol": "echo \"$3\" | tr ',' '\\n'",
    "srun": 'echo "srun $1 $2"\n'
    'while [ "$1" != bash ]; do shift; done\n'
    'for HOST in $PLAN_HOSTS; do export HOST; "$@"; done',
    "ssh": 'HOST=$3; export HOST; exec bash -c "$4"',
}
"""Text of each program that stands in. [text]"""


def folder_of(target: str, scratch: Path) -> Path:
    """A copy of a golden folder, beside the programs that stand in.

    Args:
        target: A launcher. [text]
        scratch: Folder of the test. [path]

    Returns:
        The copy. [path]
    """
    programs = scratch / "bin"
    programs.mkdir()
    for name, text in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/bash\n{text}\n")
        (programs / name).chmod(0o755)
    return Path(shutil.copytree(ROOT / target / CASE, scratch / "run"))


def run(
    folder: Path, *words: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a script of the folder.

    Args:
        folder: From `folder_of`. [path]
        words: The script and its words. [text]
        variables: Of the environment. [text]

    Returns:
        The finished process. [-]
    """
    return subprocess.run(
        ["bash", *words],
        cwd=folder,
        env=_environment(folder, variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def _environment(folder: Path, variables: Mapping[str, str]) -> dict[str, str]:
    programs = folder.parent / "bin"
    return {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", **variables}


def with_hosts(folder: Path, *hosts: str) -> None:
    """Fill hosts in where nodes.txt has none.

    Args:
        folder: From `folder_of`. [path]
        hosts: Names, in the order of ranks. [text]
    """
    path, left = folder / "nodes.txt", list(hosts)
    rows = [
        line if line.startswith("#") else line.replace(" - ", f" {left.pop(0)} ", 1)
        for line in path.read_text().splitlines()
    ]
    path.write_text("\n".join(rows) + "\n")
