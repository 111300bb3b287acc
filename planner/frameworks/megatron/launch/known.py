"""Every argument of Megatron-LM, as its own parser declares it, and its class."""

import json
from argparse import ArgumentError, ArgumentParser, Namespace
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel, ConfigDict

from planner.hardware.reading.yaml_text import parse_yaml

VERSIONS = ("0.16.1", "0.19.0")
"""Releases whose arguments are known, oldest first. [text]"""
VERSION = VERSIONS[0]
"""Release that scripts are written for. [text]"""
_FOLDER = Path(__file__).parent / "lists"
_TYPES = {"int": int, "float": float}


@cache
def declared(version: str = VERSION) -> dict[str, dict[str, Any]]:
    """Arguments of a release.

    Returns:
        Declarations by option: dest, kind, nargs, type, choices, default. [-]

    References:
        Megatron-LM core_v<version> megatron/training/arguments.py, parsed.
    """
    path = _FOLDER / f"megatron-lm-{version}-arguments.json"
    every = json.loads(path.read_text())
    return {option: one for one in every for option in one["options"]}


class _Strict(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


@cache
def _parser(version: str) -> _Strict:
    """Parser of a release's command line, rebuilt from the declarations."""
    parser = _Strict(allow_abbrev=False, add_help=False, exit_on_error=False)
    for one in {id(one): one for one in declared(version).values()}.values():
        if one["options"]:
            _add(parser, one)
    return parser


def _add(parser: _Strict, one: dict[str, Any]) -> None:
    common: dict[str, Any] = {"dest": one["dest"], "default": one["default"]}
    if one["nargs"] == 0:
        action = "store_false" if one["kind"].startswith("StoreFalse") else "store_true"
        parser.add_argument(*one["options"], action=action, **common)
        return
    choices = (
        one["choices"] if one["type"] not in ("int", "enum_type_handler") else None
    )
    if one["type"] == "int" and one["choices"]:
        choices = [int(choice) for choice in one["choices"]]
    parser.add_argument(
        *one["options"],
        nargs=one["nargs"],
        type=_TYPES.get(one["type"], str),
        choices=choices,
        **common,
    )


def parse(words: Sequence[str], version: str = VERSION) -> tuple[Namespace, list[str]]:
    """Read a command line as the release's own parser does.

    Raises:
        ValueError: An option is wrong: no such choice, no number, no value.
    """
    try:
        return _parser(version).parse_known_args(list(words))
    except ArgumentError as error:
        raise ValueError(str(error)) from error


def given(words: Sequence[str], version: str = VERSION) -> dict[str, Any]:
    """Options that a command line spells out, by dest."""
    space, _ = parse(words, version)
    known = declared(version)
    names = {known[word.split("=")[0]]["dest"] for word in words if _is(word, known)}
    return {name: getattr(space, name) for name in sorted(names)}


def _is(word: str, known: dict[str, dict[str, Any]]) -> bool:
    return word.split("=", maxsplit=1)[0] in known


class Classes(BaseModel):
    """Arguments that no reader reads, by what becomes of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    harmless: frozenset[str]
    """Arguments that change no price, whatever their value. [text]"""
    plain: dict[str, list[Any]]
    """Values that are what is priced; others are refused. [-]"""
    default: dict[str, frozenset[str]]
    """Arguments whose default alone is priced, by the reason to refuse. [text]"""


@cache
def classes() -> Classes:
    """Classes of the arguments. [-]."""
    return Classes.model_validate(parse_yaml((_FOLDER / "classes.yaml").read_text()))


@cache
def _defaults() -> dict[str, list[Any]]:
    """Default values of an argument, one for each release, by name."""
    found: dict[str, list[Any]] = {}
    for version in VERSIONS:
        for one in declared(version).values():
            found.setdefault(one["dest"], []).append(one["default"])
    return found


def is_harmless(name: str, value: object) -> bool:
    """Tell if an argument leaves the price unchanged.

    Returns:
        False where the argument changes time or memory, or may change them.
    """
    its = classes()
    if name in its.plain:
        return value in its.plain[name]
    return name in its.harmless or value in _defaults().get(name, [])


def reason(name: str) -> str:
    """Say why an argument that is not harmless is refused.

    Returns:
        End of a sentence; empty where the class gives none. [text]
    """
    its = classes().default.items()
    return next((why for why, names in its if name in names), "")


def deciding() -> frozenset[str]:
    """Arguments that no reader reads, and whose value decides a price. [text]."""
    its = classes()
    return frozenset(its.plain).union(*its.default.values())
