"""Chooses the framework and the software stack that a measured row ran on."""

import re
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from planner.calibration.rows.rows import Row
from planner.frameworks.releases import stack_of_year
from planner.hardware.reading.yaml_text import parse_yaml
from planner.specs.frameworks.profile import GatheredInputs
from planner.specs.layouts.context import CpKind
from planner.specs.layouts.layout import Order


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Era(_Part):
    """The year of a release."""

    match: str
    year: float


class StackRule(_Part):
    """A pattern, the years it holds for, and the stack it names."""

    match: str
    also: str = ""
    """A second pattern that has to be found. [text]"""
    compiled: bool | None = None
    """Blocks are known to be compiled, or known not to be. [-]"""
    masters: str = ""
    """Format that master weights are known to have. [text]"""
    unless: str = ""
    """A pattern that must not be found. [text]"""
    title: str = ""
    """A pattern that has to be found in the title of the source. [text]"""
    precision: str = ""
    """The number format that it holds for; all where empty. [text]"""
    replicated: bool = False
    """It holds only where every replica keeps whole states."""
    divided: bool = False
    """It holds only where tensor or pipeline ranks divide the model."""
    since: float = 0.0
    """First year, included. [year]"""
    until: float = 9999.0
    """Last year, not included. [year]"""
    room: str
    """Name of a framework of the registry. [text]"""
    stack: str = ""
    """Name of a stack; that of the row's year where empty. [text]"""
    order: Order | None = None
    cp_kind: CpKind | None = None
    """Context parallelism where the row states none. [text]"""
    gathered_inputs: GatheredInputs | None = None
    """Gathered inputs of linears, where these differ from the stack's. [text]"""
    released: bool = False
    """The row's date picks the release of the framework itself."""
    unknown: bool = False
    why: str


class Table(_Part):
    """Rules in order, and how a row's year is told."""

    eras: tuple[Era, ...]
    generations: dict[str, float]
    rules: tuple[StackRule, ...]


@cache
def table() -> Table:
    """Read ``planner/calibration/mapping/frameworks.yaml``."""
    text = (files("planner.calibration.mapping") / "frameworks.yaml").read_text("utf-8")
    return Table.model_validate(parse_yaml(text))


def stack_rule(row: Row, arch: str) -> StackRule:
    """The first rule that fits a row.

    Args:
        row: The measured row. [-]
        arch: Architecture of the row's GPU, to tell a year where no text does. [text]
    """
    year = year_of(row, arch)
    rule = _first(row, year)
    if rule.stack:
        return rule
    return rule.model_copy(update={"stack": stack_of_year(rule.room, year)})


def _first(row: Row, year: float) -> StackRule:
    """The first rule that fits; one that knows the software where there is any."""
    fitting = (
        rule
        for text in (_software(row), _software(row) + " | " + row.source.title.lower())
        for rule in table().rules
        if _fits(rule, row, text, year)
    )
    first = next(fitting)
    if not first.unknown:
        return first
    return next((rule for rule in fitting if not rule.unknown), first)


def _fits(rule: StackRule, row: Row, text: str, year: float) -> bool:
    known = row.software
    return (
        rule.since <= year < rule.until
        and rule.precision in {"", row.job.precision}
        and not (rule.replicated and _divides(row))
        and not (rule.divided and row.layout.tp * row.layout.pp == 1)
        and bool(re.search(rule.match, text))
        and bool(re.search(rule.also, text))
        and rule.compiled in {None, known.compile}
        and rule.masters in {"", known.master_weights}
        and bool(re.search(rule.title, row.source.title.lower()))
        and not (rule.unless and re.search(rule.unless, text))
    )


def _divides(row: Row) -> bool:
    """True where replicas share states."""
    sharding = row.normalised.sharding
    return sharding is not None and sharding.kind not in {"none", "ddp"}


def _software(row: Row) -> str:
    """Words of the job block that name the software."""
    job = row.job
    parts = (job.framework, job.framework_version, job.transformer_impl)
    return " | ".join(filter(None, parts)).lower()


def year_of(row: Row, arch: str) -> float:
    """The year that a row's software is from.

    The version that the row states decides. Else the name of a release does. Else a
    container's tag or a year does: in the framework's text, the title, or the name of
    the table. Else the GPU generation does.

    Returns:
        Year with its fraction. [year]
    """
    software, title = _software(row), row.source.title.lower()
    version = (row.software.version or "").lower()
    if stated := _eras(version) or _years(version):
        return max(stated)
    for text in (title, software):
        if known := _eras(text):
            return max(known)
    for text in (software, title, row.source.text("table_or_section")):
        if years := _years(text):
            return max(years)
    return table().generations.get(arch, 2024.5)


def _eras(text: str) -> list[float]:
    """Years of the releases that a text names. [year], shape (releases,)."""
    return [era.year for era in table().eras if re.search(era.match, text)]


def _years(text: str) -> list[float]:
    """Years in a text: `2022-07`, `2024`, container tags as `24.07`.

    A tag that YAML read as a number has lost its last zero: 25.1 is 25.10.
    """
    full = re.findall(r"\b(20[12]\d)(?:-(\d\d))?\b", text)
    tags = re.findall(r"(?<![\d.])(2[0-9])\.(0[1-9]|1[0-2]?)(?!\d)", text)
    dated = [int(year) + (int(month or 7) - 1) / 12 for year, month in full]
    months = [(int(year), int(month.ljust(2, "0"))) for year, month in tags]
    return dated + [2000 + year + (month - 1) / 12 for year, month in months]
