"""The YAML files of facts: ours, and a user's folder laid over them.

A folder has subfolders `gpus`, `links`, `nodes`, `clusters`, `calibration`, `prices`
and `reliability`, each with one file per entry. A file laid over ours adds an entry,
or replaces the entry of its name. Clusters are files that a user copies. They are in
`configs/clusters` of a checkout or of the installed `planner`. All other kinds are
data of this package.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from typing import ParamSpec, TypeVar, cast

import yaml
from pydantic import BaseModel, ValidationError

from planner.hardware.reading.documents import plain_yaml, read_text
from planner.hardware.reading.nearest import alike
from planner.hardware.reading.shipped import shipped

Model = TypeVar("Model", bound=BaseModel)
T = TypeVar("T")
P = ParamSpec("P")

SUFFIXES = (".yaml", ".yml")
"""Endings of the names of files of facts."""
MOST_KNOWN = 12
"""Names in a message where none is near. [1]"""
SHOWN = 4
"""Wrong fields that one message names. [1]"""


class CatalogError(ValueError):
    """A catalog file is wrong; the message names the file and the field."""


class UnknownNameError(ValueError):
    """The catalog has no such name; the message lists the nearest."""


@dataclass(frozen=True)
class Entry:
    """A file of facts, as it was when it was read.

    Attributes:
        kind: Name of its subfolder. [-]
        name: Stem of its name. [-]
        path: Where it lies, for messages. [text]
        text: Content. [text]
    """

    kind: str
    name: str
    path: str
    text: str

    def content(self) -> object:
        """Mappings, lists and scalars of the file, unchecked.

        Raises:
            CatalogError: No YAML; names file, line and column.
        """
        with _naming(self.path):
            return plain_yaml(self.text, dates=True)


@dataclass(frozen=True)
class Catalog:
    """The files of facts: ours, and those that a user lays over them.

    A value: whoever looks up a name says in which catalog. What is read from one is
    remembered by the catalog and the name.

    Attributes:
        laid: Files laid over ours. [-]
    """

    laid: tuple[Entry, ...] = ()

    def own(self, kind: str) -> Mapping[str, Entry]:
        """Entries of a kind that are laid over ours."""
        return {entry.name: entry for entry in self.laid if entry.kind == kind}

    def names(self, kind: str) -> tuple[str, ...]:
        """Names of one kind, sorted."""
        return tuple(sorted({*_shipped(kind), *self.own(kind)}))

    def find(self, kind: str, name: str) -> Entry:
        """The file of one entry.

        Raises:
            UnknownNameError: No such file; lists the nearest names.
            CatalogError: The file is unreadable.
        """
        if laid := self.own(kind).get(name):
            return laid
        if name not in _shipped(kind):
            raise UnknownNameError(unknown_name(kind, name, self.names(kind)))
        return entry_of(kind, name, _shipped(kind)[name])

    def lookup(self, kind: str, name: str, model: type[Model]) -> Model:
        """One entry by name.

        Raises:
            UnknownNameError: No such file; lists the nearest names.
            CatalogError: The file is wrong or calls its entry by another name.
        """
        file = self.find(kind, name)
        entry = parse(file.path, file.content(), model)
        if getattr(entry, "name", name) != name:
            raise CatalogError(f"{file.path}: name: must be {name}, as the file")
        return entry


SHIPPED = Catalog()
"""Our own files alone."""


def remembered(look_up: Callable[P, T]) -> Callable[P, T]:
    """Makes a function of names and catalogs remember what it read."""
    return cast(Callable[P, T], cache(look_up))


def folder(kind: str) -> Traversable:
    """Folder of our own YAML files of a kind."""
    return shipped("configs" if kind == "clusters" else "hardware") / kind


@cache
def _shipped(kind: str) -> Mapping[str, Traversable]:
    """Name to file of a kind of ours."""
    return in_folder(folder(kind))


def in_folder(where: Traversable) -> dict[str, Traversable]:
    """Files of facts in one folder, which may name nothing twice."""
    files: dict[str, Traversable] = {}
    for file in sorted(where.iterdir(), key=lambda entry: entry.name):
        stem, dot, suffix = file.name.rpartition(".")
        if dot + suffix not in SUFFIXES:
            continue
        if stem in files:
            raise CatalogError(f"{file}: name: {stem} is also in {files[stem].name}")
        files[stem] = file
    return files


def entry_of(kind: str, name: str, file: Traversable) -> Entry:
    """A file of facts, read."""
    with _naming(str(file)):
        return Entry(kind, name, str(file), read_text(file))


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Errors of a reader as errors of the catalog that name the file."""
    try:
        yield
    except (yaml.YAMLError, ValueError) as error:
        raise CatalogError(f"{path}: {' '.join(str(error).split())}") from error


def unknown_name(kind: str, name: str, known: tuple[str, ...]) -> str:
    """Message with an unknown name and the known names nearest to it."""
    near = alike(name, known, 0.4)
    some = ", ".join(known[:MOST_KNOWN]) + (", ..." if len(known) > MOST_KNOWN else "")
    hint = f"nearest: {', '.join(near)}" if near else f"known: {some}"
    return f"no {name!r} among {kind}; {hint}"


def read(path: Traversable, model: type[Model]) -> Model:
    """One YAML file as a checked model.

    Raises:
        CatalogError: No YAML, or not as the model has it; names file and field.
    """
    return parse(str(path), entry_of("", "", path).content(), model)


def parse(path: str, data: object, model: type[Model]) -> Model:
    """Content of a file as a checked model.

    Raises:
        CatalogError: Not as the model has it; names file and field.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = [_line(path, e["loc"], e["msg"]) for e in error.errors()]
        more = f"; {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        raise CatalogError("; ".join(lines[:SHOWN]) + more) from error


def _line(path: str, where: tuple[int | str, ...], message: str) -> str:
    """One line of an error: file, field, what is wrong."""
    field = ".".join(map(str, where)) or "(whole file)"
    return f"{path}: {field}: {message.removeprefix('Value error, ')}"
