"""Exact launch folders: every folder below tests/golden/emit holds its own plan.

A new case is made with `planner emit plan.json --target T --out
tests/golden/emit/T/NAME`; `pytest --rewrite-goldens` writes all of them anew. Programs
and prose, which differ in few words, stand whole in one or two examples of each target;
the others keep their digests.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

import yaml

from planner.launch import emit, read_plan, write_folder
from planner.launch.brief import LaunchFile
from planner.questions.emit import priced, priced_anew

ROOT = Path(__file__).resolve().parents[2] / "golden" / "emit"
DIGESTS = "digests.yaml"
PROGRAMS = {
    "README.md",
    "check.sh",
    "launch.sh",
    "own_model.py",
    "plan_config.py",
    "random_tokens.py",
    "train.py",
}
FULL = {
    "accelerate": {"llama-3.1-70b-fsdp-32-h100", "llama-3.1-8b-128k-32-h100"},
    "axolotl": {"llama-3.1-8b-fsdp-8-a100"},
    "deepspeed": {"llama-3-8b-pipeline-8-a100", "llama-3.1-70b-zero3-32-h100"},
    "kubernetes": {"llama-3.1-8b-16-h100-8-a100"},
    "llamafactory": {"llama-2-7b-zero3-offload-4-rtx-4090"},
    "megatron": {"llama-3.1-70b-32-h100"},
    "megatron-bridge": {"llama-3.1-70b-fp8-64-h100"},
    "slurm": {"llama-3.1-70b-32-h100", "llama-3.1-8b-16-h100-8-a100"},
    "torchrun": {"llama-3.1-8b-16-h100-8-a100"},
    "torchtitan": {"llama-3.1-70b-32-h100"},
    "torchtune": {"llama-3.1-8b-fsdp-8-a100"},
    "trl": {"llama-3.1-8b-fsdp-8-a100"},
}
"""Examples of each target that are kept whole."""


def cases() -> list[tuple[str, str]]:
    """(target, case) of every golden folder, in order of name. [text]."""
    return sorted(
        (p.parent.parent.name, p.parent.name) for p in ROOT.glob("*/*/plan.json")
    )


@cache
def emitted(target: str, case: str) -> dict[str, str]:
    """What is written for a golden folder's plan now.

    Args:
        target: Of `planner emit`. [text]
        case: Name of the folder. [text]

    Returns:
        Text by name of file. [text]
    """
    found = read_plan(ROOT / target / case / "plan.json")
    return {file.name: file.text for file in emit(found, target)}


def golden(target: str, case: str) -> dict[str, str]:
    """Text, or digest, of the files that a golden folder has, by name. [text]."""
    folder = ROOT / target / case
    files = (path for path in folder.rglob("*") if path.is_file())
    whole = {str(path.relative_to(folder)): path.read_text() for path in files}
    return {**yaml.safe_load(whole.pop(DIGESTS, "{}")), **whole}


def kept(target: str, case: str, files: Mapping[str, str]) -> dict[str, str]:
    """Files as a golden folder keeps them: programs whole in full examples alone."""
    if case in FULL[target]:
        return dict(files)
    return {n: digest(t) if n in PROGRAMS else t for n, t in files.items()}


def digest(text: str) -> str:
    """Start of the SHA-256 of a text. [text]."""
    return f"sha256 {sha256(text.encode()).hexdigest()[:16]}"


def rewrite(target: str, case: str) -> None:
    """Write a golden folder anew from its own plan, priced anew.

    Args:
        target: Of `planner emit`. [text]
        case: Name of the folder. [text]
    """
    folder = ROOT / target / case
    found = read_plan(folder / "plan.json")
    plan = found.plan.model_copy(update={"estimate": priced_anew(found)})
    found = priced(replace(found, plan=plan), target, force=True)
    files = emit(found, target)
    texts = kept(target, case, {file.name: file.text for file in files})
    digests = {n: text for n, text in texts.items() if text.startswith("sha256 ")}
    listed = LaunchFile(DIGESTS, yaml.safe_dump(digests))
    whole = [file for file in files if file.name not in digests]
    write_folder(folder, [*whole, listed] if digests else whole, force=True)
    for name in digests:
        (folder / name).unlink(missing_ok=True)
