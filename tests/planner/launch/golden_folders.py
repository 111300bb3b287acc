"""Exact launch folders: every folder below tests/golden/emit holds its own plan.

A new case is made with `planner emit plan.json --target T --out
tests/golden/emit/T/NAME`; `pytest --rewrite-goldens` writes all of them anew.
"""

from dataclasses import replace
from pathlib import Path

from planner.launch import emit, read_plan, write_folder
from planner.questions.emit import priced, priced_anew

ROOT = Path(__file__).resolve().parents[2] / "golden" / "emit"


def cases() -> list[tuple[str, str]]:
    """(target, case) of every golden folder, in order of name. [text]."""
    return sorted(
        (p.parent.parent.name, p.parent.name) for p in ROOT.glob("*/*/plan.json")
    )


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
    """What a golden folder holds.

    Args:
        target: Of `planner emit`. [text]
        case: Name of the folder. [text]

    Returns:
        Text by name of file. [text]
    """
    folder = ROOT / target / case
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in files}


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
    write_folder(folder, files, force=True)
