"""Files that a command reads are not written over by the command."""

import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from planner.errors import BadInputError
from planner.hardware.reading.documents import (
    DocumentError,
    is_file,
    is_folder,
    plain_yaml,
    read_text,
)
from planner.hardware.reading.files import SUFFIXES

OUTPUTS = frozenset({"--json", "--out", "--report", "--save", "--trace"})
"""Options that name a file to write. [text]"""
MOST_READ = 1 << 20
"""Most characters of a file in which names of others are looked for. [1]"""
_WORD = re.compile(r"""[^\s'"=,:;()<>|&{}\[\]]+""")
DEEPEST = 4
"""Files that name each other in a row: purchase, job, model. [1]"""


def refuse_overwriting(command: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Refuse an output that is a file which the command reads, by any name of it.

    Inputs are the arguments that name a file, the files that these name, and all that
    lies in a folder that is read. A folder that is an output may hold none of them.
    """
    options = dict(_outputs(command))
    there = {
        option: Path(given[name])
        for name, option in options.items()
        if given.get(name) not in (None, "-") and _is_either(Path(given[name]))
    }
    if not there:
        return
    others = [value for name, value in given.items() if name not in options]
    read = _read(others)
    for option, path in there.items():
        lost = next((source for source in read if _writes_over(path, source)), None)
        if lost is not None:
            what = "holds" if is_folder(path) else "is"
            raise BadInputError(
                f"{what} a file that the command reads, and would be lost",
                file=str(path),
                field=option,
                value=str(lost),
                allowed="another file or folder",
            )


def _outputs(command: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    """Arguments that name a file to write, each with its option."""
    for name, parameter in inspect.signature(command).parameters.items():
        for about in getattr(parameter.annotation, "__metadata__", ()):
            # In an annotation typer keeps the first name where a default would stand.
            names = (getattr(about, "default", None), *_names(about))
            yield from ((name, each) for each in names if each in OUTPUTS)


def _names(about: object) -> tuple[str, ...]:
    return tuple(getattr(about, "param_decls", None) or ())


def _texts(value: object) -> Iterator[str]:
    """Texts of a value that may name a file; of an assignment what is set, too."""
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        yield from (str(text), str(text).partition("=")[2])
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, Iterable):
        for inner in value:
            yield from _texts(inner)


def _read(values: Iterable[object]) -> list[Path]:
    """Files and folders that a command line names, and files that these name."""
    near = [*_paths(_texts(values), Path())]
    known = dict.fromkeys(near)
    for _ in range(DEEPEST):
        files = [path for path in near if is_file(path)]
        named = (path for file in files for path in _named_in(file))
        near = [path for path in dict.fromkeys(named) if path not in known]
        known |= dict.fromkeys(near)
    return list(known)


def _named_in(file: Path) -> Iterator[Path]:
    """Files that a YAML file names, and those among the words of any other."""
    try:
        text = read_text(file, most=MOST_READ)
        if file.suffix in SUFFIXES:
            yield from _paths(_texts(plain_yaml(text)), file.parent)
            return
        for base in (file.parent, Path()):
            yield from filter(is_file, _paths(_WORD.findall(text), base))
    except (DocumentError, yaml.YAMLError):
        # The command says what is wrong with it.
        return


def _paths(texts: Iterable[str], base: Path) -> Iterator[Path]:
    for text in dict.fromkeys(texts):
        if text and _is_either(base / text):
            yield base / text


def _writes_over(path: Path, source: Path) -> bool:
    """True where an output is a source, lies in one, or is a folder that holds one."""
    if is_folder(path):
        return _lies_in(source, path)
    if is_file(source):
        return path.samefile(source)
    if _lies_in(path, source):
        return True
    # A second entry of the file may lie anywhere; few files have one.
    return path.stat().st_nlink > 1 and any(
        path.samefile(each) for each in source.rglob("*") if is_file(each)
    )


def _is_either(path: Path) -> bool:
    return is_file(path) or is_folder(path)


def _lies_in(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
