"""A user's folder of hardware, laid over our own files."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from planner.hardware import calibration, prices, reliability
from planner.hardware.catalog import cluster, gpu, link, node
from planner.hardware.reading.documents import is_folder
from planner.hardware.reading.files import (
    Catalog,
    CatalogError,
    Entry,
    entry_of,
    in_folder,
    unknown_name,
)

READERS: Mapping[str, Callable[[str, Catalog], object]] = {
    "gpus": gpu,
    "links": link,
    "nodes": node,
    "clusters": cluster,
    "calibration": calibration.check_file,
    "prices": prices.check_file,
    "reliability": reliability.check_file,
}
"""Kind to the reader of an entry of that kind."""


def laid_over(path: Path) -> Catalog:
    """Our own files with a user's folder laid over them.

    Every file in the folder is read at once, and so are our files that may refer to
    it.

    Raises:
        CatalogError: No such folder, an unknown subfolder, or a wrong file, or one
            that contradicts another; names file and field.
    """
    catalog = Catalog(tuple(_entries(path)))
    for kind, look_up in READERS.items():
        every = catalog.own(kind) if kind == "calibration" else catalog.names(kind)
        for name in every:
            look_up(name, catalog)
    return catalog


def _entries(path: Path) -> Iterator[Entry]:
    """Files of a folder, which has subfolders of known kinds and no others."""
    if not is_folder(path):
        raise CatalogError(f"{path}: no such folder")
    inside = sorted(p.name for p in path.iterdir() if p.is_dir())
    if not inside:
        raise CatalogError(f"{path}: has none of the subfolders {', '.join(_KINDS)}")
    for kind in inside:
        if kind in _KINDS:
            for name, file in in_folder(path / kind).items():
                yield entry_of(kind, name, file)
        elif not kind.startswith("."):
            raise CatalogError(f"{path}: {unknown_name('subfolders', kind, _KINDS)}")


_KINDS = tuple(sorted(READERS))
