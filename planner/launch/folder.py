"""Launch folder on disk: written as a whole, or not at all."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from planner.errors import BadInputError
from planner.hardware.reading.documents import (
    DocumentError,
    is_there,
    plain_json,
    read_text,
)
from planner.launch.brief import LaunchFile
from planner.launch.read_plan import PLAN

PLAN_FILE = "plan.json"
"""File that marks a folder as written by planner. [text]"""


def check_folder(out: Path, *, force: bool) -> None:
    """Refuse a folder that holds files, unless told to replace a folder of planner.

    Args:
        out: Folder for the files. [-]
        force: True to replace a folder that planner wrote. [-]

    Raises:
        BadInputError: The path is a file, or a folder with files that may not be
            replaced.
    """
    if is_there(out) and not out.is_dir():
        raise BadInputError("is no folder", file=str(out), allowed="a new folder")
    if not is_there(out) or _is_empty(out):
        return
    if not force:
        raise BadInputError(
            "is not empty", file=str(out), allowed="a new folder, or --force"
        )
    if not _is_ours(out):
        raise BadInputError(
            f"holds no {PLAN_FILE} of planner ({PLAN}), so --force does not delete it",
            file=str(out),
            field="--force",
            allowed="a new folder, or one that `planner emit` wrote",
        )


def _is_empty(out: Path) -> bool:
    try:
        return not any(out.iterdir())
    except OSError as error:
        raise BadInputError(f"cannot be read: {error}", file=str(out)) from error


def _is_ours(out: Path) -> bool:
    """Tell if a plan that planner wrote lies in a folder."""
    try:
        fields = plain_json(read_text(out / PLAN_FILE))
    except DocumentError:
        return False
    return isinstance(fields, dict) and fields.get("schema") == PLAN


def write_folder(out: Path, contents: Sequence[LaunchFile], *, force: bool) -> None:
    """Write all files beside the folder, then put them in its place.

    With *force* an old folder is deleted only once the new folder is complete.

    Args:
        out: The folder. [-]
        contents: Files of the folder. [-]
        force: True to replace a folder that planner wrote. [-]

    Raises:
        BadInputError: The folder may not be replaced, or cannot be written.
    """
    check_folder(out, force=force)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise BadInputError(f"cannot be written: {error}", file=str(out)) from error
    try:
        _fill(stage, contents)
        _swap(stage, out)
    except OSError as error:
        raise BadInputError(f"cannot be written: {error}", file=str(out)) from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _fill(stage: Path, contents: Sequence[LaunchFile]) -> None:
    stage.chmod(0o755)
    for file in contents:
        path = stage / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
        path.chmod(0o755 if file.executable else 0o644)


def _swap(stage: Path, out: Path) -> None:
    """Rename the stage; an old folder moves aside first and is deleted last."""
    if not out.exists():
        stage.rename(out)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{out.name}.old.", dir=out.parent))
    try:
        out.rename(aside / "was")
        stage.rename(out)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
