"""The YAML files of facts: ours, and a user's folder laid over them.

A folder has subfolders `gpus`, `links`, `nodes`, `clusters`, `calibration`, `prices`
and `reliability`, each with one file per entry. A file laid over ours adds an entry,
or replaces the entry of its name. Clusters are files that a user copies. They are in
`configs/clusters` of a checkout or of the installed `planner`. All other kinds are
data of this package.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from hardware.reading.documents import is_folder, plain_yaml, read_text
from hardware.reading.nearest import alike

Model = TypeVar("Model", bound=BaseModel)
K = TypeVar("K")
T = TypeVar("T")

SUFFIXES = (".yaml", ".yml")
"""Endings of the names of files of facts."""
MOST_KNOWN = 12
"""Names in a message where none is near. [1]"""
SHOWN = 4
"""Wrong fields that one message names. [1]"""

_readers: dict[str, Callable[[str], object]] = {}
"""Kind to the function that reads one entry of that kind."""
_forget: list[Callable[[], None]] = []
"""Functions that empty the caches of entries read."""
_layers: list[Path] = []
"""The user's folder, if one is laid over ours."""


class CatalogError(ValueError):
    """A catalog file is wrong; the message names the file and the field."""


class UnknownNameError(ValueError):
    """The catalog has no such name; the message lists the nearest."""


def remembered(look_up: Callable[[K], T]) -> Callable[[K], T]:
    """Makes a function of one key remember its answers until the layers change.

    Args:
        look_up: From a key to the entry read. [-]

    Returns:
        The function, cached. [-]
    """
    cached = cache(look_up)
    _forget.append(cached.cache_clear)
    return cached


def reader(kind: str) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Makes a function the cached reader of the entries of a kind.

    Args:
        kind: Name of a subfolder. [-]

    Returns:
        A decorator of a function from name to entry. [-]
    """

    def register(look_up: Callable[[str], T]) -> Callable[[str], T]:
        cached = remembered(look_up)
        _readers[kind] = cached
        return cached

    return register


def folder(kind: str) -> Traversable:
    """Folder of our own YAML files of a kind.

    Args:
        kind: `gpus`, `links`, `nodes`, `clusters` or another folder of data. [-]

    Returns:
        The folder: package data, or `configs/clusters` of the checkout or of the
        installed `planner`, which is found but not imported. [-]

    Raises:
        CatalogError: Neither place has the clusters.
    """
    if kind != "clusters":
        return files("hardware") / kind
    spec = find_spec("planner")
    roots = [Path(__file__).parents[2]]
    roots += [Path(p) for p in (spec and spec.submodule_search_locations) or []]
    for root in roots:
        if (root / "configs" / "clusters").is_dir():
            return root / "configs" / "clusters"
    raise CatalogError(f"no configs/clusters in {' or '.join(map(str, roots))}")


@cache
def _entries(kind: str) -> Mapping[str, Traversable]:
    """Name to file of a kind; a user's file hides ours."""
    found = _in_folder(folder(kind))
    for layer in _layers:
        if (layer / kind).is_dir():
            found |= _in_folder(layer / kind)
    return found


def _in_folder(where: Traversable) -> dict[str, Traversable]:
    """Name to file of one folder, which may name nothing twice."""
    found: dict[str, Traversable] = {}
    for file in sorted(where.iterdir(), key=lambda entry: entry.name):
        stem, dot, suffix = file.name.rpartition(".")
        if dot + suffix not in SUFFIXES:
            continue
        if stem in found:
            raise CatalogError(f"{file}: name: {stem} is also in {found[stem].name}")
        found[stem] = file
    return found


def names(kind: str) -> tuple[str, ...]:
    """Names of one kind, sorted.

    Args:
        kind: `gpus`, `links`, `nodes`, `clusters` or `calibration`. [-]

    Returns:
        Names, each also the stem of its file. [-]
    """
    return tuple(sorted(_entries(kind)))


def find(kind: str, name: str) -> Traversable:
    """The file of one entry.

    Args:
        kind: Name of a subfolder. [-]
        name: Stem of the file's name. [-]

    Returns:
        The user's file if there is one, else our file. [-]

    Raises:
        UnknownNameError: No such file; lists the nearest names.
    """
    if name not in _entries(kind):
        raise UnknownNameError(_unknown_name(kind, name, names(kind)))
    return _entries(kind)[name]


def _unknown_name(kind: str, name: str, known: tuple[str, ...]) -> str:
    """Message with the unknown name and the known names nearest to it."""
    near = alike(name, known, 0.4)
    some = ", ".join(known[:MOST_KNOWN]) + (", ..." if len(known) > MOST_KNOWN else "")
    hint = f"nearest: {', '.join(near)}" if near else f"known: {some}"
    return f"no {name!r} among {kind}; {hint}"


def overlay(path: Path | None) -> None:
    """Lay a user's folder over our own files, for this process.

    Every file in the folder is read at once, and so are our files that may refer to
    it. If a file is wrong or contradicts another, nothing is laid over.

    Args:
        path: Folder with subfolders of the kinds; None takes the layer away. [-]

    Raises:
        CatalogError: No such folder, an unknown subfolder, or a wrong file; names
            file and field.
    """
    if _layers:
        _lay([])
    if path is None:
        return
    _check_folder(path)
    _lay([path])
    try:
        for kind, look_up in _readers.items():
            own = _in_folder(path / kind) if (path / kind).is_dir() else ()
            for name in own if kind == "calibration" else names(kind):
                look_up(name)
    except CatalogError:
        _lay([])
        raise


def _lay(layers: list[Path]) -> None:
    """Replace the layers and forget what was read from the old ones."""
    _layers[:] = layers
    _entries.cache_clear()
    for forget in _forget:
        forget()


def _check_folder(path: Path) -> None:
    """Refuse a missing folder, an unknown subfolder, or a folder without subfolders."""
    if not is_folder(path):
        raise CatalogError(f"{path}: no such folder")
    inside = sorted(p.name for p in path.iterdir() if p.is_dir())
    kinds = tuple(sorted(_readers))
    for name in inside:
        if name not in kinds and not name.startswith("."):
            raise CatalogError(f"{path}: {_unknown_name('subfolders', name, kinds)}")
    if not inside:
        raise CatalogError(f"{path}: has none of the subfolders {', '.join(kinds)}")


def read(path: Traversable, model: type[Model]) -> Model:
    """One YAML file as a checked model.

    Args:
        path: The file. [-]
        model: Type of the content. [-]

    Returns:
        The model. [-]

    Raises:
        CatalogError: No YAML, or not as the model has it; names file and field.
    """
    return parse(str(path), load(path), model)


def load(path: Traversable) -> object:
    """Content of one YAML file, unchecked.

    Args:
        path: The file. [-]

    Returns:
        Mappings, lists and scalars. [-]

    Raises:
        CatalogError: Unreadable, or no YAML; names file, line and column.
    """
    try:
        return plain_yaml(read_text(path), dates=True)
    except (yaml.YAMLError, ValueError) as error:
        raise CatalogError(f"{path}: {' '.join(str(error).split())}") from error


def parse(path: str, data: object, model: type[Model]) -> Model:
    """Content of a file as a checked model.

    Args:
        path: The file, for messages. [-]
        data: Content read from the file. [-]
        model: Type of the content. [-]

    Returns:
        The model. [-]

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


def lookup(kind: str, name: str, model: type[Model]) -> Model:
    """One entry of the catalog by name.

    Args:
        kind: A kind that `folder` takes. [-]
        name: Stem of the file's name. [-]
        model: Type of the entries, with a field `name`. [-]

    Returns:
        The entry. [-]

    Raises:
        UnknownNameError: No such file; lists the nearest names.
        CatalogError: The file is wrong or calls its entry by another name.
    """
    path = find(kind, name)
    entry = read(path, model)
    if getattr(entry, "name", name) != name:
        raise CatalogError(f"{path}: name: must be {name}, as the file")
    return entry
