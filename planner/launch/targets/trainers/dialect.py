"""Dialects of trainers: settings of their files by use, one record a trainer."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from planner.hardware.reading.yaml_text import parse_yaml

FOLDER = Path(__file__).parents[1]


class Blank(BaseModel):
    """A variable that the user fills in; value and reason may name facts of a plan.

    Attributes:
        value: Value without the user's. [text]
        why: Reason. [text]
        required: True where a run needs a value. [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: str = ""
    why: str = ""
    required: bool = False


class Writing(BaseModel):
    """Parts of a launch folder beside the trainer's settings.

    Attributes:
        head: First line of the trainer's file; braces stand for the script. [text]
        files: Kinds of the files beside it: places, model, zero. [text]
        words: Arguments of the starter; RATE stands for the learning rate. [text]
        check: Words added for a run of 20 steps. [text]
        first: Outputs to look at first, the last where no rows are stated. [text]
        environment: True where the variables of accelerate are set. [-]
        requirements: Packages, each behind its condition. [text]
        blanks: Variables that the user fills in. [-]
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    head: str
    files: tuple[str, ...]
    words: tuple[str, ...]
    check: tuple[str, ...]
    first: tuple[str, ...]
    environment: bool = True
    requirements: tuple[tuple[str, str], ...]
    blanks: dict[str, Blank]


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
        writing: Parts of a launch folder beside the settings. [-]
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
    writing: Writing


@cache
def dialect(target: str) -> Dialect:
    """Dialect of the trainer that is a target. [-]."""
    text = (FOLDER / target / "dialect.yaml").read_text(encoding="utf-8")
    return Dialect.model_validate(parse_yaml(text))
