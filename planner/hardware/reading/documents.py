"""Reads the content of a user's file, and refuses values that no program can use.

A file that a person wrote has blocks some levels deep, numbers of 64 bits and text
that can be shown. Anything beyond is a slip, a broken file or an attack. It is
refused here with the field. So no code behind has to expect it.
"""

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date
from errno import ELOOP
from importlib.resources.abc import Traversable
from pathlib import Path
from stat import S_ISDIR, S_ISFIFO, S_ISREG
from typing import Any

from planner.hardware.reading.characters import strange_in
from planner.hardware.reading.yaml_text import DEEPEST, parse_yaml

LARGEST_FILE = 1 << 24
"""Characters of a file that is read; a plan of 16,384 GPUs has 150,000. [1]"""
MOST_VALUES = 1 << 20
"""Values of a file, aliases followed. [1]"""
LARGEST_NUMBER = (1 << 63) - 1
"""Largest number that a 64-bit integer holds. [1]"""
CIRCLE = "links lead in a circle"
"""Words for a path that ends nowhere. [text]"""
_LAYOUT = frozenset("\n\t")


class DocumentError(ValueError):
    """A file holds something that cannot be used.

    Attributes:
        field: Dotted path, empty where the whole file is meant. [text]
        problem: The fault in the field. [text]
    """

    def __init__(self, problem: str, field: str = "") -> None:
        self.field, self.problem = field, problem
        super().__init__(f"{field}: {problem}" if field else problem)


def is_there(path: Path) -> bool:
    """Tell if a path leads anywhere; a name that no file can have does not.

    Returns:
        True for files, folders and devices.
    """
    try:
        path.stat()
    except (OSError, ValueError):
        return False
    return True


def absence(path: Path, what: str = "no such file") -> str:
    """Reason why a path leads nowhere."""
    try:
        path.stat()
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == ELOOP:
            return CIRCLE
    return what


def is_file(path: Path) -> bool:
    """Tell if a path leads to an ordinary file.

    Returns:
        False for folders, devices and paths that lead nowhere.
    """
    return is_there(path) and path.is_file()


def is_folder(path: Path) -> bool:
    """Tell if a path leads to a folder.

    Returns:
        False for files, devices and paths that lead nowhere.
    """
    return is_there(path) and path.is_dir()


def yaml_files(folder: Path) -> list[str]:
    """YAML files of a folder, to name the nearest of them in a message."""
    try:
        return [str(path) for path in folder.glob("*.y*ml")]
    except (OSError, ValueError):
        return []


def beside(base: Path, reference: str) -> Path:
    """The path that a file names, from the folder that the file is in."""
    try:
        return base / Path(reference).expanduser()
    except RuntimeError:
        # No user of this name has a home.
        return base / reference


def refuse_special(path: Path | Traversable, *, pipes: bool = False) -> None:
    """Refuse devices, which may have no end, and pipes, which may never begin.

    Args:
        pipes: True where a pipe may be read, as a shell makes of `<(command)`. [-]

    Raises:
        DocumentError: The path leads to what is no ordinary file.
        OSError: The path leads nowhere, or may not be looked at.
    """
    if not isinstance(path, Path):
        return
    mode = path.stat().st_mode
    if not (S_ISREG(mode) or S_ISDIR(mode) or (pipes and S_ISFIFO(mode))):
        kind = "a pipe, which only a job may be" if S_ISFIFO(mode) else "no file"
        raise DocumentError(f"is {kind}")


def read_text(
    path: Path | Traversable,
    *,
    pipes: bool = False,
    most: int = LARGEST_FILE,
    errors: str = "strict",
) -> str:
    """Text of a file: UTF-8 with or without a mark, and not without end.

    Args:
        pipes: True where a pipe may be read. [-]
        errors: What is done with bytes that are no UTF-8, as in `open`. [text]

    Raises:
        DocumentError: Unreadable, no ordinary file, no UTF-8, or too large.
    """
    try:
        refuse_special(path, pipes=pipes)
        with path.open("r", encoding="utf-8-sig", errors=errors) as file:
            text: str = file.read(most + 1)
    except UnicodeDecodeError as error:
        raise DocumentError("is not UTF-8 text") from error
    except DocumentError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DocumentError(f"cannot be read: {reason}") from error
    if len(text) > most:
        raise DocumentError(f"is larger than {most >> 20} MiB")
    return text


def plain_yaml(text: str, *, dates: bool = False) -> Any:
    """YAML of a user as plain data.

    Raises:
        YAMLError: The text is no YAML, or has a key twice.
        DocumentError: The text holds something that cannot be used; a ValueError.
    """
    try:
        return plain(parse_yaml(text), dates=dates)
    except RecursionError as error:
        raise DocumentError("is nested too deeply") from error
    except DocumentError:
        raise
    except ValueError as error:
        # Days that do not exist, digits beyond Python's limit.
        raise DocumentError(f"is no YAML: {_reason(error)}") from error


def plain_json(text: str) -> Any:
    """JSON of a user as plain data.

    Raises:
        DocumentError: The text is no JSON, or holds something that cannot be used.
    """
    try:
        return plain(json.loads(text))
    except RecursionError as error:
        raise DocumentError("is nested too deeply") from error
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(f"is no JSON: {_reason(error)}") from error


def _reason(error: ValueError) -> str:
    text = str(error)
    return "a number has too many digits" if "integer string" in text else text


def plain(data: Any, *, dates: bool = False) -> Any:
    """Return data unchanged if every value is plain.

    Raises:
        DocumentError: A number beyond 64 bits or not finite, text with characters that
            are not shown, other values than numbers and text, or too many of them.
    """
    _Check(dates=dates).size(data, ())
    return data


class _Check:
    """Counts values with aliases followed, and visits each container once."""

    def __init__(self, *, dates: bool) -> None:
        self.sizes: dict[int, int] = {}
        self.open: set[int] = set()
        self.dates = dates

    def size(self, value: Any, path: tuple[object, ...]) -> int:
        """Values in a value, itself counted. [1]."""
        if not isinstance(value, Mapping | list):
            self._scalar(value, path)
            return 1
        if id(value) not in self.sizes:
            self.sizes[id(value)] = self._inside(value, path)
        if self.sizes[id(value)] > MOST_VALUES:
            raise DocumentError(f"holds more than {MOST_VALUES:,} values", _field(path))
        return self.sizes[id(value)]

    def _inside(self, value: Any, path: tuple[object, ...]) -> int:
        if id(value) in self.open:
            raise DocumentError("holds itself", _field(path))
        if len(path) > DEEPEST:
            raise DocumentError("is nested too deeply", _field(path[:3]))
        self.open.add(id(value))
        total = 1 + sum(self.size(v, (*path, key)) for key, v in self._items(value))
        self.open.discard(id(value))
        return total

    def _items(self, value: Any) -> Iterator[tuple[object, Any]]:
        if isinstance(value, list):
            yield from enumerate(value)
            return
        for key, inner in value.items():
            if not isinstance(key, str | int | float | None):
                raise DocumentError("a key has to be text", repr(key)[:40])
            if isinstance(key, str) and strange_in(key):
                raise DocumentError("a key has to be one line", ascii(key)[:40])
            self._scalar(key, (key,))
            yield key, inner

    def _scalar(self, value: Any, path: tuple[object, ...]) -> None:
        problem = ""
        if isinstance(value, str):
            strange = next((c for c in strange_in(value) if c not in _LAYOUT), "")
            if strange:
                problem = f"holds U+{ord(strange):04X}, which is not shown"
        elif isinstance(value, int):
            if abs(value) > LARGEST_NUMBER:
                digits = int((value.bit_length() - 1) * math.log10(2))
                problem = f"is about 1e{digits}, beyond the numbers of 64 bits"
        elif isinstance(value, float):
            if not math.isfinite(value):
                problem = f"is {value}, which is no number that can be used"
        elif value is not None and not (self.dates and isinstance(value, date)):
            problem = f"is a {type(value).__name__}; it has to be a number or text"
        if problem:
            raise DocumentError(problem, _field(path))


def _field(path: tuple[object, ...]) -> str:
    """A dotted path, each part short enough to read."""
    return ".".join(
        part if len(part := str(key)) < 60 else f"{part[:56]} ..." for key in path
    )
