"""Options of Megatron-LM whose values are shell variables that no file sets."""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from planner.errors import BadInputError
from planner.frameworks.megatron.launch.known import VERSIONS, declared
from planner.launch.shell.runs import launch_of
from planner.launch.shell.values import fill_words, refuse_unset, unset
from planner.launch.unknown import Unknown

RANKS = ("nproc_per_node", "nnodes")
"""Options of torchrun that count ranks. [text]"""


def plain(word: str) -> str:
    """Name of an option as the option's parser keeps it."""
    return word.split("=", maxsplit=1)[0].lstrip("-").replace("-", "_")


def option_of(name: str) -> str:
    """Option of an argument as a command line spells the option."""
    for version in VERSIONS:
        for option, one in declared(version).items():
            if one["dest"] == name:
                return option
    return "--" + name.replace("_", "-")


def takes_value(option: str) -> bool:
    """Tell if an option of Megatron takes words, as no switch does.

    Returns:
        False for switches, and for options that Megatron does not have.
    """
    has = any(option in declared(version) for version in VERSIONS)
    return has and _takes(option) != 0


def filled(
    words: Sequence[str], deciding: AbstractSet[str], *, file: str
) -> tuple[list[str], list[str]]:
    """Part the words of a command line from options whose value no file sets.

    Raises:
        BadInputError: An option that decides the price has such a variable, or words
            of the run are one.
    """
    kept, left = list[str](), list[str]()
    for option, (values, others) in _options(words):
        shown = " ".join([option, *values])
        if others:
            _refuse_open(others[0], file)
        if not unset(shown):
            kept += [option, *values]
            continue
        name, _, inside = option.partition("=")
        if any(_dest(name, version) in deciding for version in VERSIONS):
            refuse_unset(name, " ".join([inside, *values]).strip(), file=file)
        left.append(shown)
    return kept, left


def _refuse_open(word: str, file: str) -> None:
    if _OPEN.fullmatch(word):
        refuse_unset("a word of the run", word, file=file)


def untaken(words: Sequence[str], *, file: str) -> Iterator[Unknown]:
    """Options with words behind them that they do not take; argparse ends there."""
    why = "takes fewer words, and Megatron-LM refuses the others"
    for option, (values, others) in _options(words):
        name = option.partition("=")[0]
        if not others or not any(name in declared(version) for version in VERSIONS):
            continue
        if not takes_value(name):
            raise BadInputError(
                "is a switch and takes no value: Megatron-LM refuses the word after it",
                file=file,
                field=name,
                value=others[0],
                allowed="the switch alone, or none of it",
            )
        yield Unknown(name, " ".join([*values, *others]), why=why)


_OPEN = re.compile(r"\$\{\w+\}|\$\(.*\)")
"""A word of which nothing is known. [text]"""
Values = tuple[list[str], list[str]]


def _options(words: Sequence[str]) -> Iterator[tuple[str, Values]]:
    """Options, each with as many words as it takes, and the words behind these."""
    option, values = "", list[str]()
    for word in (*words, "--"):
        if not word.startswith("--"):
            values.append(word)
            continue
        if option:
            takes = _takes(option)
            rest = [] if takes is None else values[takes:]
            yield option, (values[:takes], rest)
        option, values = word, []


def _takes(option: str) -> int | None:
    """Number of words that an option takes; None for any number. [1]."""
    if "=" in option:
        return 0
    known = (declared(version) for version in VERSIONS)
    counts = [options[option]["nargs"] for options in known if option in options]
    if not counts or counts[0] in ("+", "*"):
        return None
    return counts[0] if isinstance(counts[0], int) else 1


def _dest(option: str, version: str) -> str:
    return str(declared(version).get(option, {}).get("dest", ""))


def uncounted(files: Mapping[str, str]) -> Iterator[Unknown]:
    """Options that count ranks by a variable that no file sets."""
    for option, (values, _) in _options(launch_of(files).words):
        shown = " ".join([option, *values[:1]])
        if plain(option) in RANKS and unset(shown):
            yield Unknown(
                option,
                " ".join(values[:1]),
                f"is set by no file; {fill_words(unset(shown))}",
                ranks=True,
            )
