"""Reads measured rows from YAML; a broken row leaves the others usable."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from hardware.documents import is_file, is_there
from hardware.yaml_text import parse_yaml
from planner.errors import BadInputError
from planner.evidence.blocks import (
    HardwareBlock,
    JobBlock,
    LayoutBlock,
    MeasuredBlock,
    ModelBlock,
    SourceBlock,
)
from planner.evidence.normalise import normalised
from planner.evidence.words import Normalised
from planner.specs.invalid import explained

SUFFIXES = (".yaml", ".yml")
"""How the name of a file of rows ends."""


class Row(BaseModel):
    """One measured training run as its author wrote it, and in fixed words.

    ``normalised`` may be absent: it is then derived from the raw text.
    """

    model_config = ConfigDict(frozen=True, extra="allow", coerce_numbers_to_str=True)

    id: str
    """Unique name. [text]"""
    file: str
    """Path of the file that holds it. [path]"""
    source: SourceBlock = SourceBlock()
    model: ModelBlock
    hardware: HardwareBlock
    job: JobBlock
    layout: LayoutBlock
    measured: MeasuredBlock
    inferred: tuple[str, ...] = ()
    notes: str = ""
    check: str = "ok"
    """`ok`, or `suspect(reason)`. [text]"""
    normalised: Normalised
    split_group: str = ""
    spec: dict[str, Any] | None = None
    """The whole job with its layout, of a run that was planned; absent: the blocks
    above say it in words. [-]"""

    @property
    def source_key(self) -> str:
        """Stem of its file: rows of one file are one source. [text]."""
        return Path(self.file).stem

    @property
    def counted(self) -> bool:
        """Whether it belongs in summaries: its check is ok."""
        return self.check == "ok"

    @property
    def group(self) -> str:
        """Near-duplicates share it; the row alone where none is given. [text]."""
        return self.split_group or self.id

    @model_validator(mode="after")
    def _ranks_fill_the_gpus(self) -> "Row":
        lay, gpus = self.layout, self.hardware.gpus
        inner = lay.tp * lay.pp * lay.cp
        held = inner * lay.dp if lay.dp else inner
        fits = held == gpus if lay.dp else gpus % held == 0
        if fits or not self.counted:
            return self
        factors = f"dp {lay.dp or 'absent'}, tp {lay.tp}, pp {lay.pp}, cp {lay.cp}"
        raise ValueError(f"dp * tp * pp * cp is {held} ({factors}), gpus is {gpus}")


@dataclass(frozen=True)
class InvalidRow:
    """A row that is not one, and why."""

    file: str
    """Path of its file. [path]"""
    id: str
    """Its id, or its place in the file: `row 3`. [text]"""
    reason: str
    """Field, value and what is allowed, one line. [text]"""


@dataclass(frozen=True)
class Reading:
    """What a set of files holds."""

    rows: tuple[Row, ...]
    invalid: tuple[InvalidRow, ...]


def read_rows(paths: Iterable[Path]) -> Reading:
    """Every row of files and folders, in order of path and place.

    A folder means the YAML files in it. A broken file or row is listed, and the
    others are read all the same.

    Args:
        paths: Files or folders. [path]

    Returns:
        Rows, and what could not be read.

    Raises:
        BadInputError: A path does not exist, or a folder holds no YAML file.
    """
    rows: list[Row] = []
    invalid: list[InvalidRow] = []
    for file in _files(paths):
        entries = list(_entries(file))
        rows += [entry for entry in entries if isinstance(entry, Row)]
        invalid += [entry for entry in entries if isinstance(entry, InvalidRow)]
    return _without_twins(rows, invalid)


def _yaml_files_below(folder: Path) -> list[Path]:
    try:
        return sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES)
    except OSError as error:
        raise BadInputError(
            f"cannot be read: {error.strerror}", file=str(folder)
        ) from error


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if is_file(path):
            yield path
            continue
        if not is_there(path):
            raise BadInputError("no such file or folder", file=str(path))
        found = _yaml_files_below(path)
        if not found:
            raise BadInputError(
                "the folder holds no rows", file=str(path), allowed="*.yaml files"
            )
        yield from found


def _entries(file: Path) -> Iterator[Row | InvalidRow]:
    try:
        content = parse_yaml(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, OSError, ValueError, RecursionError) as error:
        yield InvalidRow(str(file), "", f"cannot be read: {_one_line(error)}")
        return
    if not isinstance(content, list):
        kind = "nothing" if content is None else f"a {type(content).__name__}"
        yield InvalidRow(str(file), "", f"holds {kind}; a list of rows is needed")
        return
    for place, fields in enumerate(content, start=1):
        yield _row(file, place, fields)


def _row(file: Path, place: int, fields: Any) -> Row | InvalidRow:
    """One item of a file, checked."""
    if not isinstance(fields, dict):
        return InvalidRow(str(file), f"row {place}", f"is no block of fields: {fields}")
    name = str(fields.get("id", f"row {place}"))
    try:
        words = normalised(fields)
        given = {**fields, "file": str(file), "normalised": words}
        return Row.model_validate(given)
    except ValidationError as error:
        told = explained(error, Row, file="")
    except BadInputError as error:
        told = error
    told.file = None
    return InvalidRow(str(file), name, _one_line(told))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _without_twins(rows: list[Row], invalid: list[InvalidRow]) -> Reading:
    """Rows of one id are all refused: nobody knows which is meant."""
    counts = Counter(row.id for row in rows)
    twins = [
        InvalidRow(row.file, row.id, f"id is given {counts[row.id]} times")
        for row in rows
        if counts[row.id] > 1
    ]
    single = tuple(row for row in rows if counts[row.id] == 1)
    return Reading(single, (*invalid, *twins))
