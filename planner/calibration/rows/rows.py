"""Reads measured rows from YAML; a broken row leaves the others usable."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from planner.calibration.rows.blocks import (
    HardwareBlock,
    JobBlock,
    LayoutBlock,
    MeasuredBlock,
    ModelBlock,
    SoftwareBlock,
    SourceBlock,
)
from planner.calibration.rows.keys import unread_keys
from planner.calibration.rows.normalise import normalised
from planner.calibration.rows.row_text import items_of
from planner.calibration.rows.vocabulary import Normalised
from planner.errors import BadInputError
from planner.hardware.reading.documents import (
    DocumentError,
    absence,
    is_file,
    is_there,
    read_text,
)
from planner.specs.reading.invalid import explained

SUFFIXES = (".yaml", ".yml")
"""Endings of the name of a file of rows."""


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
    check: Annotated[str, Field(pattern=r"(?s)^(ok|suspect(\(.*\))?)$")] = "ok"
    """`ok`, or `suspect(reason)`. [text]"""
    normalised: Normalised
    software: SoftwareBlock = SoftwareBlock()
    split_group: str = ""
    spec: dict[str, Any] | None = None
    """The whole job with its layout, of a run that was planned; absent: the blocks
    above say it in words. [-]"""
    unread: tuple[str, ...] = ()
    """Keys of the row that no block has. [text]"""

    @property
    def source_key(self) -> str:
        """Stem of the row's file: rows of one file are one source. [text]."""
        return Path(self.file).stem

    @property
    def counted(self) -> bool:
        """True where the row belongs in summaries: the row's check is ok."""
        return self.check == "ok"

    @property
    def group(self) -> str:
        """Group that near-duplicates share; the row's id without a group. [text]."""
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
    """An item that is no legal row, and the reason."""

    file: str
    """Path of the item's file. [path]"""
    id: str
    """Id of the row, or its place in the file: `row 3`. [text]"""
    reason: str
    """Field, value and what is allowed, one line. [text]"""


@dataclass(frozen=True)
class Reading:
    """Rows of a set of files, and rows that could not be read."""

    rows: tuple[Row, ...]
    invalid: tuple[InvalidRow, ...]


def read_rows(paths: Iterable[Path]) -> Reading:
    """Every row of files and folders, in order of path and place.

    A folder means the YAML files in it. A broken file or row is listed, and the
    others are read all the same.

    Args:
        paths: Files or folders. [path]

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
            raise BadInputError(absence(path, "no such file or folder"), file=str(path))
        found = _yaml_files_below(path)
        if not found:
            raise BadInputError(
                "the folder holds no rows", file=str(path), allowed="*.yaml files"
            )
        yield from found


def _entries(file: Path) -> Iterator[Row | InvalidRow]:
    try:
        text = read_text(file)
    except DocumentError as error:
        yield _invalid(file, "", BadInputError(error.problem))
        return
    for place, fields in enumerate(items_of(text, str(file)), start=1):
        if isinstance(fields, BadInputError):
            yield _invalid(file, "", fields)
        else:
            yield _row(file, place, fields)


def _row(file: Path, place: int, fields: Any) -> Row | InvalidRow:
    """One item of a file, checked."""
    name = f"row {place}"
    if not isinstance(fields, dict):
        told = BadInputError("is no block of fields", value=f"{fields!r:.60}")
        return _invalid(file, name, told)
    name = str(fields.get("id", name))
    try:
        return _checked(file, fields)
    except ValidationError as error:
        return _invalid(file, name, explained(error, Row, file=""))
    except BadInputError as error:
        return _invalid(file, name, error)
    except Exception as error:  # noqa: BLE001
        # A fault of ours in one row of a thousand must not lose the others.
        told = BadInputError(f"cannot be read: {type(error).__name__}: {error}")
        return _invalid(file, name, told)


def _checked(file: Path, fields: dict[str, Any]) -> Row:
    """A row whose blocks are checked before fixed words are made of them."""
    unread = unread_keys(fields, Row)
    given = {**fields, "file": str(file), "unread": unread}
    Row.model_validate({**given, "normalised": fields.get("normalised") or {}})
    return Row.model_validate({**given, "normalised": normalised(fields)})


def _invalid(file: Path, name: str, told: BadInputError) -> InvalidRow:
    """A complaint that names the file and the row before the field."""
    place = f"{file}: {name}" if name else str(file)
    told.file = place
    return InvalidRow(str(file), name, " ".join(str(told).split()))


def _without_twins(rows: list[Row], invalid: list[InvalidRow]) -> Reading:
    """Refuse all rows of one id: nobody knows which is meant."""
    counts = Counter(row.id for row in rows)
    twins = [
        _invalid(Path(row.file), row.id, BadInputError(f"id is given {n} times"))
        for row in rows
        if (n := counts[row.id]) > 1
    ]
    single = tuple(row for row in rows if counts[row.id] == 1)
    return Reading(single, (*invalid, *twins))
