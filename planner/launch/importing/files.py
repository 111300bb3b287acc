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
from planner.hardware.reading.yaml_text import (
    DuplicateKeyError,
    NumberError,
    parse_yaml,
)
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
            texts[file.name] = settings_text(file)
    return texts


def settings_text(file: Path) -> str:
    """Text of a file, which is refused where a setting has two values.

    Raises:
        BadInputError: The file cannot be read, repeats a key, or has a number that
            releases of YAML read differently.
    """
    text = user_text(file)
    refuse_two_values(str(file), text)
    return text


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


def refuse_two_values(file: str, text: str) -> None:
    """Refuse YAML or JSON in which a setting has two values, by its line.

    Raises:
        BadInputError: A key is repeated, or YAML 1.1 reads a number as another one.
    """
    if not file.endswith((*SUFFIXES, ".json")):
        return
    try:
        # JSON may be indented by tabs, which YAML refuses.
        parse_yaml(text.expandtabs() if file.endswith(".json") else text)
    except DuplicateKeyError as error:
        raise given_twice(error, file) from error
    except NumberError as error:
        raise BadInputError(
            error.why,
            file=f"{file}:{error.line}",
            field=_name_on(text.splitlines()[error.line - 1]),
            value=error.value,
            allowed="a decimal number without a zero in front, or text in quotes",
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError):
        return


def _name_on(line: str) -> str:
    """Name of the setting that a line of YAML gives; the line itself without one."""
    return line.partition(":")[0].strip(" -\"'")


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
