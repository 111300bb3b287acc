"""Dialects of trainers: settings of their files by use, one record a trainer."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from planner.hardware.reading.yaml_text import parse_yaml

FOLDER = Path(__file__).parents[1]


class Dialect(BaseModel):
    """Settings of one trainer's file by use.

    Settings that change nothing are in planner/frameworks/accelerate/harmless.yaml.

    Attributes:
        source: Files that the names are from. [text]
        title: Program, in messages. [text]
        wanted: Mark of the program's files, in messages. [text]
        program: Programs that take the settings on a command line. [text]
        of_launcher: Options of the program that are no settings. [text]
        of_trainer: True where arguments of transformers' Trainer are settings too,
            under the names of any release. [-]
        marks: Settings that mark a file. [text]
        needed: Marks that a file has at least. [1]
        others: Settings of other programs that have marks of these names. [text]
        weights: Setting that names the weights. [text]
        defaults: Values where a setting is not given. [-]
        renamed: Name of today, by the one of an earlier release. [text]
        spelled: Name of a setting, by that of Trainer's argument. [text]
        apart: Settings that go not together. [text]
        priced: Values that are priced of settings whose others are not. [-]
        read: Settings that a layout, a training block or a stack is read from. [text]
        unpriced: Settings that change time or memory, and are not read. [text]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    title: str
    wanted: str
    program: re.Pattern[str]
    of_launcher: frozenset[str] = frozenset()
    of_trainer: bool = False
    marks: frozenset[str] = frozenset()
    needed: int = 1
    others: frozenset[str] = frozenset()
    weights: str
    defaults: dict[str, Any] = {}
    renamed: dict[str, str] = {}
    spelled: dict[str, str] = {}
    apart: tuple[tuple[str, str], ...] = ()
    priced: dict[str, tuple[Any, ...]] = {}
    read: frozenset[str]
    unpriced: frozenset[str]


@cache
def dialect(target: str) -> Dialect:
    """Dialect of the trainer that is a target. [-]."""
    text = (FOLDER / target / "dialect.yaml").read_text(encoding="utf-8")
    return Dialect.model_validate(parse_yaml(text))
