"""Files that a command reads are not written over by the command."""

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hardware.reading.documents import (
    DocumentError,
    is_file,
    is_folder,
    plain_yaml,
    read_text,
)
from hardware.reading.files import SUFFIXES
from planner.errors import BadInputError

OUTPUTS = frozenset({"--json", "--out", "--report", "--save", "--trace"})
"""Options that name a file to write. [text]"""
DEEPEST = 4
"""Files that name each other in a row: purchase, job, model. [1]"""


def refuse_overwriting(command: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Refuse an output that is a file which the command reads, by any name of it.

    Inputs are the arguments that name a file, the files that these name, and the YAML
    in a folder that is read.

    Args:
        command: The command, with an annotation for each option. [-]
        given: Values of the command line by name of argument. [-]

    Raises:
        BadInputError: An output is an input.
    """
    options = dict(_outputs(command))
    files = {
        option: Path(given[name])
        for name, option in options.items()
        if given.get(name) not in (None, "-") and is_file(Path(given[name]))
    }
    if not files:
        return
    others = [value for name, value in given.items() if name not in options]
    read = list(_read(_texts(others), Path(), DEEPEST))
    for option, path in files.items():
        if any(_is_within(path, source) for source in read):
            raise BadInputError(
                "is a file that the command reads, and would be lost",
                file=str(path),
                field=option,
                allowed="another file",
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


def _read(texts: Iterable[str], base: Path, depth: int) -> Iterator[Path]:
    """Files and folders that texts name, and those that the files name in turn."""
    for text in dict.fromkeys(texts):
        path = base / text
        if not text or not (is_file(path) or is_folder(path)):
            continue
        yield path
        if depth and is_file(path) and path.suffix in SUFFIXES:
            yield from _read(_inside(path), path.parent, depth - 1)


def _inside(path: Path) -> Iterator[str]:
    """Texts within a YAML file; none where it cannot be read."""
    try:
        yield from _texts(plain_yaml(read_text(path)))
    except DocumentError:
        return


def _is_within(path: Path, source: Path) -> bool:
    """True where a file is a source, or YAML in a folder that is one."""
    try:
        if is_file(source):
            return path.samefile(source)
        return path.suffix in SUFFIXES and source.resolve() in path.resolve().parents
    except OSError:
        return False
