"""Reads the files of a run from disk, and the files that their settings name."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from planner.errors import BadInputError
from planner.hardware.reading.documents import (
    absence,
    is_file,
    is_folder,
    is_there,
)
from planner.hardware.reading.files import SUFFIXES
from planner.hardware.reading.yaml_text import DuplicateKeyError, parse_yaml
from planner.launch.launchers import slurm, torchrun
from planner.launch.shell.runs import (
    DATA,
)
from planner.launch.target import Files
from planner.launch.text.nodes import PLACE
from planner.specs.reading.read import given_twice, user_text

LARGEST = 1 << 20
"""Size above which a file is no configuration. [B]"""


def texts_of(paths: Sequence[Path]) -> Files:
    """Read files; of a folder those that can hold settings.

    Raises:
        BadInputError: A file is missing, cannot be read, or repeats a key.
    """
    texts: dict[str, str] = {}
    for path in paths:
        if not is_there(path):
            raise BadInputError(absence(path), file=str(path))
        for file in _read_of(path) if path.is_dir() else [path]:
            texts[file.name] = user_text(file)
            _refuse_twins(file, texts[file.name])
    return texts


def _read_of(folder: Path) -> list[Path]:
    """Files of a folder that hold settings; of planner's own no launcher's script."""
    every = _inside(folder)
    ours = any(file.name == "plan.json" for file in every)
    launchers = (slurm.SCRIPT, torchrun.SCRIPT) if ours else ()
    return [file for file in every if may_be(file) and file.name not in launchers]


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInputError(f"cannot be read: {reason}", file=str(folder)) from error


def may_be(file: Path) -> bool:
    """Tell if a file can hold settings: small, and no file of planner without any.

    Returns:
        True where it can. [-]
    """
    ours = file.name in ("plan.json", "README.md", "check.sh", PLACE)
    return not ours and is_file(file) and file.stat().st_size < LARGEST


def _refuse_twins(file: Path, text: str) -> None:
    """Refuse YAML or JSON with a repeated key; the target judges other files."""
    if file.suffix not in (*SUFFIXES, ".json"):
        return
    try:
        # JSON may be indented by tabs, which YAML refuses.
        parse_yaml(text.expandtabs() if file.suffix == ".json" else text)
    except DuplicateKeyError as error:
        raise given_twice(error, str(file)) from error
    except (yaml.YAMLError, ValueError, RecursionError):
        return


def near(text: str, paths: Sequence[Path]) -> Path | None:
    """A file by a path that starts from a given file's folder, or from one above.

    Returns:
        The file; None where none is there. [-]
    """
    folders = [path if is_folder(path) else path.parent for path in paths]
    above = [up for folder in folders for up in (folder, *folder.resolve().parents)]
    every = (*(up / text for up in above), Path(text))
    every = (*every, *(folder / Path(text).name for folder in folders))
    return next((path for path in every if is_file(path)), None)


def filled(variables: Mapping[str, str], name: str, text: str) -> str:
    """Set variables within the text of settings; a script's are its environment."""
    if name.rpartition(".")[2] not in DATA:
        return text

    def value(match: re.Match[str]) -> str:
        return variables.get(match[1] or match[2], match[0])

    return re.sub(r"\$\{(\w+)\}|\$(\w+)\b", value, text)
